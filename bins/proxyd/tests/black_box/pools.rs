//! Rotation of targets, and pooled connections.

use crate::support::{Config, METRICS, metric, pause, refusal, request, target};
use proxy_testkit::{Gate, Upstream, get, ok};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn targets_are_asked_in_turn() {
    let upstreams = ["one", "two", "three"].map(Upstream::saying);
    let targets: String = upstreams
        .iter()
        .map(|upstream| target(upstream) + "\n")
        .collect();
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &targets)
        .start();
    let mut client = proxyd.connect();

    let names: Vec<String> = (0..30).map(|_| client.ask(get("/", &[])).text()).collect();

    let mut shares = BTreeMap::new();
    for name in &names {
        *shares.entry(name.as_str()).or_insert(0) += 1;
    }
    assert_eq!(
        shares,
        BTreeMap::from([("one", 10), ("two", 10), ("three", 10)])
    );
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn every_worker_gives_every_target_its_turn() {
    let upstreams = ["one", "two"].map(Upstream::saying);
    let targets: String = upstreams
        .iter()
        .map(|upstream| target(upstream) + "\n")
        .collect();
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &targets)
        .top("system { worker-threads 4 }")
        .start();

    for _ in 0..40 {
        let _ = proxyd.connect().ask(get("/", &[]));
    }

    let shares = upstreams
        .each_ref()
        .map(|upstream| upstream.requests().len());
    assert_eq!(shares[0] + shares[1], 40);
    // Each worker may be one ahead with either.
    assert!(shares[0].abs_diff(shares[1]) <= 4, "{shares:?}");
}

#[test]
fn one_connection_is_enough_for_one_request_at_a_time() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    for _ in 0..20 {
        let _ = proxyd.connect().ask(get("/", &[]));
    }

    assert_eq!(upstream.connections(), 1);
}

#[test]
fn no_more_idle_connections_are_kept_than_allowed() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "done");
    let config = Config::to_with(&upstream, "connection-pool { max-idle 2 }");
    let proxyd = config.start();
    let mut clients: Vec<_> = (0..5).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(5);

    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().text(), "done");
    }

    let ends = upstream.wait_for_ends(3);
    assert_eq!(ends.len(), 3, "three of five are closed, two are kept");
    let _ = clients[0].ask(get("/", &[]));
    assert_eq!(upstream.connections(), 5);
}

#[test]
fn without_idle_connections_every_request_has_its_own() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to_with(&upstream, "connection-pool { max-idle 0 }").start();
    let mut client = proxyd.connect();

    for _ in 0..3 {
        let _ = client.ask(get("/", &[]));
    }

    assert_eq!(upstream.connections(), 3);
}

#[test]
fn an_idle_connection_is_closed_in_time() {
    let upstream = Upstream::saying("");
    let config = Config::to_with(&upstream, "connection-pool { idle-timeout-ms 300 }");
    let proxyd = config.start();

    let _ = proxyd.connect().ask(get("/", &[]));

    upstream.wait_for_ends(1);
}

#[test]
fn requests_wait_for_a_connection_when_all_allowed_are_in_use() {
    let gate = Gate::new();
    let wait = gate.clone();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (Arc::clone(&now), Arc::clone(&most));
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            let served_now = counted.0.fetch_add(1, Ordering::SeqCst) + 1;
            counted.1.fetch_max(served_now, Ordering::SeqCst);
            wait.wait();
            counted.0.fetch_sub(1, Ordering::SeqCst);
            served.send(ok("done"));
        }
    });
    let config = Config::to_with(&upstream, "connection-pool { max-connections 2 }");
    let proxyd = config.start();
    let mut clients: Vec<_> = (0..6).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(2);

    gate.open();

    for client in &mut clients {
        assert_eq!(client.response().text(), "done");
    }
    assert!(most.load(Ordering::SeqCst) <= 2);
}

