//! Streams after a reload that removed their route or target.
#![expect(clippy::disallowed_methods, reason = "a test waits until a deadline")]

use crate::support::{Config, METRICS, metric, request, target};
use proxy_testkit::{EVENT_TIMEOUT, Proxyd, RawClient, Reload, Upstream};
use std::time::Instant;

/// Time until such streams are ended. It is longer than two reloads on a busy machine.
const TIME_TO_DRAIN: &str = "system { worker-threads 1; graceful-shutdown-timeout-secs 3 }";

#[track_caller]
fn apply(proxyd: &Proxyd, config: Config) {
    assert_eq!(
        proxyd.reload(&config.top(TIME_TO_DRAIN).kdl()),
        Reload::Applied
    );
}

/// Opens a tunnel to `path`.
#[track_caller]
fn switched(proxyd: &Proxyd, path: &str) -> RawClient {
    let mut client = proxyd.connect();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let answer = client.ask(request(&format!("GET {path}"), upgrade, ""));
    assert_eq!(answer.status, 101);
    client
}

#[track_caller]
fn echoes(client: &mut RawClient) {
    client.send("ping");
    assert_eq!(client.exactly(4).unwrap(), b"ping");
}

/// Starts an upstream that sends an endless response.
fn endless() -> Upstream {
    Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
        served.end();
    })
}

#[test]
fn a_tunnel_to_a_removed_target_is_cut_after_the_time_to_drain() {
    let (old, new) = (Upstream::websocket(), Upstream::saying("new"));
    let proxyd = Config::to(&old).top(TIME_TO_DRAIN).start();
    let mut tunnel = switched(&proxyd, "/");
    echoes(&mut tunnel);

    apply(&proxyd, Config::to(&new));

    echoes(&mut tunnel);
    let _ = tunnel.end();
    let record = proxyd
        .stdout()
        .find(0, |record| record.number("status") == Some(101.0));
    assert_eq!(record.text("reason"), "target_removed");
    old.wait_for_ends(1);
}

#[test]
fn streams_of_former_configurations_are_counted_until_they_end() {
    const FORMER: &str = "proxy_requests_of_former_configurations ";
    let upstream = Upstream::websocket();
    let config = || {
        Config::to(&upstream)
            .top("system { worker-threads 1 }")
            .route("metrics", &format!("priority 100; {METRICS}"))
    };
    let proxyd = config().start();
    let mut tunnels: Vec<_> = (0..2).map(|_| switched(&proxyd, "/")).collect();
    let mut client = proxyd.connect();
    assert!(metric(&mut client, FORMER) < 0.5);

    assert_eq!(proxyd.reload(&config().kdl()), Reload::Applied);
    let mut third = switched(&proxyd, "/");

    for left in [2.0, 1.0, 0.0] {
        // Each worker ends its tunnels by its own timer.
        let is_left = |_| (metric(&mut client, FORMER) - left).abs() < 0.1;
        assert!((0..100_000).any(is_left), "{left} are left");
        drop(tunnels.pop());
    }
    echoes(&mut third);
}

#[test]
fn a_tunnel_of_a_removed_route_is_cut_after_the_time_to_drain() {
    let old = Upstream::websocket();
    let proxyd = Config::to(&old).top(TIME_TO_DRAIN).start();
    let mut tunnel = switched(&proxyd, "/");
    echoes(&mut tunnel);

    let other = Config::new()
        .route("other", r#"upstream "u""#)
        .upstream("u", &target(&old));
    apply(&proxyd, other);

    let _ = tunnel.end();
    let record = proxyd
        .stdout()
        .find(0, |record| record.number("status") == Some(101.0));
    assert_eq!(record.text("reason"), "route_removed");
}

#[test]
fn a_response_of_a_removed_target_is_cut_after_the_time_to_drain() {
    let (old, new) = (endless(), Upstream::saying("new"));
    let proxyd = Config::to(&old).top(TIME_TO_DRAIN).start();
    let mut client = proxyd.connect();
    client.send(request("GET /", "", ""));
    let head = client.head();
    assert_eq!(head.status, 200);

    apply(&proxyd, Config::to(&new));

    let cut = client.rest().unwrap();
    assert_eq!(cut.0, b"5\r\nfirst\r\n", "no last chunk");
    let id = head.correlation_id();
    assert_eq!(proxyd.access_record(&id).text("reason"), "target_removed");
    old.wait_for_ends(1);
}

/// Creates a configuration with a route and an upstream for each of `upstreams`, by a path with its
/// name.
fn by_path(upstreams: &[(&str, &Upstream)]) -> Config {
    let mut config = Config::new();
    for (name, upstream) in upstreams {
        let route = format!("upstream \"{name}\"; matches {{ path \"/{name}\" }}");
        config = config.route(name, &route).upstream(name, &target(upstream));
    }
    config
}

#[test]
fn a_tunnel_to_a_target_restored_in_time_continues() {
    let (one, two, other) = (
        Upstream::websocket(),
        Upstream::websocket(),
        Upstream::saying("other"),
    );
    let proxyd = by_path(&[("one", &one), ("two", &two)])
        .top(TIME_TO_DRAIN)
        .start();
    let mut kept = switched(&proxyd, "/one");
    let mut cut = switched(&proxyd, "/two");

    apply(&proxyd, by_path(&[("other", &other)]));
    apply(&proxyd, by_path(&[("one", &one)]));

    // At the end of this stream, the time of the other one has passed, too.
    let _ = cut.end();
    echoes(&mut kept);
}

#[test]
fn tunnels_do_not_hold_the_plans_that_they_began_under() {
    let upstream = Upstream::websocket();
    // Each plan has many routes, which differ from those of the previous plan.
    let plan = |number: usize| {
        let mut config = Config::to(&upstream);
        for route in 0..3000 {
            let matches = format!("matches {{ path \"/{number}/{route}/a-rather-long-path\" }}");
            config = config.route(
                &format!("r{number}-{route}"),
                &format!("upstream \"u\"; {matches}"),
            );
        }
        config
    };
    let proxyd = plan(0).start();
    let mut tunnels = vec![switched(&proxyd, "/")];
    for number in 1..4 {
        assert_eq!(proxyd.reload(&plan(number).kdl()), Reload::Applied);
        tunnels.push(switched(&proxyd, "/"));
    }
    let before = proxyd.rss_bytes();

    for number in 4..16 {
        assert_eq!(proxyd.reload(&plan(number).kdl()), Reload::Applied);
        tunnels.push(switched(&proxyd, "/"));
    }

    // Another thread frees the plans while the tunnels are used.
    let end = Instant::now() + EVENT_TIMEOUT;
    let grown = || proxyd.rss_bytes().saturating_sub(before);
    loop {
        tunnels.iter_mut().for_each(echoes);
        if grown() < 12 << 20 {
            break;
        }
        assert!(Instant::now() < end, "grew by {} bytes", grown());
    }
}
