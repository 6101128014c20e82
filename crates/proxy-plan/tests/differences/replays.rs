//! Replays of recorded requests.

use crate::support::{around, plan};
use proxy_plan::diff::replay::{RecordedHead, Replay, ReplayReport};
use serde_json::{Value, json};
use std::time::Duration;

/// Replays requests spaced by `gap`.
fn replay(before: &str, after: &str, records: &[Value], gap: Duration) -> ReplayReport {
    let (old, new) = (plan(&around(before)), plan(&around(after)));
    let mut replay = Replay::new(&old, &new);
    for (record, number) in records.iter().zip(0_u32..) {
        replay.push(&RecordedHead::from_json(record, gap * number).unwrap());
    }
    replay.finish()
}

fn shown(report: &ReplayReport) -> Vec<String> {
    let differences = report.differences.iter();
    let shown = differences.map(|one| format!("{} {} -> {}", one.requests, one.before, one.after));
    shown.collect()
}

#[test]
fn differences_are_weighted_by_their_requests() {
    let before = r#"route "all" { upstream "u" }"#;
    let after = r#"route "api" { matches { path-prefix "/api"; header "X-Env: beta" }; upstream "v" }
        route "old" { matches { path "/old" }; upstream "v" }
        route "all" { upstream "u" }"#;
    let get = |path: &str| json!({"method": "GET", "path": path, "host": "a.test"});
    let beta = json!({"method": "GET", "path": "/api/x?q", "headers": {"X-Env": "beta"}});
    let records = [get("/old"), beta.clone(), get("/api"), beta.clone(), beta];
    let report = replay(before, after, &records, Duration::ZERO);
    assert_eq!((report.requests, report.different), (5, 4));
    assert_eq!(report.kinds, 3, "one kind stays");
    assert_eq!(
        shown(&report),
        [
            "3 all (upstream u) -> api (upstream v)",
            "1 all (upstream u) -> old (upstream v)"
        ]
    );
    assert_eq!(report.differences[0].example, "GET /api/x");
}

#[test]
fn rate_limits_count_in_the_time_of_the_records() {
    let before = r#"route "all" { upstream "u" }"#;
    let after = r#"route "all" { upstream "u"
        policies { rate-limit { requests-per-second 10; burst 5 } } }"#;
    let from = |client: &str| json!({"method": "GET", "path": "/", "client_ip": client});
    let records = vec![from("192.0.2.1"); 20];
    let at_once = replay(before, after, &records, Duration::ZERO);
    assert_eq!(
        shown(&at_once),
        ["15 all (upstream u) -> all (429 by its rate limit)"]
    );
    let slowly = replay(before, after, &records, Duration::from_millis(100));
    assert_eq!(slowly.different, 0);
    let many: Vec<Value> = (0..20)
        .map(|number| from(&format!("192.0.2.{number}")))
        .collect();
    assert_eq!(replay(before, after, &many, Duration::ZERO).different, 0);
}

/// The requests that a configuration with these limits and routes refuses by a rate limit.
fn limited(after: &str, records: &[Value]) -> Vec<String> {
    let before = r#"route "all" { upstream "u" }"#;
    let (old, new) = (plan(&around(before)), plan(after));
    let mut replay = Replay::new(&old, &new);
    for record in records {
        replay.push(&RecordedHead::from_json(record, Duration::ZERO).unwrap());
    }
    let differences = replay.finish().differences;
    let differences = differences.iter();
    let limited = differences.filter(|one| one.after.to_string().contains("429"));
    limited
        .map(|one| format!("{} {}", one.requests, one.after))
        .collect()
}

#[test]
fn requests_that_are_refused_or_have_no_route_take_tokens_too() {
    let limits = "limits { max-requests-per-second-per-client 1 }";
    let small = r#"route "all" { matches { path-prefix "/a" }; upstream "u"
        policies { max-body-size "1KB" } }"#;
    let after = format!("{}\n{limits}", around(small));
    let post = |bytes: u64| json!({"method": "POST", "path": "/a", "bytes_in": bytes});
    let unrouted = json!({"method": "GET", "path": "/none"});

    // The burst is ten requests: the proxy charges each of them before it looks at the outcome.
    let refused = [vec![post(5_000); 8], vec![post(10); 5]].concat();
    assert_eq!(limited(&after, &refused), ["3 all (429 by its rate limit)"]);
    let missed = [vec![unrouted; 12], vec![post(10); 3]].concat();
    let found = limited(&after, &missed);
    assert_eq!(
        found,
        [
            "3 all (429 by its rate limit)",
            "2 no route (429 by a rate limit)"
        ]
    );
}

