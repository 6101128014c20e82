//! Parts that appear and disappear on an open live page, in Debian's Chromium.

use crate::first_steps::{command, plan};
use crate::fleet::{bundle, node};
use crate::world::World;
use axum::serve;
use control_domain::RolloutCommand;
use control_http::SessionCookie;
use control_testkit::{Database, installed};
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/live_parts.mjs");

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_gains_a_part_that_it_did_not_have_and_loses_it_again() {
    let world = World::new(Database::sqlite(), SessionCookie::Loopback).await;
    let node = node(&world, "edge-1", "home").await;
    let text = "listeners { listener \"web\" { address \"0.0.0.0:8080\" } }\n";
    let bundle = bundle(&world, "first", text).await;
    let rollout = plan(&world, bundle, node).await;
    let page = format!("/projects/{}", world.project);
    let mut open = Open::new(&world, &page, &["#attention-panel a[href*='/rollouts/']"]).await;
    assert_eq!(open.next().await, "absent");
    command(&world, rollout, RolloutCommand::Start).await;
    command(&world, rollout, RolloutCommand::Pause).await;
    assert_eq!(open.next().await, "present");
    command(&world, rollout, RolloutCommand::Cancel).await;
    assert_eq!(open.next().await, "absent");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_note_of_a_form_ends_when_the_heading_says_something_else() {
    let world = World::new(Database::sqlite(), SessionCookie::Loopback).await;
    let node = node(&world, "edge-1", "home").await;
    let text = "listeners { listener \"web\" { address \"0.0.0.0:8080\" } }\n";
    let bundle = bundle(&world, "first", text).await;
    let rollout = plan(&world, bundle, node).await;
    let page = format!("/projects/{}/rollouts/{rollout}", world.project);
    let mut open = Open::new(&world, &page, &[".note.ok", "Start"]).await;
    assert_eq!(open.next().await, "absent");
    assert_eq!(open.next().await, "present", "the rollout has started");
    command(&world, rollout, RolloutCommand::Pause).await;
    assert_eq!(open.next().await, "absent");
}

/// A page in a browser.
struct Open {
    lines: Lines<BufReader<ChildStdout>>,
    _browser: Child,
    server: JoinHandle<io::Result<()>>,
}

impl Open {
    /// Opens the page. The script waits for `watched`, and clicks on them.
    async fn new(world: &World, path: &str, watched: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = world.router.clone();
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let server = tokio::spawn(async move { serve(listener, service).await });
        let browser = installed("browser/node_modules/playwright-core/package.json");
        let mut run = Command::new("node")
            .arg(SCRIPT)
            .arg(browser.ancestors().nth(2).unwrap())
            .arg(format!("http://{address}{path}"))
            .arg(&world.admin)
            .args(watched)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(run.stdout.take().unwrap()).lines();
        Self {
            lines,
            _browser: run,
            server,
        }
    }

    async fn next(&mut self) -> String {
        self.lines.next_line().await.unwrap().unwrap_or_default()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.server.abort();
    }
}
