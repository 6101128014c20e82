//! Orders on trial: live tests before a switch counts, and a way back without the control plane.
#![expect(clippy::disallowed_types, reason = "an upstream waits for its test")]

mod rehearsals;

use crate::world::{Page, Running, page_text, poll_until, wait_for_page};
use control_testkit::until;
use proxy_testkit::{Upstream, closed_port, free_port};
use rcgen::{CertifiedKey, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

const HOST: &str = "shop.example.com";
/// Soak time of a batch, which then passes: there is no gate.
const SOAK_SECS: u64 = 6;

/// The control plane dies while the node serves a page `two` on trial; returns the bundle and the rollout.
fn serve_on_trial(running: &mut Running) -> (String, String) {
    let page = running.page.address;
    let two = running.world.bundle(&Page::on(page, "two").files);
    let rollout = roll_out(running, &two, SOAK_SECS);
    wait_for_page(page, "two");
    running.world.kill();
    (two, rollout)
}

/// Starts a rollout of the bundle to the only node.
fn roll_out(running: &Running, bundle: &str, soak_secs: u64) -> String {
    // A test with a soak waits for the deadline; all other tests have rehearsals, with probes of up to 17 seconds.
    let deadline_secs = if soak_secs == 0 { 90 } else { 20 };
    let body = json!({
        "bundle": bundle, "batch_count": 1, "soak_secs": soak_secs,
        "deadline_secs": deadline_secs, "skip_gate": true,
    });
    let planned = running.world.post("rollouts", &body).json();
    let id = planned["id"].as_str().unwrap().to_owned();
    running
        .world
        .post(&format!("rollouts/{id}/start"), &Value::Null);
    id
}

/// Waits until the rollout has this state, and returns it.
fn until_state(running: &Running, id: &str, state: &str) -> Value {
    let mut found = Value::Null;
    poll_until(&format!("the rollout is {state}"), || {
        found = running.world.get(&format!("rollouts/{id}"));
        found["state"] == state
    });
    found
}

fn start() -> Running {
    Running::start_with(&["--heartbeat-secs", "1"])
}

/// A bundle with pages from `upstream`, with these tests.
fn forwarding(address: SocketAddr, upstream: SocketAddr, tests: &str) -> Value {
    let config = format!(
        "listeners {{ listener \"main\" {{ address \"{address}\" }} }}\n\
         routes {{ route \"shop\" {{ upstream \"u\" }} }}\n\
         upstreams {{ upstream \"u\" {{ target \"{upstream}\" }} }}\n\
         tests {{ {tests} }}\n"
    );
    json!({"proxy.kdl": config})
}

#[test]
fn a_live_test_after_a_switch_reverts_the_node() {
    let running = start();
    let tests = "test \"the shop answers\" { request \"GET\" \"/cart\"; live #true; \
                 expect { route \"shop\"; answer-status 200 } }";
    let address = running.page.address;
    let bad = running
        .world
        .bundle(&forwarding(address, closed_port(), tests));
    let rollout = roll_out(&running, &bad, 0);
    let back = until_state(&running, &rollout, "rolled_back");
    let reason = back["reason"].as_str().unwrap();
    let expected = "rejected the bundle: live test \"the shop answers\" fails: the status is 502, \
                    not 200";
    assert!(reason.contains(expected), "{reason}");
    let page = include_str!("../../../../../docs/operate/change-validation.md");
    assert!(page.contains(expected));
    assert_eq!(running.page_text(), "one");
    let good = Upstream::saying("two");
    let bundle = running
        .world
        .bundle(&forwarding(address, good.address(), tests));
    let rollout = roll_out(&running, &bundle, 0);
    until_state(&running, &rollout, "completed");
    let seen = &good.wait_for_requests(1)[0];
    assert_eq!(seen.fields.get("user-agent"), Some("proxyd-live-test"));
    assert_eq!(running.page_text(), "two");
}

#[test]
fn a_bundle_with_a_failing_live_test_serves_no_client() {
    let running = start();
    let wrong = Upstream::saying("two");
    let tests = "test \"the shop answers\" { request \"GET\" \"/cart\"; live #true; \
                 expect { answer-contains \"three\" } }";
    let files = forwarding(running.page.address, wrong.address(), tests);
    let bad = running.world.bundle(&files);
    let rollout = roll_out(&running, &bad, 0);
    let mut others = 0;
    poll_until("the rollout is rolled back", || {
        others += usize::from(running.page_text() != "one");
        running.world.get(&format!("rollouts/{rollout}"))["state"] == "rolled_back"
    });
    assert_eq!(others, 0, "answers of the new bundle");
    // Each test is sent again before it counts as failed.
    let seen = wrong.wait_for_requests(2);
    let agents = seen.iter().map(|request| request.fields.get("user-agent"));
    assert!(
        agents
            .into_iter()
            .all(|agent| agent == Some("proxyd-live-test"))
    );
    assert_eq!(seen.len(), 2);
}

/// Sockets at which the process listens: addresses as `/proc/net/tcp` and `tcp6` write them, and paths.
fn listening_sockets(process: u32) -> BTreeSet<String> {
    const TCP_LISTEN: &str = "0A";
    const UNIX_ACCEPTS: &str = "00010000";
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let links: BTreeSet<String> = links.map(|link| link.display().to_string()).collect();
    let is_own = |inode: &str| links.contains(&format!("socket:[{inode}]"));
    let mut found = BTreeSet::new();
    for (table, state, inode, place) in [
        ("tcp", (3, TCP_LISTEN), 9, 1),
        ("tcp6", (3, TCP_LISTEN), 9, 1),
        ("unix", (3, UNIX_ACCEPTS), 6, 7),
    ] {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        found.extend(text.lines().skip(1).filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (at, listens) = state;
            let is_listening = fields.get(at) == Some(&listens) && is_own(fields.get(inode)?);
            is_listening.then(|| fields.get(place).copied().unwrap_or_default().to_owned())
        }));
    }
    found
}

