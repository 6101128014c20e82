//! Changes of targets by an operator while the proxy runs.

use crate::support::{Config, admin, target};
use proxy_testkit::{Proxyd, RawClient, Reload, Response, Upstream, get};
use serde_json::{Value, json};

fn config(upstreams: &[Upstream; 2], settings: &str) -> Config {
    let [one, two] = upstreams.each_ref().map(target);
    Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &format!("{one}; {two}; {settings}"))
        .top("admin { address \"127.0.0.1:0\" }")
}

fn patch(proxyd: &Proxyd, target: &str, body: &str) -> Response {
    let mut client = RawClient::connect(proxyd.admin_address());
    client.ask(format!(
        "PATCH /admin/upstreams/{target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn entry(proxyd: &Proxyd, position: usize) -> Value {
    admin(proxyd, "/admin/upstreams")["upstreams"]["u"]["targets"][position].clone()
}

/// Sends requests until ten consecutive responses are as expected.
#[track_caller]
fn settle(proxyd: &Proxyd, is_so: impl Fn(&str) -> bool) {
    let mut client = proxyd.connect();
    let mut in_a_row = 0;
    for _ in 0..100_000 {
        let answer = client.ask(get("/", &[])).text();
        in_a_row = if is_so(&answer) { in_a_row + 1 } else { 0 };
        if in_a_row == 10 {
            return;
        }
    }
    panic!("the targets that are asked do not change");
}

#[test]
fn a_backup_target_is_listed_as_one_and_serves_while_the_other_drains() {
    let upstreams = ["one", "two"].map(Upstream::saying);
    let [one, two] = upstreams.each_ref().map(target);
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &format!("{one}; {two} backup=#true"))
        .top("admin { address \"127.0.0.1:0\" }")
        .start();
    let is_backup = |position| entry(&proxyd, position)["backup"].clone();
    assert_eq!([is_backup(0), is_backup(1)], [json!(false), json!(true)]);
    settle(&proxyd, |answer| answer == "one");
    assert!(upstreams[1].requests().is_empty());

    let path = format!("u/targets/{}", upstreams[0].address());
    assert_eq!(patch(&proxyd, &path, r#"{"draining": true}"#).status, 200);
    settle(&proxyd, |answer| answer == "two");
    assert_eq!(patch(&proxyd, &path, r#"{"draining": false}"#).status, 200);
    settle(&proxyd, |answer| answer == "one");
}

#[test]
fn a_target_drains_until_that_is_taken_back() {
    let upstreams = ["one", "two"].map(Upstream::saying);
    let proxyd = config(&upstreams, "").start();
    let path = format!("u/targets/{}", upstreams[0].address());

    let response = patch(&proxyd, &path, r#"{"draining": true}"#);
    assert_eq!(response.status, 200, "{}", response.text());
    let reported = response.json();
    assert_eq!(
        reported["override"],
        json!({"weight": null, "draining": true})
    );
    assert_eq!(
        (&reported["causes"], &reported["healthy"]),
        (&json!(["draining"]), &json!(true))
    );
    assert_eq!(reported["address"], upstreams[0].address().to_string());
    settle(&proxyd, |answer| answer == "two");

    let response = patch(&proxyd, &path, r#"{"draining": false}"#);
    assert_eq!(response.json()["override"], Value::Null);
    let before = upstreams[0].requests().len();
    settle(&proxyd, |_| before < upstreams[0].requests().len());
}

#[test]
fn a_weight_is_overridden_until_the_next_reload() {
    let upstreams = ["one", "two"].map(Upstream::saying);
    let config = config(&upstreams, r#"load-balancing "weighted""#);
    let proxyd = config.start();
    let path = format!("u/targets/{}", upstreams[1].address());

    let response = patch(&proxyd, &path, r#"{"weight": 0}"#);
    assert_eq!(response.json()["weight"], 0);
    settle(&proxyd, |answer| answer == "one");
    let overridden = entry(&proxyd, 1);
    assert_eq!(
        overridden["override"],
        json!({"weight": 0, "draining": false})
    );

    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
    let entry = entry(&proxyd, 1);
    assert_eq!(
        (&entry["weight"], &entry["override"]),
        (&json!(1), &Value::Null)
    );
    let before = upstreams[1].requests().len();
    settle(&proxyd, |_| before < upstreams[1].requests().len());
}

#[test]
fn an_invalid_change_of_a_target_is_refused() {
    let upstreams = ["one", "two"].map(Upstream::saying);
    let proxyd = config(&upstreams, "").start();
    let path = format!("u/targets/{}", upstreams[0].address());

    for (path, body, status) in [
        ("u/targets/10.9.9.9:1", r#"{"weight": 1}"#, 404),
        ("x/targets/10.9.9.9:1", r#"{"weight": 1}"#, 404),
        (path.as_str(), r#"{"weight": 10001}"#, 400),
        (path.as_str(), r#"{"wait": 1}"#, 400),
        (path.as_str(), "nonsense", 400),
    ] {
        assert_eq!(patch(&proxyd, path, body).status, status, "{path} {body}");
    }
    assert_eq!(entry(&proxyd, 0)["override"], Value::Null);
}