#[test]
fn a_request_that_waits_too_long_for_a_connection_is_answered_503() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "done");
    let settings = "connection-pool { max-connections 1 }; timeouts { connect-ms 400 }";
    let proxyd = Config::to_with(&upstream, settings).start();
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    upstream.wait_for_requests(1);

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(
        crate::support::reason(&proxyd, &response),
        "no_free_connection"
    );
    gate.open();
    assert_eq!(first.response().status, 200);
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn the_limit_on_connections_holds_over_all_workers() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "done");
    let config = Config::to_with(&upstream, "connection-pool { max-connections 3 }");
    let proxyd = config.top("system { worker-threads 3 }").start();
    let mut clients: Vec<_> = (0..12).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(3);
    let most = upstream.connections();

    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().text(), "done");
    }

    assert_eq!(most, 3);
}

#[test]
fn a_connection_that_another_worker_keeps_idle_is_no_obstacle() {
    let upstream = Upstream::saying("done");
    // Longer than a worker waits for another worker's sweep.
    let settings = "connection-pool { max-connections 1 }; timeouts { connect-ms 300 }";
    let config = Config::to_with(&upstream, settings);
    let proxyd = config.top("system { worker-threads 2 }").start();

    let statuses: Vec<u16> = (0..30)
        .map(|_| proxyd.connect().ask(get("/", &[])).status)
        .collect();

    assert_eq!(statuses, [200; 30]);
}

#[test]
fn clients_of_all_workers_share_few_connections() {
    const CLIENTS: usize = 6;
    const REQUESTS: usize = 40;
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (Arc::clone(&now), Arc::clone(&most));
    let upstream = Upstream::start(move |served| {
        let open = counted.0.fetch_add(1, Ordering::SeqCst) + 1;
        counted.1.fetch_max(open, Ordering::SeqCst);
        while served.request().is_some() {
            served.send(ok("done"));
        }
        counted.0.fetch_sub(1, Ordering::SeqCst);
    });
    let settings = "connection-pool { max-connections 2 }; timeouts { connect-ms 300 }";
    let config = Config::to_with(&upstream, settings);
    let proxyd = config.top("system { worker-threads 2 }").start();

    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = proxyd.connect();
            std::thread::spawn(move || {
                let asked = (0..REQUESTS).map(|_| client.ask(get("/", &[])).status);
                asked.filter(|status| *status != 200).collect::<Vec<u16>>()
            })
        })
        .collect();
    for client in clients {
        assert_eq!(
            client.join().unwrap(),
            Vec::<u16>::new(),
            "every request is answered"
        );
    }

    let opened = upstream.connections();
    assert!(opened <= CLIENTS * REQUESTS / 4, "{opened} connections");
    // The upstream may see a connection end after its successors have begun.
    assert!(most.load(Ordering::SeqCst) <= CLIENTS);
}

#[test]
fn a_request_that_waits_long_is_not_passed_over_for_ever() {
    let upstream = Upstream::saying("done");
    let settings = "connection-pool { max-connections 1 }; timeouts { connect-secs 3 }";
    let config = Config::to_with(&upstream, settings);
    let proxyd = config.top("system { worker-threads 2 }").start();
    let (address, over) = (proxyd.address(), Gate::new());
    // The clients of one worker alone could keep the one connection busy.
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let over = over.clone();
            std::thread::spawn(move || {
                let mut client = proxy_testkit::RawClient::connect(address);
                while !over.is_open() {
                    assert_eq!(client.ask(get("/", &[])).status, 200);
                }
            })
        })
        .collect();

    for _ in 0..20 {
        assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    }

    over.open();
    for client in busy {
        client.join().unwrap();
    }
}

#[test]
fn a_connection_is_closed_when_the_upstream_says_so() {
    let upstream =
        Upstream::answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..3 {
        let response = client.ask(get("/", &[]));
        assert_eq!(response.text(), "ok");
        assert!(
            !response.fields.has("connection"),
            "the client's connection stays"
        );
    }
    assert_eq!(upstream.connections(), 3);
}

#[test]
fn the_metrics_page_counts_kept_connections() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream).route("metrics", &format!("priority 100; {METRICS}"));
    let proxyd = config.start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(request("GET /", "", "")).status, 200);

    let name = "proxy_connection_pool_idle{upstream=\"u\"}";
    let counted = (0..100).any(|_| {
        pause(&mut client, 100);
        metric(&mut client, name) > 0.5
    });
    assert!(counted, "the kept connection is never counted");
}