/// An upstream that answers no request before the sender is dropped.
fn held_upstream() -> (Upstream, mpsc::Sender<()>) {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            let ended = released.lock().unwrap().recv();
            assert!(ended.is_err(), "it is released by a drop");
            served.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    });
    (upstream, release)
}

const ANSWERS: &str = "test \"the shop answers\" { request \"GET\" \"/cart\"; live #true; \
                       expect { answer-status 200 } }";

#[test]
fn a_long_rehearsal_opens_no_socket_and_its_node_stays_online() {
    let running = start();
    let (slow, release) = held_upstream();
    let before = listening_sockets(running.proxyd.id());
    assert!(1 < before.len(), "{before:?}");
    let files = forwarding(running.page.address, slow.address(), ANSWERS);
    let bundle = running.world.bundle(&files);
    let rollout = roll_out(&running, &bundle, 0);
    slow.wait_for_requests(1);
    let meanwhile = listening_sockets(running.proxyd.id());
    assert_eq!(meanwhile, before, "sockets of the node");
    // A node is offline after three intervals of a second.
    let mut heartbeats = BTreeSet::new();
    poll_until("heartbeats go on", || {
        let view = running.world.view(&running.node);
        assert_eq!(view["state"], "online", "{view}");
        heartbeats.insert(view["seen_at"].to_string());
        5 < heartbeats.len()
    });
    assert_eq!(running.page_text(), "one");
    drop(release);
    until_state(&running, &rollout, "completed");
}

#[test]
fn a_node_ends_at_once_in_a_rehearsal() {
    let mut running = start();
    let (slow, release) = held_upstream();
    let files = forwarding(running.page.address, slow.address(), ANSWERS);
    let bundle = running.world.bundle(&files);
    roll_out(&running, &bundle, 0);
    slow.wait_for_requests(1);
    // Both tries of the test together take 20 seconds.
    running.proxyd.terminate();
    assert!(
        running.proxyd.has_ended_within(Duration::from_secs(8)),
        "the node waits for its rehearsal"
    );
    assert!(running.proxyd.wait().success());
    drop(release);
}

