//! Requests of clients that were written from the `OpenAPI` description alone, or against it.

use crate::world::{Credential, World, certificate, worlds};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use control_domain::Role;
use control_http::SessionCookie;
use control_wire::BundleId;
use serde_json::{Value, json};
use tower::ServiceExt;
use uuid::Uuid;

const PROJECTS: &str = "/orgs/{org}/projects";
const UPSTREAMS: &str = "/projects/{project}/upstreams";
const SERVICES: &str = "/projects/{project}/services";
const BUNDLES: &str = "/projects/{project}/bundles";

async fn field(world: &World, path: &str, by: &Credential, body: Value) -> Value {
    let answer = world.post(path, by, body.clone()).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    answer.body["error"]["details"][0]["field"].clone()
}

#[tokio::test]
async fn an_answer_without_a_route_takes_a_token_too() {
    for world in worlds().await {
        let none = Credential::None;
        for (method, path, status) in [
            (Method::GET, "/openapi.json", StatusCode::OK),
            (Method::GET, "/nowhere", StatusCode::NOT_FOUND),
            (Method::PUT, "/orgs", StatusCode::METHOD_NOT_ALLOWED),
            (Method::TRACE, "/orgs", StatusCode::METHOD_NOT_ALLOWED),
        ] {
            let answer = world.send(&method, path, &none, &Value::Null, &[]).await;
            assert_eq!(answer.status, status, "{method} {path}");
            assert_eq!(answer.header("x-ratelimit-limit"), "60", "{method} {path}");
        }
        let put = world
            .send(&Method::PUT, "/orgs", &none, &Value::Null, &[])
            .await;
        assert_eq!(put.header("allow"), "GET,HEAD,POST");
        let mut sent = 0;
        while world.get("/nowhere", &none).await.status == StatusCode::NOT_FOUND {
            sent += 1;
            assert!(sent < 1_000, "paths without a route are not limited");
        }
    }
}

#[tokio::test]
async fn paths_outside_the_interface_have_an_id_and_their_own_body() {
    let world = worlds().await.remove(0);
    let away = (
        StatusCode::SERVICE_UNAVAILABLE,
        Json(json!({"status": "x"})),
    );
    let further = Router::new()
        .route("/health", get(async || "well"))
        .route("/ready", get(async move || away.clone()));
    let router = control_api::router(&world.app, further, SessionCookie::Tls);
    let send = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap()
    };
    let health = send("GET", "/health").await;
    assert_eq!(health.headers()["x-correlation-id"].len(), 36);
    assert!(!health.headers().contains_key("x-ratelimit-limit"));
    let ready = axum::body::to_bytes(send("GET", "/ready").await.into_body(), 100).await;
    assert_eq!(ready.unwrap(), "{\"status\":\"x\"}");
    for (method, path) in [("POST", "/health"), ("GET", "/nowhere")] {
        let body = send(method, path).await.into_body();
        let body = axum::body::to_bytes(body, 1_000).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["error"]["code"].is_string(), "{method} {path}: {body}");
    }
}

#[tokio::test]
async fn an_array_is_not_read_as_an_object() {
    for world in worlds().await {
        let full = world.full_key().await;
        assert_eq!(field(&world, PROJECTS, &full, json!(["a"])).await, "body");
        let target = json!({"name": "a", "targets": [["10.0.0.1:80", 1]]});
        assert_eq!(field(&world, UPSTREAMS, &full, target).await, "targets[0]");
        let tls = json!({"name": "a", "targets": [{"address": "a:1"}], "tls": [null]});
        assert_eq!(field(&world, UPSTREAMS, &full, tls).await, "tls");
        let balancing = json!({
            "name": "a", "targets": [{"address": "a:1"}], "load_balancing": null,
        });
        let wrong = field(&world, UPSTREAMS, &full, balancing).await;
        assert_eq!(wrong, "load_balancing");
    }
}

#[tokio::test]
async fn an_empty_body_is_an_object_with_and_without_its_type() {
    const ROTATE: &str = "/projects/{project}/nodes/{node}/rotate-key";
    let json = [("content-type", "application/json")];
    for world in worlds().await {
        let full = world.full_key().await;
        for fields in [&json[..], &[]] {
            let send = async |path: &str| {
                let post = Method::POST;
                world.send(&post, path, &full, &Value::Null, fields).await
            };
            let rotated = send(ROTATE).await;
            assert_eq!(rotated.status, StatusCode::CREATED, "{}", rotated.text);
            let lacking = send(PROJECTS).await;
            let expected = StatusCode::UNPROCESSABLE_ENTITY;
            assert_eq!(lacking.status, expected, "{}", lacking.text);
        }
    }
}

