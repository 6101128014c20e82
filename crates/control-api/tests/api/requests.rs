//! Rules for all requests: repetition, versions, pages, errors with a body.

use crate::world::{Credential, World, sample, worlds};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use control_api::{ROUTES, Route};
use control_domain::Role;
use serde_json::{Value, json};
use uuid::Uuid;

const PROJECTS: &str = "/orgs/{org}/projects";

async fn create(world: &World, by: &Credential, name: &str, key: &str) -> crate::world::Answer {
    let body = json!({"name": name});
    let fields = [("idempotency-key", key)];
    world
        .send(&Method::POST, PROJECTS, by, &body, &fields)
        .await
}

#[tokio::test]
async fn a_repeated_key_repeats_the_answer() {
    for world in worlds().await {
        let full = world.full_key().await;
        let first = create(&world, &full, "a", "one").await;
        let again = create(&world, &full, "a", "one").await;
        assert_eq!(first.status, StatusCode::CREATED);
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        assert_eq!(again.header("etag"), first.header("etag"));
        let location = format!("/api/v1/projects/{}", first.text("id"));
        assert_eq!(first.header("location"), location);
        assert_eq!(again.header("location"), location);
        let other = create(&world, &full, "b", "one").await;
        assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
        let stranger = world.full_key().await;
        let taken = create(&world, &stranger, "a", "one").await;
        assert_eq!(taken.status, StatusCode::CONFLICT, "a key is its sender's");
        assert_eq!(taken.code(), "CONFLICT");
    }
}

#[tokio::test]
async fn a_key_of_a_request_that_failed_may_be_used_again() {
    for world in worlds().await {
        let full = world.full_key().await;
        create(&world, &full, "a", "one").await;
        let taken = create(&world, &full, "a", "two").await;
        assert_eq!(taken.status, StatusCode::CONFLICT);
        let full_body = create(&world, &full, "b", "two").await;
        assert_eq!(full_body.status, StatusCode::CREATED);
    }
}

#[tokio::test]
async fn a_secret_is_never_repeated() {
    for world in worlds().await {
        let full = world.full_key().await;
        let send = async || {
            let (body, fields) = (json!({"name": "ci"}), [("idempotency-key", "one")]);
            let post = Method::POST;
            world.send(&post, "/api-keys", &full, &body, &fields).await
        };
        let first = send().await;
        assert_eq!(first.status, StatusCode::CREATED);
        assert_eq!(first.header("cache-control"), "no-store");
        assert_eq!(first.text("secret").len(), 43);
        let again = send().await;
        assert_eq!(again.code(), "IDEMPOTENCY_CONFLICT");
        let listed = world.get("/api-keys", &full).await;
        assert!(!listed.body.to_string().contains(&first.text("secret")));
    }
}

#[tokio::test]
async fn an_older_version_is_not_overwritten() {
    for world in worlds().await {
        let full = world.full_key().await;
        let path = "/projects/{project}";
        let rename = async |name: &str, tag: &str| {
            let (body, fields) = (json!({"name": name}), [("if-match", tag)]);
            world
                .send(&Method::PATCH, path, &full, &body, &fields)
                .await
        };
        let tag = world.get(path, &full).await.header("etag").to_owned();
        assert_eq!(tag, "\"1\"");
        let changed = rename("new", &tag).await;
        assert_eq!(changed.status, StatusCode::OK);
        assert_eq!(changed.header("etag"), "\"2\"");
        let stale = rename("newer", &tag).await;
        assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
        assert_eq!(stale.code(), "PRECONDITION_FAILED");
        for (tag, status) in [
            ("\"1\", \"2\"", StatusCode::OK),
            ("*", StatusCode::OK),
            ("W/\"4\"", StatusCode::PRECONDITION_FAILED),
            ("4", StatusCode::PRECONDITION_FAILED),
        ] {
            assert_eq!(rename("newer", tag).await.status, status, "{tag}");
        }
    }
}

