//! Life cycle of a bundle: checked, signed, downloaded, verified, compared, revoked.

use crate::world::{Answer, Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_auth::PublicKey;
use control_bundle::{digest, unpack, verify, verify_order};
use control_domain::Role;
use control_testkit::check_cyclonedx;
use control_wire::Order;
use serde_json::{Value, json};
use std::fs;
use uuid::Uuid;

const BUNDLES: &str = "/projects/{project}/bundles";

fn config(address: &str) -> String {
    format!("listeners {{\n    listener \"a\" {{ address {address:?} }}\n}}\n")
}

async fn create(world: &World, by: &Credential, text: &str) -> Answer {
    let body = json!({"name": "edge", "files": {"proxy.kdl": text}});
    world.post(BUNDLES, by, body).await
}

fn path(bundle: &Answer) -> String {
    format!("{BUNDLES}/{}", bundle.text("id"))
}

#[tokio::test]
async fn a_bundle_is_signed_downloaded_and_verified() {
    for world in worlds().await {
        let operator = world.user(world.org, Role::Operator).await;
        let reader = world.user(world.org, Role::Reader).await;
        let text = config("127.0.0.1:8080");
        let made = create(&world, &operator, &text).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(made.text("state"), "signed");
        assert_eq!(made.body["diagnostics"], json!([]));
        assert!(made.bytes.len() < 4_096, "no archive in the answer");

        let download = world
            .get(&format!("{}/download", path(&made)), &reader)
            .await;
        assert_eq!(download.status, StatusCode::OK, "{}", download.body);
        assert_eq!(download.header("content-type"), "application/zstd");
        assert_eq!(digest(&download.bytes), made.text("digest"));
        let unused = "upstreams { upstream \"u\" { target \"10.0.0.1:80\" } }";
        let doubtful = create(&world, &operator, &format!("{text}{unused}")).await;
        assert_eq!(doubtful.text("state"), "signed");
        assert_eq!(doubtful.body["diagnostics"][0]["severity"], "warning");
        let tag = format!("\"{}\"", made.text("digest"));
        assert_eq!(download.header("etag"), tag);
        assert_eq!(made.body["size_bytes"], json!(download.bytes.len()));
        let contents = unpack(&download.bytes).unwrap();
        assert_eq!(contents.files["proxy.kdl"], text.as_bytes());
        let known = [("if-none-match", tag.as_str())];
        let get = Method::GET;
        let place = format!("{}/download", path(&made));
        let again = world
            .send(&get, &place, &reader, &Value::Null, &known)
            .await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED);
        assert!(again.bytes.is_empty());

        let checked = world.get(&format!("{}/verify", path(&made)), &reader).await;
        assert_eq!(checked.body["valid"], true, "{}", checked.body);
        let key = PublicKey::from_text(checked.text("public_key"));
        let kid = checked.text("kid").parse().unwrap();
        let signed = verify(&made.text("digest"), kid, &key, &made.text("signature"));
        assert_eq!(signed, Ok(()));
        let sbom = world.get(&format!("{}/sbom", path(&made)), &reader).await;
        assert_eq!(
            sbom.header("content-type"),
            "application/vnd.cyclonedx+json"
        );
        assert_eq!(check_cyclonedx(&sbom.text), Ok(()));
        // Proves that the validator rejects a document that violates its standard.
        let wrong = sbom.text.replace("\"file\"", "\"leaf\"");
        assert!(check_cyclonedx(&wrong).unwrap_err().contains("leaf"));
        let same = create(&world, &operator, &text).await;
        assert_eq!(same.text("digest"), made.text("digest"));
        assert_ne!(same.text("id"), made.text("id"));
    }
}

