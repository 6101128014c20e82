//! Active health checks: requests to targets, and exclusion of unhealthy targets.
#![expect(clippy::disallowed_methods, reason = "a test waits until a deadline")]

use crate::support::{Config, admin, target};
use proxy_testkit::{Gate, Proxyd, Reload, Upstream, closed_port, get, ok};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Intervals that keep tests short, but leave a busy machine enough time to respond.
const QUICK: &str = "interval-ms 800; timeout-ms 800; healthy-threshold 2; unhealthy-threshold 2";

/// Starts an upstream that responds to checks with 200 while it is `well`, else with 503, and to
/// other requests with its name.
fn moody(name: &'static str, well: &Arc<AtomicBool>) -> Upstream {
    let well = Arc::clone(well);
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            let is_check = request.target.starts_with("/up");
            if is_check && !well.load(Ordering::Relaxed) {
                served.send("HTTP/1.1 503 Ill\r\nContent-Length: 0\r\n\r\n");
            } else {
                served.send(ok(name));
            }
        }
    })
}

fn config(targets: &str, check: &str) -> Config {
    Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &format!("{targets}; health-check {{ {check} }}"))
        .top("admin { address \"127.0.0.1:0\" }")
}

#[test]
fn checks_of_a_target_behind_the_proxy_protocol_are_connections_of_the_proxy() {
    let upstream = Upstream::start(|served| {
        let Ok(line) = served.line() else {
            return;
        };
        while let Some(request) = served.request() {
            let is_check = request.target.starts_with("/up");
            let is_right = if is_check {
                line == b"PROXY UNKNOWN"
            } else {
                line.starts_with(b"PROXY TCP4 127.0.0.1 127.0.0.1 ")
            };
            if is_right {
                served.send(ok("well"));
            } else {
                served.send("HTTP/1.1 503 Ill\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let targets = format!("{}; send-proxy \"v1\"", target(&upstream));
    let check = format!("type \"http\" {{ path \"/up\" }}; {QUICK}");
    let proxyd = config(&targets, &check).start();

    upstream.wait_for_requests(3);
    let entry = entry(&proxyd, 0);
    assert_eq!(entry["healthy"], true, "{entry}");
    let checks = entry["recent_checks"].as_array().unwrap();
    assert!(
        !checks.is_empty() && checks.iter().all(|passed| *passed == true),
        "{entry}"
    );
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "well");
}

/// Returns the entry of the target at this position in `u`.
fn entry(proxyd: &Proxyd, position: usize) -> Value {
    let document = admin(proxyd, "/admin/upstreams");
    document["upstreams"]["u"]["targets"][position].clone()
}

/// Waits until `healthy` of the target at this position has this value; returns the entry.
#[track_caller]
fn wait(proxyd: &Proxyd, position: usize, healthy: bool) -> Value {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let entry = entry(proxyd, position);
        if entry["healthy"] == healthy {
            return entry;
        }
        assert!(Instant::now() < end, "{entry}");
    }
}

/// Waits until the workers, which apply a change with a short delay, respond as expected.
#[track_caller]
fn wait_for_answers(proxyd: &Proxyd, is_so: impl Fn(&[String]) -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let answers = answers(proxyd);
        if is_so(&answers) {
            return;
        }
        assert!(Instant::now() < end, "{answers:?}");
    }
}

/// Waits until the target at this position was checked this number of times; returns the entry.
#[track_caller]
fn wait_for_checks(proxyd: &Proxyd, position: usize, checks: usize) -> Value {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let entry = entry(proxyd, position);
        if checks <= entry["recent_checks"].as_array().unwrap().len() {
            return entry;
        }
        assert!(Instant::now() < end, "{entry}");
    }
}

fn answers(proxyd: &Proxyd) -> Vec<String> {
    let mut client = proxyd.connect();
    let answers = (0..6).map(|_| client.ask(get("/", &[])).text());
    answers.collect()
}