#[tokio::test]
async fn a_version_is_refused_where_none_is_compared() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let invitations = "/orgs/{org}/invitations";
        let invited = world
            .post(
                invitations,
                &admin,
                json!({"email": "new@example.test", "role": "reader"}),
            )
            .await;
        assert_eq!(invited.status, StatusCode::CREATED, "{}", invited.body);
        let invitation = format!("{invitations}/{}", invited.text("id"));
        let role = format!(
            "/projects/{{project}}/roles/{}",
            world.member(Role::Reader).await
        );
        let fields = [("if-match", "\"987654\"")];
        for (method, path, body) in [
            (Method::POST, "/api-keys", sample("/api-keys")),
            (Method::PATCH, "/users/me", json!({"name": "other"})),
            (Method::DELETE, &invitation, Value::Null),
            (Method::PUT, &role, json!({"role": "operator"})),
        ] {
            let refused = world.send(&method, path, &admin, &body, &fields).await;
            assert_eq!(refused.code(), "PRECONDITION_FAILED", "{method} {path}");
        }
        let kept = world.get(&invitation, &admin).await;
        assert_eq!(kept.status, StatusCode::OK);
        assert_eq!(world.get(&role, &admin).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn an_older_version_of_the_domains_is_not_overwritten() {
    for world in worlds().await {
        let (path, root) = ("/orgs/{org}/sso/domains", world.instance_admin().await);
        let set = async |domain: &str, tag: &str| {
            let (body, fields) = (json!({"domains": [domain]}), [("if-match", tag)]);
            world.send(&Method::PUT, path, &root, &body, &fields).await
        };
        let first = world.get(path, &root).await;
        assert_eq!(first.body, json!({"domains": []}), "{}", first.status);
        let tag = first.header("etag");
        let changed = set("a.test", tag).await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
        let stale = set("b.test", tag).await;
        assert_eq!(
            stale.status,
            StatusCode::PRECONDITION_FAILED,
            "{}",
            stale.text
        );
        let found = world.get(path, &root).await;
        assert_eq!(found.body, json!({"domains": ["a.test"]}));
        assert_eq!(found.header("etag"), changed.header("etag"));
        let again = set("b.test", found.header("etag")).await;
        assert_eq!(again.status, StatusCode::OK, "{}", again.text);
        let body = json!({"domains": ["c.test"]});
        let put = world.send(&Method::PUT, path, &root, &body, &[]).await;
        assert_eq!(put.status, StatusCode::OK, "a version is optional");
    }
}

#[tokio::test]
async fn users_me_is_renamed_by_its_version() {
    for world in worlds().await {
        let user = world.user(world.org, Role::Reader).await;
        let me = world.get("/users/me", &user).await;
        let tag = me.header("etag");
        let fields = [("if-match", tag)];
        let rename = async |name: &str| {
            let body = json!({"name": name});
            world
                .send(&Method::PATCH, "/users/me", &user, &body, &fields)
                .await
        };
        let renamed = rename("first").await;
        assert_eq!(renamed.status, StatusCode::OK, "{}", renamed.body);
        assert_ne!(renamed.header("etag"), tag);
        assert_eq!(rename("second").await.code(), "PRECONDITION_FAILED");
        let kept = world.get("/users/me", &user).await;
        assert_eq!(kept.text("name"), "first");
    }
}

/// The version of a resource also changes with parts of other rows, and with states that depend on
/// time.
#[tokio::test]
async fn a_tag_ends_with_any_part_of_its_resource() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let member = world.person(world.org, Role::Admin).await;
        let session = world.sign_in(&member).await.session;
        let new = json!({"name": "short", "expires_at": world.app.now() + jiff::SignedDuration::from_secs(30)});
        let key = world.post("/api-keys", &session, new).await;
        assert_eq!(key.status, StatusCode::CREATED, "{}", key.body);
        let key = format!("/api-keys/{}", key.text("id"));
        let person = format!("/orgs/{{org}}/members/{}", member.id);
        let known = async |path: &str, tag: &str| {
            let tag = [("if-none-match", tag)];
            let answer = world.send(&Method::GET, path, &admin, &Value::Null, &tag);
            answer.await
        };
        let tag_of = async |path: &str| known(path, "").await.header("etag").to_owned();
        let (key_tag, person_tag) = (tag_of(&key).await, tag_of(&person).await);
        for (path, tag) in [(&key, &key_tag), (&person, &person_tag)] {
            let same = known(path, tag).await;
            assert_eq!(same.status, StatusCode::NOT_MODIFIED, "{path} {tag}");
        }
        let renamed = json!({"name": "Grace Hopper"});
        let renamed = world.send(&Method::PATCH, "/users/me", &session, &renamed, &[]);
        assert_eq!(renamed.await.status, StatusCode::OK);
        let demoted = json!({"role": "reader"});
        let fields = [("if-match", person_tag.as_str())];
        let demoted = world.send(&Method::PATCH, &person, &admin, &demoted, &fields);
        assert_eq!(
            demoted.await.status,
            StatusCode::OK,
            "versions alone are compared"
        );
        let found = known(&key, &key_tag).await;
        assert_eq!(found.status, StatusCode::OK, "the creator has another role");
        assert_eq!(found.text("maker_role"), "reader");
        let person_tag = tag_of(&person).await;
        let renamed = json!({"name": "Ada Lovelace"});
        let renamed = world.send(&Method::PATCH, "/users/me", &session, &renamed, &[]);
        assert_eq!(renamed.await.status, StatusCode::OK);
        let found = known(&person, &person_tag).await;
        assert_eq!(found.text("name"), "Ada Lovelace", "{}", found.status);
    }
}

