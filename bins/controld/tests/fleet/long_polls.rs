//! Long polls of many nodes at once, each on its own connection, and orders that complete them.
//!
//! `CONTROLD_POLLS=19000`, as set by `cargo xtask fleet --polls`, is the number of polls. The limit
//! of open files of a process is an upper bound, because each poll uses a socket on either side.
//! Without it, there are few.

use crate::CONTROLD;
use crate::connection::{Caller, bearer, node_key, pace};
use crate::nodes::{InsertedNode, database_url, insert};
use control_domain::Tenant;
use control_simulator::{Operator, quantile};
use control_testkit::{Database, Program};
use control_wire::{OrgId, ProjectId};
use proxy_load::clock::Stopwatch;
use proxy_load::meter;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

const DEFAULT_POLLS: usize = 300;
/// Number of nodes in one assignment.
const NODES_PER_ASSIGNMENT: usize = 200;
/// Number of connections to open at once.
const CONNECTIONS_AT_ONCE: usize = 500;
/// Pause between requests of a key, which may send five a second.
const REQUEST_INTERVAL: Duration = Duration::from_millis(220);
/// Maximum time from the last order to the last response.
const MAX_WAKE: Duration = Duration::from_mins(1);

/// Waits for the first order; returns the time of its arrival.
async fn poll(
    node: InsertedNode,
    to: SocketAddr,
    clock: Stopwatch,
    waiting: UnboundedSender<()>,
) -> Duration {
    let mut caller = Caller::new(Ipv4Addr::LOCALHOST, to);
    let credential = node_key(&node.key);
    let path = format!("/nodes/{}/desired", node.id);
    let first = caller.call(("GET", &path), &credential, b"").await.unwrap();
    assert_eq!(first.status, 200);
    let known = format!("{credential}\r\nif-none-match: {}", first.tag);
    let path = format!("{path}?wait=30");
    waiting.send(()).ok();
    loop {
        let answered = caller.call(("GET", &path), &known, b"").await.unwrap();
        match answered.status {
            200 => return clock.elapsed(),
            status => assert_eq!(status, 304),
        }
    }
}

/// Orders a bundle for all nodes; returns the time of each order.
async fn assign(
    operator: &Operator,
    nodes: &[InsertedNode],
    to: SocketAddr,
    clock: Stopwatch,
) -> Vec<Duration> {
    let bundle = operator.bundle("polled");
    let path = format!("/projects/{}/bundles/{bundle}/assign", operator.project());
    let mut caller = Caller::new(Ipv4Addr::LOCALHOST, to);
    let (mut ordered, credential) = (Vec::new(), bearer(operator.key()));
    for piece in nodes.chunks(NODES_PER_ASSIGNMENT) {
        let ids: Vec<_> = piece.iter().map(|node| node.id).collect();
        let body = json!({ "nodes": ids }).to_string();
        let at = clock.elapsed();
        let answered = caller.call(("POST", &path), &credential, body.as_bytes());
        assert_eq!(answered.await.unwrap().status, 200);
        ordered.extend(piece.iter().map(|_| at));
        pace(REQUEST_INTERVAL).await;
    }
    ordered
}

#[test]
fn an_order_wakes_every_long_poll() {
    let full = std::env::var("CONTROLD_POLLS").ok();
    let count = full
        .as_ref()
        .map_or(DEFAULT_POLLS, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let mut program = Program::start(CONTROLD, &["--data-dir", &data]);
    let operator = Operator::set_up(&mut program);
    let tenant = Tenant::project(
        OrgId(operator.org().parse().unwrap()),
        ProjectId(operator.project().parse().unwrap()),
    );
    let url = database_url(folder.path(), &Database::sqlite());
    let nodes = insert(&url, tenant, count);
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let to: SocketAddr = authority.parse().unwrap();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let clock = Stopwatch::start();
    let mut latencies = runtime.block_on(async {
        let (waiting, mut waits) = unbounded_channel();
        let mut polls = JoinSet::new();
        for piece in nodes.chunks(CONNECTIONS_AT_ONCE) {
            for node in piece {
                let (node, waiting) = (node.clone(), waiting.clone());
                polls.spawn(async move { (node.id, poll(node, to, clock, waiting).await) });
            }
            for _ in piece {
                waits.recv().await.unwrap();
            }
        }
        println!("{count} long polls wait after {:?}", clock.elapsed());
        println!(
            "  {} MiB",
            meter::memory_bytes(&[operator.process()]) / (1024 * 1024)
        );
        let ordered = assign(&operator, &nodes, to, clock).await;
        let woken = tokio::time::timeout(MAX_WAKE, polls.join_all())
            .await
            .unwrap();
        let woken: std::collections::BTreeMap<_, _> = woken.into_iter().collect();
        let pairs = nodes.iter().zip(ordered);
        pairs
            .map(|(node, ordered)| woken[&node.id].saturating_sub(ordered))
            .collect::<Vec<_>>()
    });
    let mut at = |permille| quantile(&mut latencies, permille).unwrap();
    let (p50, p99, most) = (at(500), at(990), at(1_000));
    println!("  from the order to the answer: p50 {p50:?}, p99 {p99:?}, most {most:?}");
    println!(
        "  {} MiB at the end",
        meter::memory_bytes(&[operator.process()]) / (1024 * 1024)
    );
}
