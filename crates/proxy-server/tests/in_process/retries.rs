//! Retries of requests, and requests that must not be retried.

use crate::support::{Config, METRICS, metric, post, reason, refusal, request, target};
use proxy_testkit::{Gate, Served, Upstream, closed_port, get, ok};

/// Answers the first request on each connection; closes without a response when the gate opens or
/// the second request arrives.
fn stale(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::start(move |served| {
        if served.request().is_some() {
            served.send(ok(served.number().to_string()));
        }
        if served.number() == 0 {
            gate.wait();
            return;
        }
        while served.request().is_some() {
            served.send(ok(served.number().to_string()));
        }
    })
}

/// Answers once, then reads the next request's head and closes without a response.
fn closing_on_the_second() -> Upstream {
    Upstream::start(move |served| {
        while served.request().is_some() {
            served.send(ok(served.number().to_string()));
            if served.number() == 0 {
                served.head();
                return;
            }
        }
    })
}

#[test]
fn a_connection_that_was_closed_while_it_rested_is_not_an_error() {
    let gate = Gate::new();
    let upstream = stale(&gate);
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).text(), "0");
    upstream.hang_up();

    // For a non-idempotent request too: no byte of it was sent.
    let response = client.ask(post("/", "order"));

    assert_eq!((response.status, response.text().as_str()), (200, "1"));
    let orders = upstream
        .requests()
        .iter()
        .filter(|seen| seen.body == b"order")
        .count();
    assert_eq!(orders, 1);
    gate.open();
}

#[test]
fn a_get_on_a_pooled_connection_that_closes_silently_is_sent_again() {
    let upstream = closing_on_the_second();
    let config = Config::to(&upstream).route("metrics", &format!("priority 100; {METRICS}"));
    let proxyd = config.start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).text(), "0");

    let response = client.ask(get("/again?x=%41", &[("X-A", "1"), ("X-A", "2")]));

    assert_eq!((response.status, response.text().as_str()), (200, "1"));
    let seen = upstream.requests();
    let (first, second) = (&seen[1], &seen[2]);
    assert_eq!((first.connection, second.connection), (0, 1));
    assert_eq!(first.raw, second.raw, "the same to the byte");
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.number("retries"), Some(1.0));
    assert!((metric(&mut client, "proxy_retries_total{upstream=\"u\"}") - 1.0).abs() < 0.1);
    assert!((metric(&mut client, "proxy_pool_stale_total{upstream=\"u\"}") - 1.0).abs() < 0.1);
}

/// Closes its first connection without a response, after a request; answers on later ones.
fn ending_the_first(end: fn(&mut Served)) -> Upstream {
    Upstream::start(move |served| {
        while served.request().is_some() {
            if served.number() == 0 {
                return end(served);
            }
            served.send(ok(served.number().to_string()));
        }
    })
}

#[test]
fn a_get_on_a_fresh_connection_that_closes_silently_is_sent_again() {
    let ends: [fn(&mut Served); 2] = [|_| {}, |served| served.reset()];
    for end in ends {
        let upstream = ending_the_first(end);
        let proxyd = Config::to(&upstream).start();

        let response = proxyd.connect().ask(get("/again?x=%41", &[("X-A", "1")]));

        assert_eq!((response.status, response.text().as_str()), (200, "1"));
        let seen = upstream.requests();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].raw, seen[1].raw, "the same to the byte");
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.number("retries"), Some(1.0));
    }
}

#[test]
fn a_get_is_retried_at_another_target_after_a_silent_close() {
    let mute = Upstream::start(|served| {
        served.request();
    });
    let alive = Upstream::saying("alive");
    let targets = format!("{}; {}", target(&mute), target(&alive));
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &targets)
        .start();

    for _ in 0..4 {
        let response = proxyd.connect().ask(get("/", &[]));
        assert_eq!((response.status, response.text().as_str()), (200, "alive"));
    }

    assert_eq!(mute.requests().len(), 2, "each had its turn");
}

#[test]
fn a_post_on_a_fresh_connection_that_closes_silently_is_not_sent_again() {
    for body in ["order", ""] {
        let upstream = ending_the_first(|_| {});
        let proxyd = Config::to(&upstream).start();

        let response = proxyd.connect().ask(post("/", body));

        refusal(&response, 502, "UPSTREAM_ERROR");
        assert_eq!(upstream.requests().len(), 1, "with the body {body:?}");
    }
}

#[test]
fn a_post_that_was_sent_is_not_sent_again() {
    for body in ["order", ""] {
        let upstream = closing_on_the_second();
        let proxyd = Config::to(&upstream).start();
        let mut client = proxyd.connect();
        assert_eq!(client.ask(get("/", &[])).text(), "0");

        let response = client.ask(post("/", body));

        refusal(&response, 502, "UPSTREAM_ERROR");
        let requests = upstream.requests();
        let posts = requests.iter().filter(|seen| seen.method == "POST");
        assert_eq!(posts.count(), 1, "with the body {body:?}");
    }
}

#[test]
fn a_request_with_a_begun_response_is_not_sent_again() {
    let upstream = Upstream::start(|served| {
        if served.request().is_some() {
            served.send(ok("0"));
        }
        if served.request().is_some() {
            served.send("HTTP/1.1 200 ");
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).text(), "0");

    let response = client.ask(get("/", &[]));

    assert_eq!(response.status, 502);
    assert_eq!(upstream.requests().len(), 2);
}

#[test]
fn a_request_is_sent_again_once_and_not_for_ever() {
    let upstream = Upstream::start(|served| {
        if served.number() < 2 && served.request().is_some() {
            served.send(ok("kept"));
        }
        served.head();
    });
    let proxyd = Config::to(&upstream).start();
    let (mut one, mut two) = (proxyd.connect(), proxyd.connect());
    // Two pooled connections, both of which will close without a response.
    one.send(get("/", &[]));
    two.send(get("/", &[]));
    assert_eq!((one.response().status, two.response().status), (200, 200));
    let before = upstream.requests().len();

    let response = one.ask(get("/", &[]));

    refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(reason(&proxyd, &response), "upstream_closed_early");
    assert_eq!(upstream.requests().len() - before, 2);
}

#[test]
fn a_target_that_refuses_is_passed_over_for_the_next() {
    let upstream = Upstream::saying("alive");
    let targets = format!("target \"{}\"; {}", closed_port(), target(&upstream));
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &targets)
        .start();

    let mut retried = 0;
    for _ in 0..4 {
        // For any method, because no byte was sent.
        let response = proxyd.connect().ask(post("/", "order"));
        assert_eq!((response.status, response.text().as_str()), (200, "alive"));
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("target"), upstream.address().to_string());
        retried += u32::from(record.number("retries") == Some(1.0));
    }
    assert_eq!(retried, 1, "it is left out afterwards");
}

#[test]
fn an_incomplete_upload_is_sent_whole_to_the_next_target() {
    let upstream = Upstream::echo();
    let targets = format!("target \"{}\"; {}", closed_port(), target(&upstream));
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &targets)
        .start();

    for _ in 0..2 {
        let mut client = proxyd.connect();
        client.send(request("POST /", "Content-Length: 10\r\n", "first"));
        client.send("later");
        assert_eq!(client.response().text(), "firstlater");
    }
}

#[test]
fn a_refusal_by_every_target_is_a_502() {
    let targets = format!("target \"{}\"; target \"{}\"", closed_port(), closed_port());
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &targets)
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(reason(&proxyd, &response), "connect_refused");
}