#[tokio::test]
async fn a_known_version_is_not_sent_again() {
    for world in worlds().await {
        let full = world.full_key().await;
        let path = "/projects/{project}";
        let fields = [("if-none-match", "\"1\"")];
        let answer = world
            .send(&Method::GET, path, &full, &Value::Null, &fields)
            .await;
        assert_eq!(answer.status, StatusCode::NOT_MODIFIED);
        assert_eq!(answer.body, Value::Null);
        assert_eq!(answer.header("etag"), "\"1\"");
    }
}

/// Each line of a list field counts. [RFC 9110 §5.3]
#[tokio::test]
async fn a_known_version_may_be_in_any_line_of_the_field() {
    for world in worlds().await {
        let full = world.full_key().await;
        let node = world.node_key.clone();
        let tag = world.get("/nodes/{node}/desired", &node).await;
        let tag = tag.header("etag").to_owned();
        for (path, by, tag) in [
            ("/projects/{project}", &full, "\"1\""),
            ("/nodes/{node}/desired", &node, tag.as_str()),
        ] {
            let weak = format!("W/{tag}");
            let listed = format!("\"a\" , {tag}");
            for (lines, status) in [
                (vec!["\"a\"", tag], StatusCode::NOT_MODIFIED),
                (vec![tag, "\"a\""], StatusCode::NOT_MODIFIED),
                (vec!["\"a\"", listed.as_str()], StatusCode::NOT_MODIFIED),
                (vec![weak.as_str()], StatusCode::NOT_MODIFIED),
                (vec!["*"], StatusCode::NOT_MODIFIED),
                (vec!["\"a\"", "\"b\""], StatusCode::OK),
            ] {
                let fields: Vec<_> = lines.iter().map(|line| ("if-none-match", *line)).collect();
                let get = Method::GET;
                let answer = world.send(&get, path, by, &Value::Null, &fields).await;
                assert_eq!(answer.status, status, "{path} {lines:?}");
            }
        }
        let (patch, body) = (Method::PATCH, json!({"name": "new"}));
        let lines = [("if-match", "\"9\""), ("if-match", "\"1\"")];
        let path = "/projects/{project}";
        let changed = world.send(&patch, path, &full, &body, &lines).await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    }
}

#[tokio::test]
async fn head_of_a_list_has_the_fields_of_get_and_options_names_the_methods() {
    for world in worlds().await {
        let full = world.full_key().await;
        let send = async |method: Method, path: &str| {
            let none = Value::Null;
            world.send(&method, path, &full, &none, &[]).await
        };
        for path in [PROJECTS, "/api-keys", "/projects/{project}/nodes?limit=1"] {
            let (get, head) = (
                send(Method::GET, path).await,
                send(Method::HEAD, path).await,
            );
            assert_eq!(head.status, StatusCode::OK, "{path}");
            assert!(head.bytes.is_empty(), "{path}");
            for name in ["content-type", "cache-control", "x-ratelimit-limit"] {
                assert_eq!(head.header(name), get.header(name), "{path} {name}");
            }
            let length = get.bytes.len().to_string();
            assert_eq!(head.header("content-length"), length, "{path}");
        }
        for (path, allowed) in [
            (PROJECTS, "GET,HEAD,POST"),
            ("/projects/{project}", "GET,HEAD,PATCH,DELETE"),
            ("/projects/{project}/nodes/stats", "GET,HEAD"),
        ] {
            let options = send(Method::OPTIONS, path).await;
            assert_eq!(options.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
            assert_eq!(options.header("allow"), allowed, "{path}");
            assert_eq!(options.code(), "METHOD_NOT_ALLOWED", "{}", options.text);
            assert_ne!(options.header("x-correlation-id"), "", "{path}");
        }
        let missing = send(Method::OPTIONS, "/nothing").await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND, "{}", missing.text);
    }
}

