//! Header field `Location`: the address of a created resource.

use crate::access::{fresh_body, right, target};
use crate::world::{Answer, Credential, World, worlds};
use axum::http::{Method, StatusCode};
use control_api::{ROUTES, Route, description};
use control_domain::Tenant;

/// Returns true if `path` matches `template`, with identifiers for its parts in braces.
fn fits(path: &str, template: &str) -> bool {
    let (parts, places): (Vec<_>, Vec<_>) =
        (path.split('/').collect(), template.split('/').collect());
    let fit = |(part, place): (&&str, &&str)| part == place || place.starts_with('{');
    parts.len() == places.len() && parts.iter().zip(&places).all(fit)
}

/// Returns a credential that can read the created resource, which may be in another organization.
async fn reader(world: &World, route: &Route, by: &Credential, made: &Answer) -> Credential {
    match route.path {
        "/orgs" => by.clone(),
        "/setup" => {
            let cookie = made.header("set-cookie");
            Credential::Session(cookie.split(['=', ';']).nth(1).unwrap().to_owned())
        }
        "/invitations/join" => {
            let other = Tenant::org(world.other.org);
            world.store_key(&world.key(other, &[])).await
        }
        _ => world.full_key().await,
    }
}

#[tokio::test]
async fn a_created_resource_is_at_its_location() {
    for world in worlds().await {
        for route in ROUTES {
            let Some(template) = route.creates else {
                continue;
            };
            let by = right(&world, route.access).await.remove(0);
            let path = target(&world, route).await;
            let body = fresh_body(&world, route.path).await;
            let made = world.post(&path, &by, body).await;
            let place = route.path;
            assert_eq!(made.status, StatusCode::CREATED, "{place}: {}", made.body);
            let location = made.header("location");
            let below = location.strip_prefix("/api/v1").unwrap_or_default();
            assert!(fits(below, template), "{place}: {location:?}");
            let reader = reader(&world, route, &by, &made).await;
            let found = world.get(below, &reader).await;
            assert_eq!(found.status, StatusCode::OK, "{place}: {}", found.body);
        }
    }
}

#[test]
fn a_row_that_creates_names_a_path_that_is_read() {
    for route in ROUTES {
        let read = |path: &str| {
            let mut rows = ROUTES.iter();
            rows.any(|row| row.method == Method::GET && row.path == path)
        };
        let place = format!("{} {}", route.method, route.path);
        match route.creates {
            Some(path) => assert!(read(path), "{place}: {path}"),
            None if route.method == Method::POST => {
                let below = format!("{}/{{", route.path);
                let mut rows = ROUTES.iter();
                let own = rows.any(|row| {
                    let rest = row.path.strip_prefix(&below);
                    row.method == Method::GET && rest.is_some_and(|rest| !rest.contains('/'))
                });
                assert!(!own, "{place} creates what has a path of its own");
            }
            None => {}
        }
    }
}

#[test]
fn a_described_answer_has_its_location() {
    let document = description();
    for route in ROUTES {
        let method = route.method.as_str().to_lowercase();
        let path = format!("/api/v1{}", route.path);
        let answer = &document["paths"][&path][&method]["responses"]["201"];
        let declared = answer["headers"]["Location"]["schema"]["type"].as_str();
        let expected = route.creates.map(|_| "string");
        assert_eq!(declared, expected, "{method} {path}");
    }
}