#[tokio::test]
async fn a_time_has_the_form_of_rfc_3339() {
    for world in worlds().await {
        let full = world.full_key().await;
        for time in [
            "20300101T000000Z",
            "2030-01-01T00:00:00Z[UTC]",
            "2030-01-01 00:00:00Z",
        ] {
            let body = json!({"name": "a", "expires_at": time});
            assert_eq!(field(&world, "/api-keys", &full, body).await, "expires_at");
            let body = json!({"bundle": BundleId(Uuid::nil()), "not_before": time});
            let path = "/projects/{project}/rollouts";
            assert_eq!(field(&world, path, &full, body).await, "not_before");
            let listed = world
                .get(
                    &format!("/orgs/{{org}}/audit?since={}", time.replace(' ', "%20")),
                    &full,
                )
                .await;
            assert_eq!(listed.status, StatusCode::BAD_REQUEST, "{time}");
        }
        let body = json!({"name": "a", "expires_at": "2099-01-01T02:00:00+02:00"});
        let made = world.post("/api-keys", &full, body).await;
        assert_eq!(made.body["expires_at"], "2099-01-01T00:00:00Z");
    }
}

#[tokio::test]
async fn a_nul_is_refused_where_a_database_keeps_none() {
    for world in worlds().await {
        let full = world.full_key().await;
        for query in ["label=a=%00", "label=%00=a"] {
            let path = format!("/projects/{{project}}/nodes?{query}");
            let answer = world.get(&path, &full).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        }
        let (chain, key) = certificate();
        let body = json!({
            "name": "a", "chain_pem": format!("{chain}\0"), "private_key_pem": key,
        });
        let path = "/projects/{project}/certificates";
        assert_eq!(field(&world, path, &full, body).await, "chain_pem");
    }
}

