//! Changing services and upstreams, comparing drifts, filtering nodes, and deleting projects and
//! keys.

use crate::fleet::Fleet;
use crate::world::{Shown, World, between, worlds};
use axum::http::StatusCode;
use control_domain::{NodeStanding, Role};
use control_http::SessionCookie;
use control_testkit::Database;

/// Returns the version in a form.
fn version(shown: &Shown) -> String {
    between(&shown.text, "name=\"version\" value=\"", "\"").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_keeps_the_settings_that_its_form_does_not_show() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let page = format!("/projects/{{project}}/upstreams/{}", fleet.upstream);
        let shown = world.get(&page, &world.admin).await;
        assert_eq!(shown.heading(), "cart has 2 targets, for 1 service.");
        assert!(shown.text.contains("health-check"), "{}", shown.text);
        let version = version(&shown);
        let send = async |version: &str, targets: &str| {
            let fields = [
                ("version", version),
                ("name", "cart"),
                ("targets", targets),
                ("load_balancing", "weighted"),
                ("tls", "yes"),
                ("server_name", "cart.internal"),
            ];
            world.submit(&page, &page, &world.admin, &fields).await
        };
        let refused = send(&version, "10.4.0.11").await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        let fault = refused.text.contains("id=\"targets-fault\"");
        assert!(fault, "{}", refused.text);
        let done = send(&version, "10.4.0.11:8080 3\r\n10.4.0.13:8080").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        assert_eq!(done.header("location"), world.path(&page));
        // A form that was loaded before the change.
        let late = send(&version, "10.4.0.99:8080").await;
        assert_eq!(late.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(late.text.contains("Another request changed this"));
        let both = ["<code>10.4.0.11:8080 weight 3</code>", "10.4.0.99:8080"];
        for part in both {
            assert!(late.text.contains(part), "{part}: {}", late.text);
        }
        let call = world.call().await;
        let stored = world.app.upstream(&call, world.project, fleet.upstream);
        let stored = stored.await.unwrap().value;
        assert_eq!(stored.targets[0].weight, 3);
        let tls = stored.tls.unwrap();
        assert_eq!(tls.server_name.as_deref(), Some("cart.internal"));
        assert!(stored.settings.contains("/healthz"), "{}", stored.settings);
        let reader = world.member(Role::Reader).await;
        let read = world.get(&page, &reader).await;
        assert!(!read.text.contains("<textarea"), "{}", read.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_changed_by_its_form() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let page = format!("/projects/{{project}}/services/{}", fleet.service);
        let shown = world.get(&page, &world.admin).await;
        assert_eq!(
            shown.heading(),
            "shop-api sends requests to shop.example.com/api to cart."
        );
        let (version, upstream) = (version(&shown), fleet.upstream.to_string());
        let send = async |version: &str, path: &str, certificate: &str| {
            let fields = [
                ("version", version),
                ("name", "shop-api"),
                ("host", "shop.example.com"),
                ("path_prefix", path),
                ("upstream", upstream.as_str()),
                ("certificate", certificate),
                ("priority", "7"),
            ];
            world.submit(&page, &page, &world.admin, &fields).await
        };
        let certificate = fleet.certificate.to_string();
        for (path, certificate, field) in [
            ("api", certificate.as_str(), "path_prefix"),
            ("/api", "another", "certificate"),
        ] {
            let refused = send(&version, path, certificate).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
            let fault = format!("id=\"{field}-fault\"");
            assert!(refused.text.contains(&fault), "{}", refused.text);
        }
        let done = send(&version, "", &certificate).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let late = send(&version, "/late", &certificate).await;
        assert_eq!(late.status, StatusCode::UNPROCESSABLE_ENTITY);
        let after = world.get(&page, &world.admin).await;
        assert_eq!(
            after.heading(),
            "shop-api sends requests to shop.example.com to cart."
        );
        let call = world.call().await;
        let stored = world.app.service(&call, world.project, fleet.service);
        let stored = stored.await.unwrap().value;
        assert_eq!((stored.path_prefix, stored.priority), (None, 7));
        assert_eq!(stored.certificate, Some(fleet.certificate));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_of_services_is_created_by_its_form() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let page = "/projects/{project}/bundles/new/services";
        let services = world
            .get("/projects/{project}/services", &world.admin)
            .await;
        let link = world.path(page);
        assert!(services.text.contains(&link), "{}", services.text);
        let send = async |http: &str, https: &str| {
            let fields = [("name", "shop"), ("http", http), ("https", https)];
            world.submit(page, page, &world.admin, &fields).await
        };
        let refused = send("", "").await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.text.contains("role=\"alert\""), "{}", refused.text);
        let done = send("0.0.0.0:8080", "0.0.0.0:8443").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let call = world.call().await;
        let newest = world.app.newest_bundles(&call, world.project, None, 1);
        let made = newest.await.unwrap().remove(0).value;
        let files = world.app.bundle_files(&call, world.project, made.id);
        let text = String::from_utf8(files.await.unwrap()["proxy.kdl"].clone()).unwrap();
        let service = world.app.service(&call, world.project, fleet.service);
        let service = service.await.unwrap().value.name;
        assert!(text.contains(service.as_str()), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_was_refused_replaces_no_change_of_another_person() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let page = format!("/projects/{{project}}/services/{}", fleet.service);
        let upstream = fleet.upstream.to_string();
        let send = async |version: &str, host: &str, path: &str| {
            let fields = [
                ("version", version),
                ("name", "shop-api"),
                ("host", host),
                ("path_prefix", path),
                ("upstream", upstream.as_str()),
                ("priority", "0"),
            ];
            world.submit(&page, &page, &world.admin, &fields).await
        };
        let first = version(&world.get(&page, &world.admin).await);
        let other = send(&first, "other.example.com", "/other").await;
        assert_eq!(other.status, StatusCode::SEE_OTHER, "{}", other.text);
        // A mistake in a form that was opened before that change.
        let refused = send(&first, "shop.example.com", "no slash").await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(version(&refused), first, "{}", refused.text);
        let conflict = send(&version(&refused), "shop.example.com", "/mine").await;
        assert_eq!(conflict.status, StatusCode::UNPROCESSABLE_ENTITY);
        let notice = between(&conflict.text, "role=\"alert\"", "</div></div>");
        for part in ["/other", "/mine", "other.example.com", "shop.example.com"] {
            assert!(notice.contains(part), "{part}: {notice}");
        }
        let call = world.call().await;
        let stored = world.app.service(&call, world.project, fleet.service);
        let stored = stored.await.unwrap();
        assert_eq!(stored.value.path_prefix.as_deref(), Some("/other"));
        assert_eq!(version(&conflict), stored.version.to_string());
        let done = send(&version(&conflict), "shop.example.com", "/mine").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        // A form without a version replaces nothing either.
        let without = send("", "shop.example.com", "/without").await;
        assert_eq!(without.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drift_shows_the_settings_that_differ() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let page = format!("/projects/{{project}}/drift/{}", fleet.drift);
        let reader = world.member(Role::Reader).await;
        let shown = world.get(&page, &reader).await;
        assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
        let heading = shown.heading();
        assert!(
            heading.ends_with("runs “cart-timeouts” instead of “spring-sale”."),
            "{heading}"
        );
        let settings = between(&shown.text, "id=\"settings\"", "</table>");
        for part in ["request-secs", "<code>60</code>", "<code>2</code>"] {
            assert!(settings.contains(part), "{part}: {}", shown.text);
        }
        assert!(!shown.text.contains("Assign again"), "for operators");
        let list = world.get("/projects/{project}/drift", &reader).await;
        assert!(list.text.contains(&world.path(&page)), "{}", list.text);
        let overview = world.get("/projects/{project}", &reader).await;
        assert!(overview.text.contains(&world.path(&page)));
        let resolve = format!("{page}/resolve");
        let remedy = [("remedy", "reorder")];
        let done = world.submit(&page, &resolve, &world.admin, &remedy).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let after = world.get(&page, &world.admin).await;
        let heading = after.heading();
        assert!(
            heading.ends_with("no longer differs from its assigned bundle."),
            "{heading}"
        );
        assert!(!after.text.contains("Assign again"), "{}", after.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_deleted_by_its_name_once_it_has_no_node() {
    for world in worlds().await {
        let page = "/projects/{project}/delete";
        let shown = world.get(page, &world.admin).await;
        assert_eq!(shown.heading(), "Delete edge?");
        let wrong = [("name", "Edge")];
        let refused = world.submit(page, page, &world.admin, &wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.text.contains("id=\"name-fault\""));
        let stale = world.stale_admin().await;
        let asked = world.get(page, &stale).await;
        assert!(asked.header("location").starts_with("/profile/prove"));
        let right = [("name", "edge")];
        let done = world.submit(page, page, &world.admin, &right).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let gone = world.get("/projects/{project}", &world.admin).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_with_nodes_is_not_deleted() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let _fleet = Fleet::new(&world).await;
    let page = "/projects/{project}/delete";
    let shown = world.get(page, &world.admin).await;
    let message = "It has 12 nodes: delete them first.";
    assert!(shown.text.contains(message), "{}", shown.text);
    let form = "method=\"post\" action=\"/projects/";
    assert!(!shown.text.contains(form), "{}", shown.text);
    let csrf = shown.csrf().to_owned();
    let name = [("name", "edge")];
    let refused = world.post(page, &world.admin, &csrf, &name).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let call = world.call().await;
    let counted = world.app.count_standings(&call, world.project).await;
    let drifted = counted.unwrap().get(&NodeStanding::Drifted).copied();
    assert_eq!(drifted, Some(1), "the project is as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_acts_no_more_is_deleted() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let (org, page) = (world.org.to_string(), world.path("/api-keys?org={org}"));
    let fields = [("org", org.as_str()), ("name", "deploy"), ("days", "30")];
    let made = world.submit(&page, "/api-keys", &world.admin, &fields);
    assert_eq!(made.await.status, StatusCode::OK);
    let list = world.get(&page, &world.admin).await;
    let id = between(&list.text, "href=\"/api-keys/", "/revoke\"").to_owned();
    let revoke = format!("/api-keys/{id}/revoke");
    let asked = world.get(&revoke, &world.admin).await;
    assert_eq!(asked.heading(), "Revoke deploy?");
    let step = async |step: &str| {
        let path = format!("/api-keys/{id}/{step}");
        let done = world.submit(&page, &path, &world.admin, &[]).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        world.get(&page, &world.admin).await.text
    };
    let kept = step("delete").await;
    assert!(kept.contains(">deploy</th>"), "a key that acts: {kept}");
    let revoked = step("revoke").await;
    let delete = format!("action=\"/api-keys/{id}/delete\"");
    assert!(revoked.contains(&delete), "{revoked}");
    let deleted = step("delete").await;
    assert!(!deleted.contains(">deploy</th>"), "{deleted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_filtered_by_labels_that_they_lack_and_by_their_bundle() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let heading = async |query: &str| {
            let path = format!("/projects/{{project}}/nodes?{query}");
            let shown = world.get(&path, &world.admin).await;
            assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
            shown.heading().to_owned()
        };
        for (query, expected) in [
            (
                "q=-region%3Afra",
                "8 nodes are without the label region:fra.",
            ),
            (
                "q=region%3Afra+-region%3Adub",
                "4 nodes have the label region:fra, and not region:dub.",
            ),
            (
                "q=region%3Afra+region%3Adub",
                "No node has the labels region:fra and region:dub.",
            ),
        ] {
            assert_eq!(heading(query).await, expected);
        }
        let bundle = format!("/projects/{{project}}/bundles/{}", fleet.cart);
        let bundle = world.get(&bundle, &world.admin).await;
        let link = between(&bundle.text, "/nodes?", "\"").to_owned();
        assert_eq!(link, format!("bundle={}", fleet.cart));
        let running = heading(&link).await;
        assert!(running.ends_with(" run “cart-timeouts”."), "{running}");
    }
}
