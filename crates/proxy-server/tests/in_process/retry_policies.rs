//! The `retry` block of a route: attempts, causes, budget, and timeout of each attempt.

use crate::support::{Config, METRICS, metric, post, reason, refusal, target};
use proxy_testkit::{Gate, Upstream, closed_port, get, ok};

fn answering(status: u16) -> Upstream {
    Upstream::answering(format!(
        "HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n\r\n"
    ))
}

fn through(targets: &[String], retry: &str) -> Config {
    Config::new()
        .route("all", &format!("upstream \"u\"; retry {{ {retry} }}"))
        .upstream("u", &targets.join("; "))
}

#[test]
fn with_two_of_three_targets_refusing_no_get_fails() {
    let alive = Upstream::saying("alive");
    let refusing = || format!("target \"{}\"", closed_port());
    let targets = [refusing(), target(&alive), refusing()];
    let proxyd = through(&targets, "attempts 2").start();
    let mut client = proxyd.connect();

    for number in 0..300 {
        let response = client.ask(get("/", &[]));
        assert_eq!(response.text(), "alive", "request {number}");
    }
}

#[test]
fn a_connect_that_fails_is_tried_elsewhere_without_attempts() {
    let alive = Upstream::saying("alive");
    let targets = [format!("target \"{}\"", closed_port()), target(&alive)];
    let proxyd = through(&targets, "attempts 0").start();
    let mut client = proxyd.connect();

    for _ in 0..4 {
        assert_eq!(client.ask(get("/", &[])).text(), "alive");
    }
}

#[test]
fn a_request_is_tried_up_to_the_configured_number() {
    for attempts in [0, 1, 3] {
        let upstreams = [(); 5].map(|()| answering(503));
        let targets = upstreams.each_ref().map(target);
        let retry = format!("attempts {attempts}; on \"503\"; budget-percent 100");
        let proxyd = through(&targets, &retry).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, 503);
        let tries: usize = upstreams.iter().map(|one| one.requests().len()).sum();
        assert_eq!(tries, attempts + 1);
        let record = proxyd.access_record(&response.correlation_id());
        let retries = record.number("retries").unwrap_or_default();
        assert!((retries - f64::from(u32::try_from(attempts).unwrap())).abs() < 0.1);
    }
}

#[test]
fn a_request_is_retried_only_after_the_configured_failures() {
    let causes = ["502", "503", "504", "reset", "connect-failure"];
    for written in causes {
        for met in causes {
            let (well, ill) = (Upstream::saying("well"), Gate::new());
            let failing = match met {
                "reset" => Upstream::start(|served| drop(served.request())),
                "connect-failure" => Upstream::saying("unreached"),
                status => answering(status.parse().unwrap()),
            };
            let failing_target = if met == "connect-failure" {
                format!("target \"{}\"", closed_port())
            } else {
                target(&failing)
            };
            let retry = format!("on \"{written}\"");
            let proxyd = through(&[failing_target, target(&well)], &retry).start();

            let mut client = proxyd.connect();
            let statuses = [(); 2].map(|()| client.ask(get("/", &[])).status);
            let is_well = statuses == [200, 200];
            assert_eq!(
                is_well,
                written == met,
                "on {written} after {met}: {statuses:?}"
            );
            drop(ill);
        }
    }
}

#[test]
fn a_request_that_is_sent_again_after_a_status_is_the_same_to_the_byte() {
    let (ill, well) = (answering(503), Upstream::saying("well"));
    for edits in ["priority 50", "request-headers { set \"X-Set\" \"1\" }"] {
        let route = format!("{edits}; policies {{ retry {{ on \"503\" }} }}");
        let targets = format!("{}; {}", target(&ill), target(&well));
        let proxyd = Config::new()
            .route("all", &format!("upstream \"u\"; {route}"))
            .upstream("u", &targets)
            .start();

        let response = proxyd.connect().ask(get("/a?b=c", &[("X-Own", "1")]));

        assert_eq!((response.status, response.text().as_str()), (200, "well"));
        let (first, second) = (ill.last_request(), well.last_request());
        assert_eq!(first.fields.get("x-own"), Some("1"));
        assert_eq!(first.fields.get("host"), Some("a.test"));
        assert_eq!(
            String::from_utf8_lossy(&first.raw),
            String::from_utf8_lossy(&second.raw)
        );
    }
}