#[test]
fn checks_remove_and_restore_a_target() {
    let well = Arc::new(AtomicBool::new(true));
    let (moody, other) = (moody("moody", &well), Upstream::saying("other"));
    let targets = format!("{}; {}", target(&moody), target(&other));
    let check = format!("type \"http\" {{ path \"/up?x=1\" }}; {QUICK}");
    let proxyd = config(&targets, &check).start();
    let entry = wait_for_checks(&proxyd, 0, 3);
    assert_eq!(
        (&entry["healthy"], &entry["causes"]),
        (&json!(true), &json!([]))
    );
    assert!(
        entry["recent_checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|passed| passed == true)
    );
    assert!(moody.requests().iter().any(|seen| seen.target == "/up?x=1"));

    well.store(false, Ordering::Relaxed);
    let entry = wait(&proxyd, 0, false);
    assert_eq!(entry["causes"], json!(["active_check"]));
    let last_error = "health check: answered with status 503 Service Unavailable, not 200";
    assert_eq!(entry["last_error"], last_error);
    assert!(entry["unhealthy_since"].as_str().unwrap().ends_with('Z'));
    wait_for_answers(&proxyd, |answers| {
        answers.iter().all(|name| name == "other")
    });

    well.store(true, Ordering::Relaxed);
    let entry = wait(&proxyd, 0, true);
    assert!(entry.get("last_error").is_none() && entry.get("unhealthy_since").is_none());
    wait_for_answers(&proxyd, |answers| answers.contains(&"moody".to_owned()));
}

#[test]
fn when_all_targets_fail_their_checks_requests_get_503() {
    let well = Arc::new(AtomicBool::new(false));
    let upstream = moody("moody", &well);
    let check = format!("type \"http\" {{ path \"/up\" }}; {QUICK}");
    let proxyd = config(&target(&upstream), &check).start();
    wait(&proxyd, 0, false);

    wait_for_answers(&proxyd, |answers| !answers.contains(&"moody".to_owned()));
    let response = proxyd.connect().ask(get("/", &[]));
    let message = crate::support::refusal(&response, 503, "NO_HEALTHY_UPSTREAM");
    assert!(!message.contains("503 Service"), "{message}");
}

#[test]
fn the_status_the_host_and_the_path_of_a_check_are_as_written() {
    let teapot = Upstream::answering("HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n");
    for (expected, healthy) in [("418", true), ("\"400-450\"", true), ("\"200-399\"", false)] {
        let http = format!("type \"http\" {{ expected-status {expected}; host \"app.internal\" }}");
        let proxyd = config(&target(&teapot), &format!("{http}; {QUICK}")).start();
        let entry = if healthy {
            wait_for_checks(&proxyd, 0, 3)
        } else {
            wait(&proxyd, 0, false)
        };
        assert_eq!(entry["healthy"], healthy, "{expected}");
    }
    let seen = teapot.last_request();
    assert_eq!(seen.target, "/");
    assert_eq!(seen.fields.get("host"), Some("app.internal"));
}

#[test]
fn a_tcp_check_finds_closed_ports() {
    let open = Upstream::saying("open");
    let targets = format!("{}; target \"{}\"", target(&open), closed_port());
    let proxyd = config(&targets, &format!("type \"tcp\"; {QUICK}")).start();

    let entry = wait(&proxyd, 1, false);
    assert!(
        entry["last_error"]
            .as_str()
            .unwrap()
            .contains("cannot connect"),
        "{entry}"
    );
    assert_eq!(wait_for_checks(&proxyd, 0, 3)["healthy"], true);
    wait_for_answers(&proxyd, |answers| *answers == ["open"; 6]);
}

#[test]
fn a_target_that_answers_its_checks_late_is_not_called() {
    let gate = Gate::new();
    let mute = Upstream::gated(&gate, "late");
    let proxyd = config(&target(&mute), &format!("type \"http\"; {QUICK}")).start();

    let entry = wait(&proxyd, 0, false);
    assert_eq!(entry["last_error"], "health check: no answer in time");
    gate.open();
}

#[test]
fn a_model_server_without_an_expected_model_is_not_called() {
    let openai = Upstream::answering(ok(r#"{"data":[{"id":"llama3-70b"},{"id":"phi"}]}"#));
    let ollama = Upstream::answering(ok(r#"{"models":[{"name":"phi:latest"}]}"#));
    let targets = format!("{}; {}", target(&openai), target(&ollama));
    let inference =
        "type \"inference\" { endpoint \"/models\"; expected-models \"llama3\" \"phi\" }";
    let proxyd = config(&targets, &format!("{inference}; {QUICK}")).start();

    let entry = wait(&proxyd, 1, false);
    let missing = "health check: the model llama3 is missing";
    assert_eq!(entry["last_error"], missing);
    assert_eq!(wait_for_checks(&proxyd, 0, 3)["healthy"], true);
    assert_eq!(openai.requests()[0].target, "/models");
}

#[test]
fn verdicts_outlive_reloads_and_end_with_the_check() {
    let well = Arc::new(AtomicBool::new(false));
    let (moody, other) = (moody("moody", &well), Upstream::saying("other"));
    let targets = format!("{}; {}", target(&moody), target(&other));
    let slow = "healthy-threshold 1000; unhealthy-threshold 2; interval-ms 800; timeout-ms 800";
    let check = format!("type \"http\" {{ path \"/up\" }}; {slow}");
    let first = config(&targets, &check);
    let proxyd = first.start();
    let since = wait(&proxyd, 0, false)["unhealthy_since"].clone();
    wait_for_answers(&proxyd, |answers| *answers == ["other"; 6]);

    // A target without checks would be healthy again.
    assert_eq!(
        proxyd.reload(&first.clone().top("system {}").kdl()),
        Reload::Applied
    );
    let entry = entry(&proxyd, 0);
    assert_eq!(
        (&entry["healthy"], &entry["unhealthy_since"]),
        (&json!(false), &since)
    );
    assert_eq!(answers(&proxyd), ["other"; 6]);

    let without = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &targets)
        .top("admin { address \"127.0.0.1:0\" }");
    assert_eq!(proxyd.reload(&without.kdl()), Reload::Applied);
    wait(&proxyd, 0, true);
}

#[test]
fn a_profile_gives_the_figures_that_are_not_written() {
    let upstream = Upstream::saying("well");
    let figures = |check: &str| {
        let proxyd = config(&target(&upstream), check).start();
        let settings = admin(&proxyd, "/admin/config");
        let names = [
            "interval-secs",
            "timeout-secs",
            "healthy-threshold",
            "unhealthy-threshold",
        ];
        names.map(|name| {
            let path = format!("upstreams.upstream[\"u\"].health-check.{name}");
            let all = settings["settings"]
                .as_array()
                .or(settings.as_array())
                .unwrap();
            let found = all.iter().find(|one| one["path"] == path);
            found.unwrap_or_else(|| panic!("{path} in {settings}"))["value"].clone()
        })
    };

    assert_eq!(figures("type \"tcp\""), [10, 5, 2, 3].map(Value::from));
    let fast = figures("type \"tcp\"; profile \"fast-failover\"; unhealthy-threshold 7");
    assert_eq!(fast, [5, 2, 2, 7].map(Value::from));
    assert_eq!(
        figures("type \"tcp\"; profile \"slow_backends\""),
        [30, 15, 2, 3].map(Value::from)
    );
}
