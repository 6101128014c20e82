//! Rate limits that several proxies share through a real Redis or Valkey.
#![expect(clippy::disallowed_methods, reason = "tests wait until a deadline")]

use crate::support::{Config, METRICS, metric, reason, refusal};
use proxy_testkit::{Proxyd, RedisServer, Upstream, get};
use std::time::{Duration, Instant};

fn proxyd(upstream: &Upstream, limit: &str) -> Proxyd {
    Config::through(upstream, &format!("rate-limit {{ {limit} }}"))
        .route("metrics", &format!("priority 100; {METRICS}"))
        .start()
}

/// Waits until `proxyd` reports its store as reachable or unreachable.
#[track_caller]
fn wait_until_up(proxyd: &Proxyd, up: bool) {
    let mut client = proxyd.connect();
    let begun = Instant::now();
    while (metric(&mut client, "proxy_rate_limit_store_up{") > 0.5) != up {
        // Only a request, which takes a token, detects that a store is unreachable.
        if !up {
            proxyd.connect().ask(get("/probe", &[]));
        }
        assert!(begun.elapsed() < proxy_testkit::EVENT_TIMEOUT);
    }
}

#[test]
fn two_proxies_share_the_limit_of_a_store() {
    let (server, upstream) = (RedisServer::start(), Upstream::saying("ok"));
    for key in ["client_ip", "header:x-tenant", "path", "route"] {
        let limit = format!(
            "requests-per-second 1; burst 40; key \"{key}\"; store \"{}\"; store-timeout-ms 5000",
            server.url()
        );
        let proxies = [proxyd(&upstream, &limit), proxyd(&upstream, &limit)];
        for proxyd in &proxies {
            wait_until_up(proxyd, true);
        }
        let begun = Instant::now();
        let mut clients = proxies.each_ref().map(Proxyd::connect);
        let mut admitted = 0;
        for _ in 0..30 {
            for (client, proxyd) in clients.iter_mut().zip(&proxies) {
                let response = client.ask(get("/shared", &[("X-Tenant", "a")]));
                assert_eq!(response.fields.get("x-ratelimit-limit"), Some("40"));
                if response.status == 200 {
                    admitted += 1;
                    continue;
                }
                refusal(&response, 429, "RATE_LIMIT_EXCEEDED");
                assert_eq!(response.fields.get("retry-after"), Some("1"));
                assert_eq!(reason(proxyd, &response), "policy_rate_limit");
            }
        }
        let most = 40 + begun.elapsed().as_secs() + 1;
        // For some keys, the requests that waited for the store were counted locally, too.
        assert!(admitted <= most && admitted >= 20, "{key}: {admitted}");
    }
}

#[test]
fn an_unreachable_store_leaves_each_proxy_its_own_bucket() {
    let (mut server, upstream) = (RedisServer::start(), Upstream::saying("ok"));
    let limit = format!(
        "requests-per-second 1; burst 5; key \"path\"; store \"{}\"; store-timeout-ms 5000",
        server.url()
    );
    let proxyd = proxyd(&upstream, &limit);
    wait_until_up(&proxyd, true);
    let begun = Instant::now();
    let mut client = proxyd.connect();
    for _ in 0..5 {
        assert_eq!(client.ask(get("/a", &[])).status, 200);
    }
    server.stop();
    wait_until_up(&proxyd, false);

    // The proxy also counted the requests that the store admitted.
    let again = (0..5).filter(|_| client.ask(get("/a", &[])).status == 200);
    let again = again.count() as u64;
    assert!(again <= begun.elapsed().as_secs() + 1, "{again}");
    let begun = Instant::now();
    let fresh = (0..10).filter(|_| client.ask(get("/b", &[])).status == 200);
    let fresh = fresh.count() as u64;
    let most = 5 + begun.elapsed().as_secs() + 1;
    assert!((5..=most).contains(&fresh), "{fresh} of {most}");
    assert!(metric(&mut client, "proxy_rate_limit_store_unanswered_total{") >= 15.0);
    server.start_again();
    wait_until_up(&proxyd, true);
    assert_eq!(client.ask(get("/c", &[])).status, 200);
}

#[test]
fn a_store_that_hangs_delays_a_request_by_its_time_at_most() {
    let (server, upstream) = (RedisServer::start(), Upstream::saying("ok"));
    let limit = format!(
        "requests-per-second 100; store \"{}\"; store-timeout-ms 3000",
        server.url()
    );
    let proxyd = proxyd(&upstream, &limit);
    wait_until_up(&proxyd, true);
    server.pause();
    let mut client = proxyd.connect();
    let begun = Instant::now();

    assert_eq!(client.ask(get("/", &[])).status, 200);

    // A hanging store never answers: without a timeout there would be no response.
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(2_990), "{waited:?}");
    let begun = Instant::now();
    assert_eq!(client.ask(get("/", &[])).status, 200);
    assert!(begun.elapsed() < Duration::from_millis(2_990));
    server.resume();
}

#[test]
fn the_password_of_a_store_is_not_shown() {
    let upstream = Upstream::saying("ok");
    let limit = "requests-per-second 1; store \"redis://:s3cret@127.0.0.1:1\"";
    let proxyd = Config::through(&upstream, &format!("rate-limit {{ {limit} }}"))
        .top("admin { address \"127.0.0.1:0\" }")
        .start();

    let settings = crate::support::admin(&proxyd, "/admin/config").to_string();

    assert!(settings.contains("redis://127.0.0.1:1"));
    assert!(!settings.contains("s3cret"));
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
}