#[test]
fn a_post_is_not_sent_again_after_a_status() {
    let (ill, well) = (answering(503), Upstream::saying("well"));
    let proxyd = through(&[target(&ill), target(&well)], "on \"503\"").start();
    let mut client = proxyd.connect();

    let statuses = [(); 4].map(|()| client.ask(post("/", "order")).status);

    assert_eq!(statuses, [503, 200, 503, 200]);
}

#[test]
fn retries_stay_within_their_share_of_the_requests() {
    let (ill, well) = (answering(503), Upstream::saying("well"));
    let targets = [target(&ill), target(&well)];
    let failed = ["0", "100"].map(|percent| {
        let retry = format!("on \"503\"; budget-percent {percent}");
        let proxyd = through(&targets, &retry).start();
        let mut client = proxyd.connect();
        let statuses = (0..200).map(|_| client.ask(get("/", &[])).status);
        statuses.filter(|status| *status == 503).count()
    });

    // Three per second are free; half of the requests reach the failing target.
    assert!((50..=97).contains(&failed[0]), "{failed:?}");
    assert_eq!(failed[1], 0, "{failed:?}");
}

#[test]
fn the_record_has_the_cause_of_a_retry_or_its_refusal() {
    let (ill, well) = (answering(503), Upstream::saying("well"));
    let retry = "on \"503\"; budget-percent 0";
    let proxyd = through(&[target(&ill), target(&well)], retry)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .start();
    let mut client = proxyd.connect();
    let refused = (0..500).find_map(|_| {
        let response = client.ask(get("/", &[]));
        let record = proxyd.access_record(&response.correlation_id());
        if record.number("retries").is_some() {
            assert_eq!(record.text("retry_cause"), "503");
            assert!(!record.has("retry_refused"));
        }
        (response.status == 503).then_some(record)
    });

    // Three a second are free.
    let refused = refused.expect("a request that was not sent again");
    assert_eq!(refused.text("retry_refused"), "budget");
    assert!(!refused.has("retries") && !refused.has("retry_cause"));
    let name = "proxy_retries_refused_total{upstream=\"u\"}";
    assert!(metric(&mut client, name) > 0.5);
}

#[test]
fn an_attempt_has_a_time_of_its_own() {
    let gate = Gate::new();
    let (mute, well) = (Upstream::gated(&gate, "late"), Upstream::saying("well"));
    let both = [target(&mute), target(&well)];
    let proxyd = through(&both, "on \"timeout\"; per-try-timeout-ms 2000").start();
    let mut client = proxyd.connect();
    for _ in 0..2 {
        assert_eq!(client.ask(get("/", &[])).text(), "well");
    }

    let alone = [target(&mute)];
    let proxyd = through(&alone, "attempts 0; per-try-timeout-ms 300").start();
    let response = proxyd.connect().ask(get("/", &[]));
    refusal(&response, 504, "TIMEOUT");
    assert_eq!(reason(&proxyd, &response), "response_header_timeout");
    gate.open();
}

#[test]
fn a_target_that_closes_at_its_keep_alive_limit_costs_no_client_an_error() {
    // Closes after 7 requests on a connection, without an announcement.
    let upstream = Upstream::start(|served| {
        for _ in 0..7 {
            if served.request().is_none() {
                return;
            }
            served.send(ok("well"));
        }
    });
    let proxyd = Config::to(&upstream).start();
    let clients = (0..4).map(|_| {
        let mut client = proxyd.connect();
        std::thread::spawn(move || {
            for _ in 0..500 {
                assert_eq!(client.ask(get("/", &[])).text(), "well");
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    for client in clients {
        client.join().unwrap();
    }
}