#[tokio::test]
async fn a_wrong_configuration_is_rejected_with_places() {
    for world in worlds().await {
        let full = world.full_key().await;
        let body = json!({"name": "edge", "files": {
            "proxy.kdl": "include \"more/*.kdl\"",
            "more/limits.kdl": "limits {\n    max-heder-count 5\n}",
        }});
        let made = world.post(BUNDLES, &full, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(made.text("state"), "rejected");
        let found = &made.body["diagnostics"][0];
        assert_eq!(found["code"], "unknown-setting");
        assert_eq!(found["file"], "more/limits.kdl");
        assert_eq!((&found["line"], &found["column"]), (&json!(2), &json!(5)));
        let text = found.to_string();
        assert!(text.contains("max-header-count"), "{text}");
        for what in ["download", "verify", "sbom"] {
            let refused = world.get(&format!("{}/{what}", path(&made)), &full).await;
            assert_eq!(refused.status, StatusCode::CONFLICT, "{what}");
            assert_eq!(refused.code(), "WRONG_STATE");
        }
        create(&world, &full, &config("127.0.0.1:80")).await;
        let listed = world.get(&format!("{BUNDLES}?state=rejected"), &full).await;
        let items = listed.body["items"].as_array().unwrap();
        assert_eq!(items.len(), 1);
        assert_eq!(items[0]["id"], made.body["id"]);
        let wrong = world.get(&format!("{BUNDLES}?state=lost"), &full).await;
        assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn hostile_files_are_refused_in_bounds() {
    let levels = "a {\n".repeat(10_000) + &"}\n".repeat(10_000);
    let long_path = "a/".repeat(10_000) + "a";
    let key = "-----BEGIN PRIVATE KEY-----\n";
    let bodies = [
        (json!({"files": {"other.kdl": ""}}), "files"),
        (json!({"files": {"proxy.kdl": "", "../a": ""}}), "files"),
        (json!({"files": {"proxy.kdl": "", "/etc/a": ""}}), "files"),
        (json!({"files": {"proxy.kdl": "", "a": key}}), "files"),
        (json!({"files": {"proxy.kdl": "", long_path: ""}}), "files"),
        (
            json!({"files": {"proxy.kdl": " ".repeat(4 << 20)}}),
            "files",
        ),
        (json!({"files": {"proxy.kdl": ""}, "services": {}}), "files"),
        (json!({}), "files"),
        (json!({"services": {}}), "services"),
        (json!({"services": {}, "assets": {"a": ""}}), "assets"),
        (
            json!({"files": {"proxy.kdl": ""}, "assets": {"a": "?"}}),
            "assets",
        ),
        (
            json!({"files": {"proxy.kdl": ""}, "assets": {"proxy.kdl": ""}}),
            "assets",
        ),
        (json!({"name": "", "files": {"proxy.kdl": ""}}), "name"),
    ];
    for world in worlds().await {
        let full = world.full_key().await;
        for (body, field) in &bodies {
            let mut body = body.clone();
            if body["name"].is_null() {
                body["name"] = json!("edge");
            }
            let answer = world.post(BUNDLES, &full, body).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
            let found = &answer.body["error"]["details"][0]["field"];
            assert_eq!(found, field, "{}", answer.body);
        }
        let deep = create(&world, &full, &levels).await;
        assert_eq!(deep.text("state"), "rejected");
        let codes = deep.body["diagnostics"].to_string();
        assert!(codes.contains("nesting-too-deep"), "{codes}");
        world.change_address();
        let large = create(&world, &full, &"x".repeat(100 << 20)).await;
        assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(large.code(), "LIMIT_EXCEEDED");
    }
}

#[tokio::test]
async fn a_bundle_is_revoked_once() {
    for world in worlds().await {
        let full = world.full_key().await;
        let made = create(&world, &full, &config("127.0.0.1:80")).await;
        let revoke = format!("{}/revoke", path(&made));
        let stale = [("if-match", "\"7\"")];
        let post = Method::POST;
        let refused = world
            .send(&post, &revoke, &full, &Value::Null, &stale)
            .await;
        assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED);
        let revoked = world.post(&revoke, &full, Value::Null).await;
        assert_eq!(revoked.text("state"), "revoked");
        assert!(revoked.body["revoked_at"].is_string());
        let twice = world.post(&revoke, &full, Value::Null).await;
        assert_eq!(twice.code(), "WRONG_STATE");
        let audit = world.app.verify_audit().await.unwrap();
        assert_eq!(audit, None);
    }
}

#[tokio::test]
async fn nodes_revert_from_a_revoked_bundle_to_the_one_before() {
    for world in worlds().await {
        let full = world.full_key().await;
        let mut bundles = Vec::new();
        for port in 1..=3 {
            let made = create(&world, &full, &config(&format!("127.0.0.1:{port}"))).await;
            bundles.push(made);
        }
        let nodes = json!({"nodes": [world.node]});
        let assign = async |bundle: &Answer| {
            let path = format!("{}/assign", path(bundle));
            world.post(&path, &full, nodes.clone()).await
        };
        let desired = async || {
            let found = world.get("/nodes/{node}/desired", &world.node_key).await;
            let order = serde_json::from_value::<Order>(found.body["order"].clone());
            order.unwrap()
        };
        let (one, two, three) = (&bundles[0], &bundles[1], &bundles[2]);
        for bundle in [one, two, two] {
            let assigned = assign(bundle).await;
            assert_eq!(assigned.status, StatusCode::OK, "{}", assigned.body);
        }
        let order = desired().await;
        assert_eq!((order.counter, order.digest), (3, two.text("digest")));
        let archive = format!("/nodes/{{node}}/bundles/{}/archive", two.text("id"));
        let fetched = world.get(&archive, &world.node_key).await;
        assert_eq!(digest(&fetched.bytes), two.text("digest"));

        world
            .post(&format!("{}/revoke", path(two)), &full, Value::Null)
            .await;
        let order = desired().await;
        assert_eq!((order.counter, &order.digest), (4, &one.text("digest")));
        let (kid, pair) = world.signer(world.org).await;
        assert_eq!(order.kid, kid);
        assert_eq!(verify_order(&order, &pair.public()), Ok(()));
        let gone = world.get(&archive, &world.node_key).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND, "{}", gone.body);
        let refused = assign(two).await;
        assert_eq!(refused.code(), "WRONG_STATE");
        // There is no earlier good bundle, so the node keeps this one.
        world
            .post(&format!("{}/revoke", path(one)), &full, Value::Null)
            .await;
        assert_eq!(desired().await.counter, 4);
        assert_eq!(world.app.recall_bundles(world.app.now()).await.unwrap(), 0);
        assign(three).await;
        assert_eq!(desired().await.digest, three.text("digest"));
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_node_gets_the_archives_of_its_orders_alone() {
    for world in worlds().await {
        let full = world.full_key().await;
        let (other, other_key) = world.new_node(world.tenant()).await;
        let mut bundles = Vec::new();
        for port in 1..=4 {
            let made = create(&world, &full, &config(&format!("127.0.0.1:{port}"))).await;
            bundles.push(made);
        }
        let fetch = async |(node, key), bundle: &Answer| {
            let path = format!("/nodes/{node}/bundles/{}/archive", bundle.text("id"));
            world.get(&path, key).await.status
        };
        let own = (world.node, &world.node_key);
        assert_eq!(fetch(own, &bundles[0]).await, StatusCode::NOT_FOUND);
        for (index, status) in [
            (0, StatusCode::OK),
            (1, StatusCode::OK),
            (2, StatusCode::NOT_FOUND),
        ] {
            let place = format!("{}/assign", path(&bundles[index]));
            let assigned = world
                .post(&place, &full, json!({"nodes": [world.node]}))
                .await;
            assert_eq!(assigned.status, StatusCode::OK, "{}", assigned.body);
            assert_eq!(fetch(own, &bundles[index]).await, StatusCode::OK);
            // The previous order may be in progress; older ones may not.
            assert_eq!(fetch(own, &bundles[0]).await, status);
        }
        // A node's report does not start a drift.
        let heartbeat_request = json!({"health": {"cpu_percent": 1.0}, "status": {
            "active": bundles[3].text("id"), "last_good": bundles[3].text("id"),
        }});
        let heartbeat = world
            .post(
                "/nodes/{node}/heartbeat",
                &world.node_key,
                heartbeat_request,
            )
            .await;
        assert_eq!(heartbeat.status, StatusCode::OK, "{}", heartbeat.body);
        assert_eq!(fetch(own, &bundles[3]).await, StatusCode::NOT_FOUND);
        // A revoked bundle is not chosen as the node's former one either.
        let revoke = format!("{}/revoke", path(&bundles[2]));
        world.post(&revoke, &full, Value::Null).await;
        let desired = world.get("/nodes/{node}/desired", &world.node_key).await;
        let back = &desired.body["order"]["bundle"];
        assert_eq!(*back, bundles[1].text("id"), "{}", desired.body);
        assert_eq!(fetch(own, &bundles[3]).await, StatusCode::NOT_FOUND);
        let missing = fetch((other, &other_key), &bundles[2]).await;
        assert_eq!(missing, StatusCode::NOT_FOUND, "it is another node's order");
    }
}

#[tokio::test]
async fn only_nodes_of_the_project_are_ordered() {
    for world in worlds().await {
        let full = world.full_key().await;
        let made = create(&world, &full, &config("127.0.0.1:80")).await;
        let (foreign, foreign_key) = world.new_node(world.other).await;
        let many: Vec<Uuid> = (0..201).map(|_| Uuid::now_v7()).collect();
        for nodes in [
            json!([]),
            json!([foreign]),
            json!([world.node, foreign]),
            json!(many),
        ] {
            let path = format!("{}/assign", path(&made));
            let refused = world.post(&path, &full, json!({"nodes": nodes})).await;
            let field = &refused.body["error"]["details"][0]["field"];
            assert_eq!(field, "nodes", "{}", refused.body);
        }
        let desired = world.get("/nodes/{node}/desired", &world.node_key).await;
        assert_eq!(desired.body["order"], Value::Null, "nothing half done");
        let archive = format!("/nodes/{foreign}/bundles/{}/archive", made.text("id"));
        let missing = world.get(&archive, &foreign_key).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND, "{}", missing.body);
    }
}

#[tokio::test]
async fn two_bundles_are_compared_by_their_effective_settings() {
    for world in worlds().await {
        let full = world.full_key().await;
        let before = create(&world, &full, &config("127.0.0.1:80")).await;
        let after = create(&world, &full, &config("127.0.0.1:81")).await;
        let diff = async |before: &str| {
            let path = format!("{}/diff?before={before}", path(&after));
            world.get(&path, &full).await
        };
        let found = diff(&before.text("id")).await;
        let expected = json!({
            "risks": [{
                "class": "listener-removed", "subject": "listener a",
                "change": "listens on 127.0.0.1:81 instead of 127.0.0.1:80",
            }],
            "requests": [],
            "omitted_requests": 0,
            "unreachable_routes": [],
            "parts": [],
            "drained": [],
            "limits": [],
            "settings": [{
                "path": "listeners.listener[\"a\"].address", "change": "changed",
                "before": ["127.0.0.1:80"], "after": ["127.0.0.1:81"], "routes": [],
            }],
            "omitted": 0,
            "files": [{"name": "proxy.kdl", "change": "changed"}],
        });
        assert_eq!(found.body, expected);
        let same = diff(&after.text("id")).await;
        assert_eq!(same.body["settings"], json!([]));
        let unknown = diff(&after.text("id").replace('0', "1")).await;
        assert_eq!(unknown.status, StatusCode::UNPROCESSABLE_ENTITY);
        let garbage = diff("x").await;
        assert_eq!(garbage.status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn requests_that_another_route_takes_are_risks_of_a_bundle() {
    for world in worlds().await {
        let full = world.full_key().await;
        let config = |path: &str| {
            format!(
                r#"listeners {{ listener "a" {{ address "127.0.0.1:8080" }} }}
                routes {{
                    route "api" {{ matches {{ path-prefix "{path}" }}; upstream "api" }}
                    route "site" {{ upstream "site" }}
                }}
                upstreams {{
                    upstream "api" {{ target "10.0.0.1:80" }}
                    upstream "site" {{ target "10.0.0.2:80" }}
                }}"#
            )
        };
        let before = create(&world, &full, &config("/api")).await;
        let after = create(&world, &full, &config("/api/")).await;
        let path = format!("{}/diff?before={}", path(&after), before.text("id"));
        let found = world.get(&path, &full).await.body;
        assert_eq!(found["risks"][0]["class"], "requests-moved", "{found}");
        assert_eq!(
            found["requests"],
            json!([{
                "listeners": ["a"], "hosts": ["*"], "paths": ["/api"], "conditions": [],
                "before": "api (upstream api)", "after": "site (upstream site)",
                "example": "GET http://other.example/api",
            }])
        );
    }
}

/// Another certificate for the same names is a file that differs; for other names it is weaker TLS.
#[tokio::test]
async fn a_renewed_certificate_does_not_weaken_tls() {
    for world in worlds().await {
        let full = world.full_key().await;
        let with = async |host: &str, name: &str| {
            let made = rcgen::generate_simple_self_signed(vec![host.to_owned()]).unwrap();
            let chain = made.cert.pem();
            let key = made.signing_key.serialize_pem();
            let new = json!({"name": name, "chain_pem": chain, "private_key_pem": key});
            let certificate = world
                .post("/projects/{project}/certificates", &full, new)
                .await;
            assert_eq!(
                certificate.status,
                StatusCode::CREATED,
                "{}",
                certificate.body
            );
            let id = certificate.text("id");
            let file = format!("certificates/{id}.pem");
            let config = format!(
                "listeners {{ listener \"a\" {{ address \"127.0.0.1:443\"; protocol \"https\"; \
                 tls {{ cert-file {file:?}; key-file \"certificates/{id}.key\" }} }} }}"
            );
            let files = json!({"proxy.kdl": config, (file): chain});
            let body = json!({"name": "edge", "files": files});
            world.post(BUNDLES, &full, body).await
        };
        let before = with("a.example.com", "before").await;
        for (host, is_weaker) in [("a.example.com", false), ("b.example.com", true)] {
            let after = with(host, host).await;
            let path = format!("{}/diff?before={}", path(&after), before.text("id"));
            let found = world.get(&path, &full).await.body;
            let risks = found["risks"]
                .as_array()
                .unwrap_or_else(|| panic!("{found}"));
            let is_in = |class: &str| risks.iter().any(|risk| risk["class"] == class);
            assert_eq!(is_in("tls-weakened"), is_weaker, "{host}: {found}");
            assert!(is_in("unlisted"), "{host}: {found}");
        }
    }
}

#[tokio::test]
async fn a_request_is_explained_under_a_bundle_by_the_code_of_the_proxy() {
    for world in worlds().await {
        let full = world.full_key().await;
        let config = r#"listeners { listener "a" { address "127.0.0.1:8080" } }
            routes {
                route "beta" { matches { header "x-env" "beta" }; upstream "beta" }
                route "rest" { upstream "live" }
            }
            upstreams {
                upstream "beta" { target "10.0.0.1:80" }
                upstream "live" { target "10.0.0.2:80" }
            }"#;
        let made = create(&world, &full, config).await;
        let explain = format!("{}/explain", path(&made));
        let asked = async |question: Value| world.post(&explain, &full, question).await;
        let beta = json!({"url": "http://a.example/", "headers": {"x-env": ["beta"]}});
        for (question, route, upstream) in [
            (beta, "beta", "beta"),
            (
                json!({"url": "/", "client_ip": "2001:db8::1"}),
                "rest",
                "live",
            ),
        ] {
            let reported = asked(question).await;
            assert_eq!(reported.status, StatusCode::OK, "{}", reported.body);
            assert_eq!(reported.body["route"]["name"], route, "{}", reported.body);
            assert_eq!(reported.body["outcome"]["upstream"]["name"], upstream);
        }
        for (question, field) in [
            (json!({"url": "shop"}), "url"),
            (json!({"url": "/", "method": "G T"}), "method"),
            (
                json!({"url": "/", "headers": {"content-length": "x"}}),
                "headers",
            ),
            (json!({"url": "/", "listener": "b"}), "listener"),
        ] {
            let refused = asked(question).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
            let named = &refused.body["error"]["details"][0]["field"];
            assert_eq!(named, field, "{}", refused.body);
        }
        let rejected = create(&world, &full, "limits { wrong 1 }").await;
        let explain = format!("{}/explain", path(&rejected));
        let refused = world.post(&explain, &full, json!({"url": "/"})).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.body);
    }
}

#[tokio::test]
async fn recorded_requests_are_replayed_through_two_bundles() {
    for world in worlds().await {
        let full = world.full_key().await;
        let configured = |route: &str| {
            format!(
                r#"listeners {{ listener "a" {{ address "127.0.0.1:8080" }} }}
                routes {{ {route} route "rest" {{ upstream "live" }} }}
                upstreams {{ upstream "live" {{ target "10.0.0.2:80" }} }}"#
            )
        };
        let old = create(&world, &full, &configured("")).await;
        let api = r#"route "api" { matches { path-prefix "/api" }; upstream "live" };"#;
        let new = create(&world, &full, &configured(api)).await;
        let replay = format!("{}/replay", path(&new));
        let lines = r#"{"method":"GET","path":"/api/a?token=1","host":"shop.test"}
            {"method":"GET","path":"/","host":"shop.test"}
            no request"#;
        let ask = async |before: String, recording: &str| {
            let body = json!({"before": before, "recording": recording});
            world.post(&replay, &full, body).await
        };
        let found = ask(old.text("id"), lines).await;
        assert_eq!(found.status, StatusCode::OK, "{}", found.body);
        let expected = json!({
            "requests": 2, "different": 1, "kinds": 2, "omitted_differences": 0,
            "unlike_recorded": 0, "unlike_example": null, "skipped_lines": 1,
            "differences": [{
                "before": "rest (upstream live)", "after": "api (upstream live)",
                "requests": 1, "example": "GET shop.test/api/a",
            }],
        });
        assert_eq!(found.body, expected);
        for (before, recording, field) in [
            (old.text("id"), "no request", "recording"),
            (Uuid::nil().to_string(), lines, "before"),
        ] {
            let refused = ask(before, recording).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
            let named = &refused.body["error"]["details"][0]["field"];
            assert_eq!(named, field, "{}", refused.body);
        }
        let rejected = create(&world, &full, "limits { wrong 1 }").await;
        let refused = ask(rejected.text("id"), lines).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.body);
    }
}

#[tokio::test]
async fn changed_bytes_in_the_object_store_are_noticed() {
    for world in worlds().await {
        let full = world.full_key().await;
        let made = create(&world, &full, &config("127.0.0.1:80")).await;
        let file = world
            .objects
            .path()
            .join(format!("bundles/{}", world.org))
            .join(format!("{}.tar.zst", made.text("digest")));
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).unwrap();
        let checked = world.get(&format!("{}/verify", path(&made)), &full).await;
        assert_eq!(checked.body["valid"], false);
        assert_eq!(checked.body["digest_matches"], false);
        assert_eq!(checked.body["signature_matches"], true);
        let sbom = world.get(&format!("{}/sbom", path(&made)), &full).await;
        assert_eq!(sbom.status, StatusCode::INTERNAL_SERVER_ERROR);
        fs::remove_file(&file).unwrap();
        let checked = world.get(&format!("{}/verify", path(&made)), &full).await;
        assert_eq!(checked.body["valid"], false, "{}", checked.body);
        let again = create(&world, &full, &config("127.0.0.1:80")).await;
        assert_eq!(again.text("state"), "signed", "the bytes are stored anew");
        let checked = world.get(&format!("{}/verify", path(&made)), &full).await;
        assert_eq!(checked.body["valid"], true);
    }
}

#[tokio::test]
async fn services_become_a_bundle_without_private_keys() {
    for world in worlds().await {
        let full = world.full_key().await;
        let make = async |noun: &str, body: Value| {
            let path = format!("/projects/{{project}}/{noun}");
            let made = world.post(&path, &full, body).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
            made
        };
        let certificate = sample("/projects/{project}/certificates");
        let key = certificate["private_key_pem"].as_str().unwrap().to_owned();
        let certificate = make("certificates", certificate).await;
        let upstream = sample("/projects/{project}/upstreams");
        let upstream = make("upstreams", upstream).await;
        let service = json!({
            "name": "a \"quoted\" name", "host": "a.example.com",
            "upstream": upstream.text("id"), "certificate": certificate.text("id"),
        });
        make("services", service).await;

        let body = json!({"name": "edge", "services": {"https": "0.0.0.0:443"}});
        let made = world.post(BUNDLES, &full, body).await;
        assert_eq!(made.text("state"), "signed", "{}", made.body);
        let download = world.get(&format!("{}/download", path(&made)), &full).await;
        let files = unpack(&download.bytes).unwrap().files;
        let chain = format!("certificates/{}.pem", certificate.text("id"));
        let names: Vec<&String> = files.keys().collect();
        assert_eq!(names, [&chain, "proxy.kdl"]);
        let secret = key.lines().nth(1).unwrap();
        for (name, bytes) in &files {
            let text = String::from_utf8_lossy(bytes);
            assert!(
                !text.contains("PRIVATE") && !text.contains(secret),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn verify_reports_the_deactivation_of_the_signing_key() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let all = "/projects/{project}/bundles";
        let made = world.post(all, &admin, sample(all)).await;
        let verify = format!("{all}/{}/verify", made.text("id"));
        let before = world.get(&verify, &admin).await;
        assert_eq!(
            before.body["signing_key_state"], "active",
            "{}",
            before.body
        );
        assert_eq!(before.body["signing_key_deactivated_at"], Value::Null);
        assert_eq!(before.body["valid"], true);
        let keys = "/orgs/{org}/signing-keys";
        let kid = before.text("kid");
        world
            .post(&format!("{keys}/rotate"), &admin, Value::Null)
            .await;
        let path = format!("{keys}/{kid}/deactivate");
        let done = world.post(&path, &admin, Value::Null).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
        let after = world.get(&verify, &admin).await;
        assert_eq!(
            after.body["signing_key_state"], "deactivated",
            "{}",
            after.body
        );
        assert_eq!(after.body["valid"], false, "the key may have leaked");
        let at = after.text("signing_key_deactivated_at");
        assert_eq!(done.text("deactivated_at"), at);
    }
}

#[tokio::test]
async fn everything_with_a_name_can_be_renamed() {
    for world in worlds().await {
        let key = world.full_key().await;
        let tokens = "/projects/{project}/enrolment-tokens";
        for (path, list) in [
            (BUNDLES, BUNDLES),
            (tokens, tokens),
            ("/api-keys", "/api-keys"),
        ] {
            let made = world.post(path, &key, sample(path)).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
            let place = format!("{path}/{}", made.text("id"));
            let (good, blank) = (json!({"name": "other"}), json!({"name": " "}));
            let renamed = world.send(&Method::PATCH, &place, &key, &good, &[]);
            assert_eq!(renamed.await.text("name"), "other", "{path}");
            let bad = world.send(&Method::PATCH, &place, &key, &blank, &[]);
            assert_eq!(bad.await.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
            let listed = world.get(list, &key).await.body;
            let mut items = listed["items"].as_array().unwrap().iter();
            let found = items.any(|item| item["id"] == made.body["id"] && item["name"] == "other");
            assert!(found, "{path} {listed}");
        }
    }
}

#[tokio::test]
async fn a_list_begins_with_the_newest_and_is_filtered_by_name() {
    for world in worlds().await {
        let key = world.full_key().await;
        for name in ["edge-1", "edge-2", "inner"] {
            let mut body = sample(BUNDLES);
            body["name"] = json!(name);
            assert_eq!(
                world.post(BUNDLES, &key, body).await.status,
                StatusCode::CREATED
            );
        }
        let names = async |query: &str| {
            let list = world.get(&format!("{BUNDLES}?{query}"), &key).await.body;
            let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
            let names = items
                .iter()
                .map(|item| item["name"].as_str().unwrap().to_owned());
            (names.collect::<Vec<_>>(), list["next_cursor"].clone())
        };
        let (first, cursor) = names("limit=2").await;
        assert_eq!(first, ["inner", "edge-2"]);
        let cursor = cursor.as_str().unwrap().to_owned();
        let (second, end) = names(&format!("limit=2&cursor={cursor}")).await;
        assert_eq!((second, end), (vec!["edge-1".to_owned()], Value::Null));
        assert_eq!(names("order=oldest").await.0, ["edge-1", "edge-2", "inner"]);
        assert_eq!(names("name=edge-*").await.0, ["edge-2", "edge-1"]);
        assert_eq!(names("name=inner&state=signed").await.0, ["inner"]);
        assert_eq!(names("name=inner&state=rejected").await.0, [""; 0]);
        let wrong = world.get(&format!("{BUNDLES}?order=random"), &key).await;
        assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    }
}
