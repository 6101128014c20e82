//! Fields of every form: the server reads exactly those on the page, each once.

use crate::fleet::Fleet;
use crate::headers::shown_pages;
use crate::world::{Shown, World, between};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, StatusCode, header};
use control_domain::{Access, Role};
use control_http::SessionCookie;
use control_testkit::Database;
use control_ui::{PAGES, Page};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use uuid::Uuid;

/// Returns the row of the page table that receives a form.
fn row(action: &str) -> &'static Page {
    let action = action.split('?').next().unwrap();
    let parts: Vec<&str> = action.split('/').collect();
    let fits = |row: &&Page| {
        let own: Vec<&str> = row.path.split('/').collect();
        let same = |(own, part): (&&str, &&str)| own == part || own.starts_with('{');
        own.len() == parts.len() && own.iter().zip(&parts).all(same)
    };
    let forms = || PAGES.iter().filter(|row| row.method == Method::POST);
    let exact = forms().find(|row| row.path == action);
    let found = exact.or_else(|| forms().find(fits));
    found.unwrap_or_else(|| panic!("no row takes {action}"))
}

/// Returns the POST forms on a page: their actions, and the names of their fields.
fn posted_forms(shown: &Shown) -> Vec<(String, Vec<String>)> {
    let forms = shown.text.split("<form ").skip(1);
    let forms = forms.map(|rest| rest.split("</form>").next().unwrap());
    let posted = forms.filter(|form| form.contains("method=\"post\""));
    let read = |form: &str| {
        let action = between(form, "action=\"", "\"").to_owned();
        let names = form.split(" name=\"").skip(1);
        let names = names.filter_map(|rest| rest.split('"').next());
        (action, names.map(str::to_owned).collect())
    };
    posted.map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_that_a_page_shows_is_one_of_its_form() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let public = ["/sign-in", "/sign-in/sso", "/sign-in/sso?org=acme"].map(str::to_owned);
    let mut seen = BTreeSet::new();
    for path in shown_pages(&fleet).into_iter().chain(public) {
        for (action, names) in posted_forms(&world.get(&path, &world.admin).await) {
            let row = row(&action);
            seen.insert(row.path);
            for name in names {
                let name = name.as_str();
                let is_known = name == "csrf" || row.fields.contains(&name);
                let is_known = is_known || row.boxes == Some(name);
                assert!(is_known, "{path}: {action} takes no field {name}");
            }
        }
    }
    assert!(30 < seen.len(), "{seen:?}");
}

/// Sends a form from an unused address, because attempts with secrets are limited.
async fn send(world: &World, path: &str, cookie: &str, form: &str, number: u8) -> Shown {
    let request = Request::post(world.path(path))
        .header(header::COOKIE, cookie)
        .header("sec-fetch-site", "same-origin")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(form.to_owned()));
    let peer = ConnectInfo(SocketAddr::from(([10, 0, 1, number], 40_000)));
    world.send_from(request.unwrap(), peer).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_or_a_repeated_field_is_refused_by_every_form() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let call = world.call().await;
    let invitation = world
        .app
        .create_invitation(&call, world.org, "eve@example.com", Role::Reader);
    let (_, secret) = invitation.await.unwrap();
    let link = secret.reveal().to_owned();
    let accept = format!("/invitations/accept?token={link}");
    let of_link = world.get(&accept, "").await.csrf().to_owned();
    let public = world.get("/sign-in", "").await;
    let before = public.cookie("__Host-before").unwrap();
    let (key, _) = world.key().await;
    let mut number = 0;
    let forms = PAGES.iter().filter(|row| row.method == Method::POST);
    for row in forms.filter(|row| row.access != Access::SetUp) {
        let path = row.path.replace("{node}", &fleet.nodes[0].to_string());
        let path = path.replace("{rollout}", &fleet.stopped.to_string());
        let path = path
            .replace("{command}", "rollback")
            .replace("{api_key}", &key);
        let path = world.path(&path);
        let parts = path.split('/').map(|part| {
            if part.starts_with('{') {
                Uuid::nil().to_string()
            } else {
                part.to_owned()
            }
        });
        let path = parts.collect::<Vec<_>>().join("/");
        let (cookie, token) = if row.access == Access::Public {
            let cookie = format!("__Host-before={before}");
            (cookie, format!("csrf={}", public.csrf()))
        } else if row.access == Access::Invitee {
            (String::new(), format!("csrf={of_link}&token={link}"))
        } else {
            // Attempts with secrets are limited by session, so each has its own.
            let session = world.member(Role::Admin).await;
            let profile = world.get("/profile", &session).await;
            let cookie = format!("__Host-session={session}");
            (cookie, format!("csrf={}", profile.csrf()))
        };
        let repeated = row.fields.first().copied().unwrap_or("csrf");
        let value = if repeated == "token" { &link } else { "a" };
        for (more, reported) in [
            ("surprise=1".to_owned(), "unknown field &#34;surprise&#34;"),
            (format!("{repeated}={value}&{repeated}={value}"), "twice"),
        ] {
            number += 1;
            let form = format!("{token}&{more}");
            let answer = send(&world, &path, &cookie, &form, number).await;
            let place = format!("{path} {more}: {}", answer.text);
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{place}");
            assert!(answer.heading().contains(reported), "{place}");
        }
    }
}

#[tokio::test]
async fn a_key_with_an_unknown_scope_is_not_made() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let org = world.org.to_string();
    for (name, value) in [("scope", "nodes:fly"), ("project", "edge"), ("days", "31")] {
        let mut fields = vec![("org", org.as_str()), ("name", "deploy"), (name, value)];
        if name != "days" {
            fields.push(("days", "30"));
        }
        let page = format!("/api-keys?org={org}");
        let refused = world
            .submit(&page, "/api-keys", &world.admin, &fields)
            .await;
        let place = format!("{name}: {}", refused.text);
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{place}");
        assert!(
            refused.text.contains("is not one of the choices"),
            "{place}"
        );
    }
    let list = world
        .get(&format!("/api-keys?org={org}"), &world.admin)
        .await;
    assert!(!list.text.contains("deploy</"), "{}", list.text);
}