#[tokio::test]
async fn a_cursor_leads_to_the_next_page() {
    for world in worlds().await {
        let full = world.full_key().await;
        for name in ["a", "b", "c"] {
            create(&world, &full, name, name).await;
        }
        let (mut path, mut names) = (format!("{PROJECTS}?limit=2"), Vec::new());
        loop {
            let page = world.get(&path, &full).await.body;
            let items = page["items"].as_array().unwrap();
            names.extend(items.iter().map(|item| item["name"].clone()));
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            assert_eq!(items.len(), 2);
            path = format!("{PROJECTS}?limit=2&cursor={next}");
        }
        assert_eq!(names, ["edge", "a", "b", "c"]);
        for query in ["limit=0", "limit=201", "limit=x", "cursor=x", "size=2"] {
            let wrong = world.get(&format!("{PROJECTS}?{query}"), &full).await;
            assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{query}");
            assert_eq!(wrong.code(), "REQUEST_VALIDATION", "{query}");
            let message = wrong.body["error"]["message"].as_str().unwrap();
            assert!(!message.contains("digit"), "{message}");
            assert!(!message.contains("parsing"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_wrong_body_is_answered_with_its_field() {
    for world in worlds().await {
        let full = world.full_key().await;
        let cases = [
            ("{", StatusCode::BAD_REQUEST, "PARSE", Value::Null),
            (
                "{\"name\":\"a\"} x",
                StatusCode::BAD_REQUEST,
                "PARSE",
                Value::Null,
            ),
            (
                "{}",
                StatusCode::UNPROCESSABLE_ENTITY,
                "REQUEST_VALIDATION",
                json!("name"),
            ),
            (
                "{\"name\":1}",
                StatusCode::UNPROCESSABLE_ENTITY,
                "REQUEST_VALIDATION",
                json!("name"),
            ),
            (
                "{\"name\":\"\"}",
                StatusCode::UNPROCESSABLE_ENTITY,
                "REQUEST_VALIDATION",
                json!("name"),
            ),
            (
                "{\"name\":\"a\",\"nmae\":1}",
                StatusCode::UNPROCESSABLE_ENTITY,
                "REQUEST_VALIDATION",
                json!("nmae"),
            ),
        ];
        for (text, status, code, field) in cases {
            let request = request(&world, &full, "application/json", text.to_owned());
            let answer = world.send_request(request).await;
            assert_eq!((answer.status, answer.code()), (status, code), "{text}");
            assert_eq!(answer.body["error"]["details"][0]["field"], field, "{text}");
        }
        let request_text = request(&world, &full, "text/plain", "{}".to_owned());
        let answer = world.send_request(request_text).await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let large = format!("{{\"name\":\"{}\"}}", "a".repeat(1024 * 1024));
        let large = request(&world, &full, "application/json", large);
        let answer = world.send_request(large).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(answer.code(), "LIMIT_EXCEEDED");
    }
}

fn request(world: &World, by: &Credential, kind: &str, body: String) -> Request<Body> {
    let Credential::Bearer(secret) = by else {
        unreachable!("a key is sent as a bearer")
    };
    Request::post(format!("/api/v1/orgs/{}/projects", world.org))
        .header("authorization", format!("Bearer {secret}"))
        .header("content-type", kind)
        .body(Body::from(body))
        .unwrap()
}

#[tokio::test]
async fn refusals_of_the_framework_have_the_same_body() {
    for world in worlds().await {
        let full = world.full_key().await;
        let cases = [
            (Method::GET, "/nowhere", StatusCode::NOT_FOUND, "NOT_FOUND"),
            (
                Method::PUT,
                "/orgs/{org}",
                StatusCode::METHOD_NOT_ALLOWED,
                "METHOD_NOT_ALLOWED",
            ),
            (
                Method::GET,
                "/projects/x",
                StatusCode::BAD_REQUEST,
                "REQUEST_VALIDATION",
            ),
        ];
        for (method, path, status, code) in cases {
            let answer = world.send(&method, path, &full, &Value::Null, &[]).await;
            assert_eq!((answer.status, answer.code()), (status, code), "{path}");
            let id = answer.header("x-correlation-id");
            assert_eq!(answer.body["error"]["correlation_id"], id);
        }
    }
}

#[tokio::test]
async fn no_cache_between_serves_an_answer_to_another_caller() {
    for world in worlds().await {
        let (session, none) = (world.user(world.org, Role::Reader).await, Credential::None);
        for (path, by) in [
            ("/users/me", &session),
            ("/orgs/{org}", &session),
            ("/users/me", &none),
            ("/nowhere", &none),
            ("/openapi.json", &none),
        ] {
            let answer = world.get(path, by).await;
            let place = format!("{path} by {by:?}");
            assert_eq!(
                answer.header("cache-control"),
                "no-cache, private",
                "{place}"
            );
            assert_eq!(
                answer.header("x-content-type-options"),
                "nosniff",
                "{place}"
            );
        }
    }
}

#[tokio::test]
async fn a_404_names_the_missing_resource_only() {
    for world in worlds().await {
        let (full, none) = (world.full_key().await, Uuid::nil());
        let other = world.other.project.unwrap();
        let (theirs, _) = world.new_node(world.other).await;
        let (org, theirs_org) = (world.org, world.other.org);
        for (path, message) in [
            (format!("/orgs/{none}"), "no such organization"),
            (format!("/orgs/{theirs_org}"), "no such organization"),
            (format!("/orgs/{none}/jwks.json"), "no such organization"),
            (
                format!("/orgs/{org}/members/{none}"),
                "no such member of this organization",
            ),
            (format!("/projects/{none}"), "no such project"),
            (format!("/projects/{none}/nodes"), "no such project"),
            (format!("/projects/{other}/nodes"), "no such project"),
            (
                format!("/projects/{{project}}/nodes/{none}"),
                "no such node of this project",
            ),
            (
                format!("/projects/{{project}}/nodes/{theirs}"),
                "no such node of this project",
            ),
            (
                format!("/projects/{other}/nodes/{theirs}"),
                "no such node of this project",
            ),
            (
                format!("/projects/{other}/nodes/{none}/events"),
                "no such node of this project",
            ),
            (
                format!("/projects/{{project}}/drift/{none}"),
                "no such drift event of this project",
            ),
            (format!("/api-keys/{none}"), "no such API key"),
            (
                format!("/api-keys?project={none}"),
                "no such organization or project",
            ),
        ] {
            let answer = world.get(&path, &full).await;
            assert_eq!(
                answer.status,
                StatusCode::NOT_FOUND,
                "{path}: {}",
                answer.body
            );
            assert_eq!(answer.body["error"]["message"], message, "{path}");
        }
    }
}

#[tokio::test]
async fn a_well_formed_correlation_id_is_kept() {
    let world = worlds().await.remove(0);
    for (sent, kept) in [
        ("abc-1.2_3", true),
        ("a b", false),
        (&"x".repeat(129), false),
    ] {
        let fields = [("x-correlation-id", sent)];
        let by = Credential::None;
        let answer = world
            .send(&Method::GET, "/orgs", &by, &Value::Null, &fields)
            .await;
        assert_eq!(answer.header("x-correlation-id") == sent, kept, "{sent}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
}

#[tokio::test]
async fn a_repeated_request_does_not_reveal_a_deleted_resource() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let path = "/projects/{project}/upstreams";
        let (post, body) = (Method::POST, sample(path));
        let key = [("idempotency-key", "one")];
        let made = world.send(&post, path, &admin, &body, &key).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let again = world.send(&post, path, &admin, &body, &key).await;
        assert_eq!(
            (again.status, &again.body),
            (StatusCode::CREATED, &made.body)
        );
        let own = format!("{path}/{}", made.text("id"));
        let gone = world.send(&Method::DELETE, &own, &admin, &Value::Null, &[]);
        assert_eq!(gone.await.status, StatusCode::NO_CONTENT);
        let replayed = world.send(&post, path, &admin, &body, &key).await;
        assert_eq!(replayed.status, StatusCode::CONFLICT, "{}", replayed.body);
        assert!(replayed.text.contains("deleted since"), "{}", replayed.text);
    }
}

#[test]
fn every_change_of_one_resource_compares_its_version() {
    let one = |route: &&Route| route.path.ends_with('}');
    let read = ROUTES
        .iter()
        .filter(one)
        .filter(|route| route.method == Method::GET);
    let read: Vec<&str> = read.map(|route| route.path).collect();
    let changes = ROUTES.iter().filter(|route| !route.method.is_safe());
    for route in changes.filter(|route| read.contains(&route.path)) {
        assert!(route.is_versioned, "{} {}", route.method, route.path);
    }
}