#[test]
fn a_live_test_that_fails_only_after_the_switch_reverts_the_node() {
    let running = start();
    let failing = Upstream::start(|served| {
        // The rehearsal has a connection of its own.
        let is_rehearsal = served.number() == 0;
        while served.request().is_some() {
            let answer = if is_rehearsal { "200 OK" } else { "500 Broken" };
            served.send(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n"));
        }
    });
    let tests = "test \"the shop answers\" { request \"GET\" \"/cart\"; live #true; \
                 expect { answer-status 200 } }";
    let files = forwarding(running.page.address, failing.address(), tests);
    let bad = running.world.bundle(&files);
    let rollout = roll_out(&running, &bad, 0);
    let back = until_state(&running, &rollout, "rolled_back");
    let reason = back["reason"].as_str().unwrap();
    assert!(reason.contains("the status is 500, not 200"), "{reason}");
    assert_eq!(running.page_text(), "one");
}

/// A bundle with TLS and live tests that expect the certificate of the control plane.
fn secure(running: &Running, made: &CertifiedKey<KeyPair>, tests: &str) -> Value {
    let secure = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let request = json!({
        "name": format!("shop-{}", secure.port()), "chain_pem": made.cert.pem(),
        "private_key_pem": made.signing_key.serialize_pem(),
    });
    let certificate = running.world.post("certificates", &request).json()["id"].clone();
    let (id, page) = (certificate.as_str().unwrap(), running.page.address);
    let config = format!(
        "listeners {{ listener \"main\" {{ address \"{page}\" }}\n\
         listener \"secure\" {{ address \"{secure}\"; protocol \"https\"; \
         tls {{ cert-file \"certificates/{id}.pem\"; key-file \"certificates/{id}.key\" }} }} }}\n\
         routes {{ route \"echo\" {{ service-type \"static\"; static-files {{ root \"www\" }} }} }}\n\
         tests {{ {tests} }}\n"
    );
    json!({
        "proxy.kdl": config, "www/index.html": "secure",
        (format!("certificates/{id}.pem")): made.cert.pem(),
    })
}

#[test]
fn live_tests_speak_tls_and_http2_and_upload() {
    let running = start();
    let made = rcgen::generate_simple_self_signed(vec![HOST.to_owned()]).unwrap();
    let tests = format!(
        "test \"by HTTP/2\" {{ request \"GET\" \"https://{HOST}/\"; live #true; http2 #true; \
         expect {{ listener \"secure\"; answer-contains \"secure\"; certificate-days 7; \
         first-byte-ms 9000; total-ms 9000 }} }}\n\
         test \"by HTTP/1.1\" {{ request \"GET\" \"https://{HOST}/\"; live #true; \
         expect {{ answer-status 200 }} }}\n\
         test \"an upload\" {{ request \"POST\" \"/\"; live #true; live-unsafe #true; \
         upload-bytes 100000; \
         expect {{ answer-status 405 }} }}"
    );
    let good = running.world.bundle(&secure(&running, &made, &tests));
    let rollout = roll_out(&running, &good, 0);
    until_state(&running, &rollout, "completed");
    assert_eq!(running.page_text(), "secure");
    let other = rcgen::generate_simple_self_signed(vec!["other.example.com".to_owned()]).unwrap();
    let bad = secure(&running, &other, &tests);
    let bad = running.world.bundle(&bad);
    let rollout = roll_out(&running, &bad, 0);
    let back = until_state(&running, &rollout, "rolled_back");
    let reason = back["reason"].as_str().unwrap();
    assert!(
        reason.contains("live test \"by HTTP/2\" fails: no TLS"),
        "{reason}"
    );
    let status = running.world.view(&running.node);
    assert_eq!(status["status"]["active"], json!(good), "{status}");
}

#[test]
fn a_node_whose_control_plane_crashes_after_the_order_reverts_and_reports_it() {
    let mut running = start();
    let (_, rollout) = serve_on_trial(&mut running);
    // Soak, deadline, and three heartbeats.
    until("the node has reverted by itself", || {
        running.page_text() == "one"
    });
    running.world.restart();
    until_state(&running, &rollout, "rolled_back");
    // The control plane may have found the batch late before the node reported.
    poll_until("the node says why", || {
        let events = running.world.get(&format!("nodes/{}/events", running.node));
        events
            .to_string()
            .contains("reverted by itself: no confirmation")
    });
    assert_eq!(running.page_text(), "one");
}

#[test]
fn an_order_is_confirmed_by_a_control_plane_that_returns_in_time() {
    let mut running = start();
    let (two, rollout) = serve_on_trial(&mut running);
    running.world.restart();
    until_state(&running, &rollout, "completed");
    let state = running.world.folder.path().join("node/state.json");
    until("the bundle is the last good one", || {
        let text = fs::read_to_string(&state).unwrap_or_default();
        let state: Value = serde_json::from_str(&text).unwrap_or_default();
        state["last_good"]["bundle"] == json!(two) && state["trial"].is_null()
    });
    running.world.kill();
    running.restart();
    wait_for_page(running.page.address, "two");
}

#[test]
fn a_node_that_crashes_in_a_trial_starts_with_the_bundle_before() {
    let mut running = start();
    let (_, rollout) = serve_on_trial(&mut running);
    running.restart();
    wait_for_page(running.page.address, "one");
    running.world.restart();
    until_state(&running, &rollout, "completed");
    assert_eq!(page_text(running.page.address), "two");
}

/// Bundles without a live test: connections are tried in any case.
#[test]
fn a_bundle_with_an_unreachable_upstream_serves_no_client() {
    let running = start();
    let good = Upstream::saying("two");
    let address = running.page.address;
    let forwarding_to = |target: SocketAddr| running.world.bundle(&forwarding(address, target, ""));
    let rollout = roll_out(&running, &forwarding_to(good.address()), 0);
    until_state(&running, &rollout, "completed");
    let down = closed_port();
    let rollout = roll_out(&running, &forwarding_to(down), 0);
    let mut others = 0;
    let mut found = Value::Null;
    poll_until("the rollout is rolled back", || {
        others += usize::from(running.page_text() != "two");
        found = running.world.get(&format!("rollouts/{rollout}"));
        found["state"] == "rolled_back"
    });
    assert_eq!(others, 0, "answers of the bad bundle");
    let reason = found["reason"].as_str().unwrap();
    let expected = format!(
        "upstream \"u\" is down: no connection to {down}, although a target of the bundle in force answers"
    );
    assert!(reason.contains(&expected), "{reason}");
    // It was down before as well: the bundle is not at fault.
    let address = good.address();
    drop(good);
    until_closed(address);
    let rollout = roll_out(&running, &forwarding_to(closed_port()), 0);
    until_state(&running, &rollout, "completed");
}

fn until_closed(address: SocketAddr) {
    until("the upstream is down", || {
        std::net::TcpStream::connect(address).is_err()
    });
}

#[test]
fn a_live_test_is_sent_to_each_new_target_alone() {
    let running = start();
    let [old, good, wrong] = ["two", "two", "three"].map(Upstream::saying);
    let tests = "test \"the shop answers\" { request \"GET\" \"/cart\"; live #true; \
                 expect { answer-contains \"two\" } }";
    let address = running.page.address;
    let bundle = |targets: &[&Upstream]| {
        let config = forwarding(address, old.address(), tests);
        let targets = targets
            .iter()
            .map(|target| format!("target \"{}\"; ", target.address()));
        let more = format!("upstream \"u\" {{ {}", targets.collect::<String>());
        let config = config["proxy.kdl"].as_str().unwrap();
        let config = config.replace("upstream \"u\" {", &more);
        running.world.bundle(&json!({"proxy.kdl": config}))
    };
    let rollout = roll_out(&running, &bundle(&[]), 0);
    until_state(&running, &rollout, "completed");
    let before = old.requests().len();
    let rollout = roll_out(&running, &bundle(&[&good, &wrong]), 0);
    let back = until_state(&running, &rollout, "rolled_back");
    let reason = back["reason"].as_str().unwrap();
    assert!(reason.contains("does not contain `two`"), "{reason}");
    assert_eq!(old.requests().len(), before, "requests to the old target");
    let rollout = roll_out(&running, &bundle(&[&good]), 0);
    until_state(&running, &rollout, "completed");
}
