//! Outlier detection: targets with failed responses are ejected for a while.
#![expect(clippy::disallowed_methods, reason = "a test waits until a deadline")]

use crate::support::{Config, admin, target};
use proxy_testkit::{DnsReply, DnsServer, Proxyd, Reload, Upstream, get};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

fn failing() -> Upstream {
    Upstream::answering("HTTP/1.1 500 Oh No\r\nContent-Length: 0\r\n\r\n")
}

fn started(upstreams: &[&Upstream], detection: &str) -> Proxyd {
    config(upstreams, detection).start()
}

fn config(upstreams: &[&Upstream], detection: &str) -> Config {
    let targets: Vec<_> = upstreams.iter().map(|one| target(one)).collect();
    let settings = format!(
        "{}; outlier-detection {{ {detection} }}",
        targets.join("; ")
    );
    Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &settings)
        .top("admin { address \"127.0.0.1:0\" }")
}

/// Returns true if the second target of the upstream is ejected.
fn is_ejected(proxyd: &Proxyd) -> bool {
    let document = admin(proxyd, "/admin/upstreams");
    let causes = &document["upstreams"]["u"]["targets"][1]["causes"];
    *causes == serde_json::json!(["ejection"])
}

/// Sends requests until `calm` successive responses are not 500.
fn settle(proxyd: &Proxyd, calm: usize) {
    let end = Instant::now() + Duration::from_secs(20);
    let mut client = proxyd.connect();
    let mut well = 0;
    while well < calm {
        assert!(Instant::now() < end, "requests go on failing");
        well = if client.ask(get("/", &[])).status == 200 {
            well + 1
        } else {
            0
        };
    }
}

#[test]
fn a_target_that_fails_in_a_row_is_ejected_for_a_time() {
    let (well, ill) = (Upstream::saying("well"), failing());
    let detection = "consecutive-failures 3; base-ejection-ms 3000; max-ejection-ms 3000";
    let proxyd = started(&[&well, &ill], detection);

    settle(&proxyd, 10);
    let failures = ill.requests().len();
    assert!((3..=8).contains(&failures), "{failures}");
    let document = admin(&proxyd, "/admin/upstreams");
    let entry = &document["upstreams"]["u"]["targets"][1];
    assert_eq!(entry["causes"], serde_json::json!(["ejection"]), "{entry}");
    assert_eq!(entry["healthy"], false);
    assert_eq!(document["upstreams"]["u"]["healthy"], true);

    // The target returns to rotation, and is ejected again.
    let mut client = proxyd.connect();
    let end = Instant::now() + Duration::from_secs(20);
    while ill.requests().len() == failures {
        assert!(Instant::now() < end);
        client.ask(get("/", &[]));
    }
}

#[test]
fn at_most_the_written_share_of_an_upstream_is_ejected() {
    let upstreams = [(); 4].map(|()| failing());
    let ejected = [0, 50, 100].map(|percent| {
        let detection = format!("consecutive-failures 1; max-ejected-percent {percent}");
        let proxyd = started(&upstreams.each_ref(), &detection);
        let mut client = proxyd.connect();
        let mut ejected = 0;
        let expected = 4 * percent / 100;
        let end = Instant::now() + Duration::from_secs(20);
        for round in 0.. {
            client.ask(get("/", &[]));
            let document = admin(&proxyd, "/admin/upstreams");
            let targets = document["upstreams"]["u"]["targets"]
                .as_array()
                .unwrap()
                .clone();
            ejected = targets.iter().filter(|one| one["healthy"] == false).count();
            if 30 < round && ejected == expected || end < Instant::now() {
                break;
            }
        }
        ejected
    });

    assert_eq!(ejected, [0, 2, 4]);
}

#[test]
fn a_target_that_fails_too_often_is_ejected() {
    let (well, ill) = (Upstream::saying("well"), failing());
    let share = "consecutive-failures 0; failure-percent 60; min-requests 15; interval-secs 600";
    let proxyd = started(&[&well, &ill], share);

    settle(&proxyd, 10);
    let failures = ill.requests().len();
    assert!((15..=25).contains(&failures), "{failures}");
}

#[test]
fn an_ejection_ends_after_a_reload_that_is_refused_for_a_pipe() {
    let (well, ill) = (Upstream::saying("well"), failing());
    let detection = "consecutive-failures 3; base-ejection-ms 5000; max-ejection-ms 5000";
    let proxyd = started(&[&well, &ill], detection);
    let pipe = proxyd.folder().join("access.log");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let log = r#"observability { access-log { path "access.log" } }"#;
    let without_reader = config(&[&well, &ill], detection).top(log);
    settle(&proxyd, 10);
    assert!(is_ejected(&proxyd));

    let reload = proxyd.reload(&without_reader.kdl());
    assert!(matches!(reload, Reload::Refused(_)), "{reload:?}");

    let end = Instant::now() + Duration::from_secs(30);
    while is_ejected(&proxyd) {
        assert!(Instant::now() < end, "the control loop stands still");
    }
}

/// Returns true if a target is ejected during a reload that waits for an unresponsive name server.
fn is_ejected_during_a_reload() -> bool {
    let (well, ill) = (Upstream::saying("well"), failing());
    let server = DnsServer::start();
    server.set("silent.test", DnsReply::Silence);
    let dns = format!(
        "system {{ dns {{ name-servers \"{}\"; timeout-secs 30 }} }}",
        server.address()
    );
    let detection = "consecutive-failures 3; base-ejection-ms 600000; max-ejection-ms 600000";
    let config = config(&[&well, &ill], detection).top(&dns);
    let proxyd = config.start();
    let named = config
        .route("named", r#"matches { path "/named" }; upstream "n""#)
        .upstream("n", r#"target "silent.test:80""#);
    let has_ended = || {
        let lines = proxyd.stderr().lines();
        let mut lines = lines.iter();
        lines.any(|line| line.contains("configuration reloaded"))
    };

    fs::write(proxyd.config(), named.kdl()).unwrap();
    proxyd.signal(Signal::HUP);
    server.wait_for_queries(1);
    settle(&proxyd, 10);
    while !has_ended() {
        if is_ejected(&proxyd) {
            // Checked afterwards, so the ejection was before the end of the reload.
            return !has_ended();
        }
    }
    false
}

#[test]
fn a_target_is_ejected_while_a_reload_waits_for_a_name_server() {
    // On a busy machine, the ejection may take longer than the reload.
    let ejected = (0..5).any(|_| is_ejected_during_a_reload());
    assert!(ejected, "the control loop stands still");
}

#[test]
fn a_target_that_a_reload_removes_and_another_adds_is_still_ejected() {
    let (well, ill) = (Upstream::saying("well"), failing());
    let detection = "consecutive-failures 3; base-ejection-ms 600000; max-ejection-ms 600000";
    let proxyd = started(&[&well, &ill], detection);
    settle(&proxyd, 10);
    let failures = ill.requests().len();

    for upstreams in [&[&well][..], &[&well, &ill]] {
        let reload = proxyd.reload(&config(upstreams, detection).kdl());
        assert_eq!(reload, Reload::Applied);
    }

    assert!(is_ejected(&proxyd));
    settle(&proxyd, 10);
    assert_eq!(ill.requests().len(), failures);
}
