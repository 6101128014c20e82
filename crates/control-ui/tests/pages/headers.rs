//! Header fields of every page, and contents that no page may have.

use crate::fleet::Fleet;
use crate::world::{World, between, worlds};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use control_domain::Access;
use control_http::SessionCookie;
use control_testkit::Database;
use control_ui::{PAGES, Page};
use std::collections::BTreeSet;

/// Returns the pages for a session: without link pages, public pages, and the event stream.
pub(crate) fn shown_rows() -> impl Iterator<Item = &'static Page> {
    let pages = PAGES.iter().filter(|page| page.method == Method::GET);
    pages.filter(|page| {
        !matches!(
            page.access,
            Access::SetUp | Access::Invitee | Access::Public
        ) && page.path != "/events"
    })
}

/// Returns a path of each page, with IDs of the fleet.
pub(crate) fn shown_pages(fleet: &Fleet) -> Vec<String> {
    shown_rows()
        .map(|page| filled_path(fleet, page).replace("{api_key}", &fleet.api_key))
        .collect()
}

/// Fills the path of a row with IDs of the fleet.
pub(crate) fn filled_path(fleet: &Fleet, page: &Page) -> String {
    let path = page.path.replace("{node}", &fleet.nodes[0].to_string());
    let path = path.replace("{rollout}", &fleet.stopped.to_string());
    let path = path.replace("{bundle}", &fleet.cart.to_string());
    let path = path.replace("{command}", "rollback");
    let path = path.replace("{user}", &fleet.member.to_string());
    let path = path.replace("{signing_key}", &fleet.signing_key.to_string());
    let path = path.replace("{certificate}", &fleet.certificate.to_string());
    let managed = fleet.managed_certificate.to_string();
    let path = path.replace("{managed_certificate}", &managed);
    let path = path.replace("{webhook}", &fleet.webhook.to_string());
    let path = path.replace("{drift}", &fleet.drift.to_string());
    let path = path.replace("{upstream}", &fleet.upstream.to_string());
    let path = path.replace("{service}", &fleet.service.to_string());
    if path.ends_with("/diff") {
        format!("{path}?before={}", fleet.spring)
    } else {
        path
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_has_one_heading_and_the_strict_policy() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let public = ["/sign-in", "/sign-in/sso", "/sign-in/sso?org=acme"].map(str::to_owned);
        for path in shown_pages(&fleet).into_iter().chain(public) {
            let shown = world.get(&path, &world.admin).await;
            if path == "/" {
                assert_eq!(
                    shown.status,
                    StatusCode::SEE_OTHER,
                    "the only project is shown"
                );
                continue;
            }
            assert_eq!(shown.status, StatusCode::OK, "{path}: {}", shown.text);
            assert_eq!(shown.text.matches("<h1>").count(), 1, "{path}");
            assert!(
                shown.heading().ends_with(['.', '?']),
                "{path}: {}",
                shown.heading()
            );
            assert!(
                shown.text.len() < 100_000,
                "{path}: {} bytes",
                shown.text.len()
            );
            assert_eq!(repeated_ids(&shown.text), [""; 0], "{path}");
            let policy = shown.header("content-security-policy");
            for part in [
                "default-src 'none'",
                "script-src 'self'",
                "trusted-types 'none'",
                "frame-ancestors 'none'",
            ] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            assert_eq!(shown.header("cache-control"), "no-store", "{path}");
            assert_eq!(shown.header("x-content-type-options"), "nosniff", "{path}");
            assert_eq!(shown.header("referrer-policy"), "same-origin", "{path}");
            for forbidden in ["style=\"", "onclick", "<script>", "javascript:"] {
                assert!(!shown.text.contains(forbidden), "{path} has {forbidden}");
            }
            assert!(!shown.text.contains(&world.admin), "{path} has the session");
        }
    }
}

/// Returns element IDs that occur twice: labels and links for the second element would lead to the
/// first.
fn repeated_ids(page: &str) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let ids = page.split(" id=\"").skip(1);
    let ids = ids.filter_map(|rest| rest.split('"').next());
    ids.filter(|id| !seen.insert(*id)).collect()
}

#[tokio::test]
async fn files_are_kept_for_ever_and_others_are_not_found() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let page = world.get("/projects/{project}", &world.admin).await;
    let style = between(&page.text, "<link rel=\"stylesheet\" href=\"", "\"");
    let script = between(&page.text, "<script type=\"module\" src=\"", "\"");
    for path in [style, script] {
        let request = Request::builder()
            .uri(path)
            .header(header::ACCEPT_ENCODING, "gzip");
        let file = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(file.status, StatusCode::OK, "{path}");
        assert_eq!(
            file.header("cache-control"),
            "public, max-age=31536000, immutable"
        );
        assert_eq!(file.header("content-encoding"), "gzip");
    }
    let other = world.get("/assets/app-0000000000000000.css", "").await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
    let request = Request::builder()
        .uri("/nowhere")
        .header(header::ACCEPT, "text/html");
    let lost = world.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(lost.status, StatusCode::NOT_FOUND);
    assert_eq!(lost.heading(), "Not Found. No page has this address.");
}

#[tokio::test]
async fn a_wrong_method_is_a_page_for_browsers_and_a_status_for_programs() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    for (method, path) in [(Method::DELETE, "/profile"), (Method::GET, "/sign-out")] {
        let send = async |accept: &str| {
            let request = Request::builder().method(&method).uri(path);
            let request = request.header(header::ACCEPT, accept);
            world.send(request.body(Body::empty()).unwrap()).await
        };
        let page = send("text/html,*/*;q=0.8").await;
        assert_eq!(page.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(
            page.heading(),
            "Method Not Allowed. This address is not a page."
        );
        assert!(!page.header("allow").is_empty(), "{path}");
        assert!(page.header("content-security-policy").contains("'none'"));
        let plain = send("*/*").await;
        assert_eq!(plain.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(plain.text, "", "{path}");
    }
}