#[test]
fn a_rate_key_is_a_whole_field_with_all_of_its_lines() {
    let keyed = r#"route "all" { upstream "u"
        policies { rate-limit { requests-per-second 1; burst 1; key "header:X-Key" } } }"#;
    let with = |lines: Value| json!({"method": "GET", "path": "/", "headers": {"X-Key": lines}});
    let same = [with(json!(["a", "b"])), with(json!("a, b"))];
    let other = [with(json!(["a", "b"])), with(json!(["a", "c"]))];

    assert_eq!(limited(&around(keyed), &same).len(), 1);
    assert_eq!(limited(&around(keyed), &other), [""; 0]);
}

#[test]
fn breakers_count_the_failures_that_were_recorded() {
    let before = r#"route "all" { upstream "u" }"#;
    let after = r#"route "all" { upstream "u"
        circuit-breaker { failure-threshold 3; timeout-seconds 10 } }"#;
    let failed = json!({"method": "GET", "path": "/", "upstream": "u", "status": 503});
    let records = vec![failed; 12];
    let report = replay(before, after, &records, Duration::from_secs(1));
    // Requests 4 to 12; after ten seconds one trial fails.
    assert_eq!(
        shown(&report),
        ["9 all (upstream u) -> all (503 by its circuit breaker)"]
    );
}

#[test]
fn bodies_above_the_limit_are_refused() {
    let before = r#"route "all" { upstream "u" }"#;
    let after = r#"route "all" { upstream "u"; policies { max-body-size "1KB" } }"#;
    let post = |bytes: u64| json!({"method": "POST", "path": "/", "bytes_in": bytes});
    let report = replay(before, after, &[post(10), post(5_000)], Duration::ZERO);
    assert_eq!(
        shown(&report),
        ["1 all (upstream u) -> all (413 body_size_limit)"]
    );
}

#[test]
fn a_recorded_target_that_the_uri_type_refuses_is_replayed() {
    let before = r#"route "all" { upstream "u" }"#;
    let after = r#"route "odd" { matches { path "/a<b" }; upstream "v" }
        route "all" { upstream "u" }"#;
    let get = |path: &str| json!({"method": "GET", "path": path});
    let report = replay(before, after, &[get("/a<b?q=\"x\"")], Duration::ZERO);
    assert_eq!(shown(&report), ["1 all (upstream u) -> odd (upstream v)"]);
}

#[test]
fn a_line_that_is_not_a_request_is_left_out() {
    for line in [
        json!({}),
        json!(5),
        json!({"method": "GET"}),
        json!({"method": "G T", "path": "/"}),
    ] {
        assert!(
            RecordedHead::from_json(&line, Duration::ZERO).is_none(),
            "{line}"
        );
    }
}

#[test]
fn many_rate_limits_share_the_memory_of_buckets() {
    let routes: Vec<String> = (0..1_000)
        .map(|number| {
            format!(
                "route \"r{number}\" {{ matches {{ path-prefix \"/r{number}\" }}; upstream \"u\"
                policies {{ rate-limit {{ requests-per-second 1; burst 1 }} }} }}"
            )
        })
        .collect();
    let after = routes.join("\n");
    let before = r#"route "all" { upstream "u" }"#;
    let twice =
        (0..2_000).map(|number| json!({"method": "GET", "path": format!("/r{}", number / 2)}));
    let report = replay(before, &after, &twice.collect::<Vec<_>>(), Duration::ZERO);
    // Tables of 100 000 keys each would take gigabytes.
    let limited = report.differences.iter();
    let limited = limited.filter(|one| one.after.to_string().ends_with("(429 by its rate limit)"));
    assert_eq!(limited.count(), 1_000);
}
