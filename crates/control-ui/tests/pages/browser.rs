//! Every page in Debian's Chromium, controlled by Playwright: no findings of axe, no console
//! messages, and no horizontal scrolling, at 360 px in light and 1280 px in dark mode. Screenshots
//! are stored in the target folder.

use crate::fleet::{Fleet, RECORDING, moved_bundle};
use crate::headers::shown_pages;
use crate::world::World;
use axum::serve;
use control_domain::Role;
use control_http::SessionCookie;
use control_testkit::{Database, installed};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

/// Time limit for all pages on a busy machine. The script has a limit per page.
const LIMIT: Duration = Duration::from_mins(15);

/// Script that controls the browser.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/browser.mjs");

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_a_fault_in_a_browser() {
    let world = World::new(Database::sqlite(), SessionCookie::Loopback).await;
    let empty = World::new(Database::sqlite(), SessionCookie::Loopback).await;
    let fleet = Fleet::new(&world).await;
    let mut failures = Vec::new();
    let filled: Vec<String> = shown_pages(&fleet)
        .into_iter()
        .filter(|path| path != "/")
        .map(|path| world.path(&path))
        .chain(more_pages(&world, &fleet))
        .collect();
    let bare = [
        "",
        "/nodes",
        "/traffic",
        "/bundles",
        "/rollouts",
        "/rollouts/new",
        "/enrolment-tokens",
        "/explain",
        "/replay",
    ];
    let bare = bare.map(|path| empty.path(&format!("/projects/{{project}}{path}")));
    let stale = world.stale_admin().await;
    let proof = [format!("send:{}", world.path("/projects/{project}/policy"))];
    let reader = world.member(Role::Reader).await;
    let moved = moved_bundle(&world).await;
    let replay = format!(
        "/projects/{{project}}/replay?before={}&after={moved}",
        fleet.spring
    );
    let replay = [world.path(&replay)];
    let looks = async {
        failures.extend(drive(&world, &world.admin, "filled", &filled).await);
        failures.extend(drive(&world, &reader, "reader", &replay).await);
        failures.extend(drive(&empty, &empty.admin, "empty", &bare).await);
        failures.extend(drive(&world, &stale, "stale", &proof).await);
    };
    if timeout(LIMIT, looks).await.is_err() {
        failures.push(format!("the browser took longer than {LIMIT:?}"));
    }
    assert_eq!(failures, [""; 0]);
}

/// Returns the paths of pages with a result, a filter, or an error.
fn more_pages(world: &World, fleet: &Fleet) -> Vec<String> {
    let project = world.project;
    let mut pages = vec![
        format!("/projects/{project}/rollouts/{}", fleet.planned),
        format!("/projects/{project}/bundles/{}", fleet.rejected),
        format!("/projects/{project}/nodes?standing=silent"),
        format!("/projects/{project}/nodes?q=nothing"),
        format!(
            "/projects/{project}/explain?method=POST&url=http%3A%2F%2Fshop.example.com%2Fapi%2Fcart&bundle={}&with={}",
            fleet.spring, fleet.cart
        ),
        format!("/projects/{project}/search?q=shop"),
        format!("/projects/{project}/explain?url=shop"),
        format!("/projects/{project}/traffic?period=week&by=region"),
    ];
    let personal = [
        "/sign-in",
        "/sign-in/code",
        "/sign-in/recovery",
        "/sign-in/sso",
        "/sign-in/sso?org=acme",
        "/password-resets/use?secret=abc",
        "/?all=1",
    ];
    pages.extend(personal.map(str::to_owned));
    pages.push("/projects/00000000-0000-0000-0000-000000000000".to_owned());
    pages
}

/// Returns the errors in the browser, one per line.
async fn drive(world: &World, session: &str, set: &str, pages: &[String]) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = world.router.clone();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let server = tokio::spawn(async move { serve(listener, service).await });
    let browser = installed("browser/node_modules/playwright-core/package.json");
    let modules = browser.ancestors().nth(2).unwrap();
    let shots = modules.ancestors().nth(1).unwrap().join("shots").join(set);
    let run = Command::new("node")
        .arg(SCRIPT)
        .arg(modules)
        .arg(format!("http://{address}"))
        .arg(session)
        .arg(&shots)
        .arg(RECORDING)
        .args(pages)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = run.await.unwrap();
    server.abort();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !output.status.success() {
        lines.push(format!("node ended with {}", output.status));
    }
    lines
}