#[tokio::test]
async fn a_compressed_body_is_refused_as_such() {
    for world in worlds().await {
        let full = world.full_key().await;
        for (coding, status) in [
            ("gzip", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("br", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("identity", StatusCode::CREATED),
        ] {
            let (body, fields) = (json!({"name": "a"}), [("content-encoding", coding)]);
            let answer = world
                .send(&Method::POST, PROJECTS, &full, &body, &fields)
                .await;
            assert_eq!(answer.status, status, "{coding}");
        }
    }
}

#[tokio::test]
async fn a_resource_has_one_address() {
    for world in worlds().await {
        let full = world.full_key().await;
        let id = world.org.to_string();
        for other in [
            id.replace('-', ""),
            format!("%7B{id}%7D"),
            format!("urn:uuid:{id}"),
            "x".to_owned(),
            "%ff".to_owned(),
        ] {
            let answer = world.get(&format!("/orgs/{other}"), &full).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{other}");
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(message.contains("path: "), "{message}");
        }
        let upper = format!("/orgs/{}", id.to_uppercase());
        assert_eq!(world.get(&upper, &full).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn head_compares_versions_as_get_does() {
    for world in worlds().await {
        let full = world.full_key().await;
        for method in [Method::GET, Method::HEAD] {
            let fields = [("if-none-match", "\"1\"")];
            let path = "/projects/{project}";
            let answer = world
                .send(&method, path, &full, &Value::Null, &fields)
                .await;
            assert_eq!(answer.status, StatusCode::NOT_MODIFIED, "{method}");
        }
    }
}

#[tokio::test]
async fn two_credentials_of_one_kind_are_none() {
    for world in worlds().await {
        let full = world.full_key().await;
        let session = world.user(world.org, Role::Reader).await;
        let node = world.node_key.clone();
        for (by, path, other) in [
            (&full, "/users/me", ("authorization", "Bearer other")),
            (&session, "/users/me", ("cookie", "__Host-session=other")),
            (
                &node,
                "/nodes/{node}/desired",
                ("x-service-node-key", "other"),
            ),
        ] {
            let sent = async |fields: &[(&str, &str)]| {
                let get = Method::GET;
                let answer = world.send(&get, path, by, &Value::Null, fields).await;
                answer.status
            };
            assert_eq!(sent(&[]).await, StatusCode::OK, "{path}");
            assert_eq!(sent(&[other]).await, StatusCode::UNAUTHORIZED, "{other:?}");
        }
    }
}

#[tokio::test]
async fn a_definition_that_no_proxy_reads_is_refused_with_its_field() {
    for world in worlds().await {
        let full = world.full_key().await;
        for address in ["[::zz]:80", "::1:80", "a{b:80", "a:+80"] {
            let body = json!({"name": "a", "targets": [{"address": address}]});
            let wrong = field(&world, UPSTREAMS, &full, body).await;
            assert_eq!(wrong, "targets", "{address}");
        }
        let body = json!({"name": "a", "targets": [{"address": "10.0.0.1:80"}]});
        let upstream = world.post(UPSTREAMS, &full, body).await.text("id");
        for (name, value) in [
            ("host", json!("a..b")),
            ("host", json!("a:80")),
            ("path_prefix", json!("/%zz")),
            ("priority", json!(i32::MIN)),
            ("name", json!("a\u{2028}b")),
        ] {
            let mut body = json!({"name": "a", "upstream": upstream});
            body[name] = value;
            assert_eq!(field(&world, SERVICES, &full, body).await, name);
        }
        let body = json!({"name": "\"} \\ {", "host": "*.a.example", "upstream": upstream});
        let made = world.post(SERVICES, &full, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let body = json!({"name": "all", "services": {"http": "0.0.0.0:80"}});
        let bundle = world.post(BUNDLES, &full, body).await;
        assert_eq!(bundle.body["state"], "signed", "{}", bundle.body);
    }
}

#[tokio::test]
async fn every_answer_about_a_rejected_bundle_is_described() {
    let document = control_api::description();
    for world in worlds().await {
        let full = world.full_key().await;
        let body = json!({"name": "a", "files": {"proxy.kdl": "unknown"}});
        let rejected = world.post(BUNDLES, &full, body).await;
        assert_eq!(rejected.body["state"], "rejected");
        let id = rejected.text("id");
        let (own, stranger) = (format!("?before={id}"), format!("?before={}", world.org));
        for (verb, query, status) in [
            ("download", "", 409),
            ("verify", "", 409),
            ("sbom", "", 409),
            ("diff", own.as_str(), 409),
            ("diff", stranger.as_str(), 422),
        ] {
            let path = format!("{BUNDLES}/{id}/{verb}{query}");
            let answer = world.get(&path, &full).await;
            assert_eq!(answer.status.as_u16(), status, "{verb}: {}", answer.body);
            let place = format!("/api/v1{BUNDLES}/{{bundle}}/{verb}");
            let described = &document["paths"][&place]["get"]["responses"];
            assert!(described[status.to_string()].is_object(), "{verb} {status}");
        }
    }
}

#[tokio::test]
async fn a_removed_member_sees_no_organization() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let removed = world.user(world.org, Role::Admin).await;
        let reader_elsewhere = world.user(world.other.org, Role::Reader).await;
        let made = world.post("/api-keys", &admin, json!({"name": "k"})).await;
        let me = world.get("/users/me", &removed).await.text("id");
        let member = format!("/orgs/{{org}}/members/{me}");
        let done = world
            .send(&Method::DELETE, &member, &admin, &Value::Null, &[])
            .await;
        assert_eq!(done.status, StatusCode::NO_CONTENT, "{}", done.text);
        let key = format!("/api-keys/{}", made.text("id"));
        let unknown = Uuid::now_v7();
        let body = json!({"name": "other"});
        for (method, path) in [
            (Method::GET, "/orgs/{org}".to_owned()),
            (Method::GET, format!("/orgs/{unknown}")),
            (Method::PATCH, "/orgs/{org}".to_owned()),
            (Method::GET, "/projects/{project}".to_owned()),
            (Method::GET, format!("/projects/{unknown}")),
            (Method::PATCH, "/projects/{project}".to_owned()),
            (Method::POST, UPSTREAMS.to_owned()),
            (Method::PATCH, key),
        ] {
            for credential in [&removed, &reader_elsewhere] {
                let answer = world.send(&method, &path, credential, &body, &[]).await;
                let place = format!("{method} {path}: {}", answer.text);
                assert_eq!(answer.status, StatusCode::NOT_FOUND, "{place}");
            }
        }
        let none = world.get("/api-keys", &removed).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND, "{}", none.text);
        let own = world
            .send(
                &Method::PATCH,
                "/orgs/{org}",
                &world.user(world.org, Role::Reader).await,
                &body,
                &[],
            )
            .await;
        assert_eq!(own.status, StatusCode::FORBIDDEN, "{}", own.text);
    }
}

#[tokio::test]
async fn a_browser_gets_a_page_where_a_program_gets_json() {
    let world = worlds().await.remove(0);
    let org = world.org;
    for (method, path, status) in [
        (Method::GET, format!("/sso/{org}"), StatusCode::NOT_FOUND),
        (
            Method::GET,
            "/sso/nowhere".to_owned(),
            StatusCode::NOT_FOUND,
        ),
        (
            Method::PUT,
            format!("/sso/{org}"),
            StatusCode::METHOD_NOT_ALLOWED,
        ),
    ] {
        let send = async |accept: &str| {
            let request = Request::builder().method(&method).uri(&path);
            let request = request.header("accept", accept).body(Body::empty());
            world.send_request(request.unwrap()).await
        };
        let json = send("*/*").await;
        assert_eq!(json.status, status, "{method} {path}");
        assert_eq!(json.header("content-type"), "application/json");
        let page = send("text/html,*/*;q=0.8").await;
        assert_eq!(page.status, status, "{method} {path}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let words = status.canonical_reason().unwrap();
        assert!(page.text.contains(&format!("<title>{words}</title>")));
        assert!(page.text.contains(&format!("<h1>{words}</h1>")));
        assert!(page.text.contains(page.header("x-correlation-id")));
        assert!(page.header("content-security-policy").contains("'none'"));
        assert_eq!(page.header("allow"), json.header("allow"));
    }
    let interface = Request::put("/api/v1/orgs").header("accept", "text/html");
    let interface = world.send_request(interface.body(Body::empty()).unwrap());
    assert_eq!(interface.await.header("content-type"), "application/json");
}
