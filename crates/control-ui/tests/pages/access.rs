//! Access control: every page with every role.

use crate::fleet::Fleet;
use crate::headers::{shown_pages, shown_rows};
use crate::world::{Shown, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Access, Role};
use control_ui::PAGES;

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_for_those_of_its_row_alone() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let (reader, operator) = (
            world.member(Role::Reader).await,
            world.member(Role::Operator).await,
        );
        let stranger = world.stranger().await;
        for (row, path) in shown_rows().zip(shown_pages(&fleet)) {
            let needed = if let Access::Member { role, .. } = row.access {
                Some(role)
            } else {
                None
            };
            let without = world.get(&path, "").await;
            assert_eq!(without.status, StatusCode::SEE_OTHER, "{path}");
            assert!(
                without
                    .header("location")
                    .starts_with("/sign-in?return=%2F"),
                "{path}"
            );
            for (session, role) in [(&reader, Role::Reader), (&operator, Role::Operator)] {
                let shown = world.get(&path, session).await;
                let expected = match needed {
                    _ if row.access == Access::InstanceAdmin => StatusCode::FORBIDDEN,
                    Some(needed) if role < needed => StatusCode::FORBIDDEN,
                    _ if path == "/" => StatusCode::SEE_OTHER,
                    _ => StatusCode::OK,
                };
                assert_eq!(
                    shown.status, expected,
                    "{path} for a {role}: {}",
                    shown.text
                );
            }
            let shown = world.get(&path, &stranger).await;
            // A user without an organization has no role anywhere.
            let refused = [StatusCode::NOT_FOUND, StatusCode::FORBIDDEN];
            let is_open = needed.is_none() && row.access != Access::InstanceAdmin;
            assert!(
                is_open || refused.contains(&shown.status),
                "{path}: {}",
                shown.status
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_and_link_of_a_page_leads_to_a_row_that_the_actor_may_use() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        for role in [Role::Reader, Role::Operator, Role::Admin] {
            let session = world.member(role).await;
            for path in shown_pages(&fleet) {
                let shown = world.get(&path, &session).await;
                check_ways_on(&path, &shown, role);
            }
        }
    }
}

/// Checks the forms and links on a page, or on the error page if the role may not see it.
fn check_ways_on(path: &str, shown: &Shown, role: Role) {
    for action in attributes(shown, "action=\"") {
        let is_search = !action.starts_with("/profile/") && row(&action, &Method::GET).is_some();
        let found = row(&action, &Method::POST);
        assert!(
            is_search || found.is_some(),
            "{path}: no row takes {action}"
        );
        let allowed = found.is_none_or(|access| is_allowed(access, role));
        assert!(is_search || allowed, "{path} offers {action} to a {role}");
    }
    // Single sign-on, archives and the export of the audit log are outside of the page table.
    let others = ["/assets/", "/sso/", "/api/v1/"];
    for link in attributes(shown, "href=\"") {
        if !link.starts_with('/') || others.iter().any(|other| link.starts_with(other)) {
            continue;
        }
        let access = row(&link, &Method::GET);
        let access = access.unwrap_or_else(|| panic!("{path}: no row shows {link}"));
        assert!(is_allowed(access, role), "{path} leads a {role} to {link}");
    }
}

fn is_allowed(access: Access, role: Role) -> bool {
    let is_refused = matches!(access, Access::Member { role: needed, .. } if role < needed);
    !is_refused && access != Access::InstanceAdmin
}

/// Destructive commands without a confirmation page. A session or a token is replaced by a new one;
/// a deleted API key no longer works.
const UNANNOUNCED: &[&str] = &[
    "/profile/sessions/{session}/revoke",
    "/api-keys/{api_key}/delete",
    "/projects/{project}/enrolment-tokens/{enrolment_token}/revoke",
];

#[test]
fn a_page_announces_each_deletion() {
    let is_loss = |path: &str| {
        let last = path.rsplit('/').next().unwrap();
        ["delete", "remove", "revoke", "deactivate"].contains(&last)
    };
    let commands = PAGES.iter().filter(|row| row.method == Method::POST);
    let lost = commands.filter(|row| is_loss(row.path));
    let unannounced = lost.map(|row| row.path).filter(|path| {
        !PAGES
            .iter()
            .any(|row| row.method == Method::GET && row.path == *path)
    });
    assert_eq!(unannounced.collect::<Vec<_>>(), UNANNOUNCED);
}

/// Returns the access rule for a path.
fn row(path: &str, method: &Method) -> Option<Access> {
    let path = path.split(['?', '#']).next().unwrap();
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |row: &str| {
        let own: Vec<&str> = row.split('/').collect();
        let same = |(own, part): (&&str, &&str)| own == part || own.starts_with('{');
        own.len() == parts.len() && own.iter().zip(&parts).all(same)
    };
    let exact = PAGES
        .iter()
        .find(|row| row.path == path && row.method == *method);
    let found = exact.or_else(|| {
        PAGES
            .iter()
            .find(|row| row.method == *method && fits(row.path))
    });
    found.map(|row| row.access)
}

fn attributes(shown: &Shown, name: &str) -> Vec<String> {
    let parts = shown.text.split(name).skip(1);
    let values = parts.filter_map(|rest| rest.split('"').next());
    values.map(|value| value.replace("&#38;", "&")).collect()
}
