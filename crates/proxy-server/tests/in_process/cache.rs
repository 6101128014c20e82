//! Serving of stored responses, and storing of new ones.

use crate::support::{Config, METRICS, Proxy, metric, post, reason, refusal, request};
use proxy_testkit::{Gate, RawClient, Reload, Response, Upstream, get};
use std::net::Ipv4Addr;

/// Answers with status 200, these fields, and the number of the request as a body, from 1.
fn numbered(fields: &'static str) -> Upstream {
    scripted(move |number| answer(200, fields, &number.to_string()))
}

/// Answers with the result of `response` for the number of the request, from 1.
fn scripted(response: impl Fn(usize) -> String + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            served.send(response(request.number));
        }
    })
}

fn answer(status: u16, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{fields}\r\n{body}")
}

fn cached(upstream: &Upstream, settings: &str) -> Proxy {
    let route = format!("cache {{ cache-status #true; {settings} }}");
    Config::through(upstream, &route).start()
}

fn ask(client: &mut RawClient, path: &str) -> Response {
    client.ask(get(path, &[]))
}

fn status(response: &Response) -> &str {
    response.fields.get("cache-status").unwrap_or_default()
}

const FRESH: &str = "Cache-Control: max-age=600\r\n";

#[test]
fn a_fresh_response_is_served_from_the_store() {
    let upstream = numbered("Cache-Control: max-age=600\r\nETag: \"one\"\r\nX-Own: 1\r\n");
    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();

    let first = ask(&mut client, "/a");
    assert_eq!((first.status, first.text()), (200, "1".to_owned()));
    assert_eq!(status(&first), "proxyd; fwd=uri-miss; stored");
    assert!(!first.fields.has("age"));

    let second = ask(&mut client, "/a");
    assert_eq!((second.status, second.text()), (200, "1".to_owned()));
    assert!(
        status(&second).starts_with("proxyd; hit; ttl="),
        "{}",
        status(&second)
    );
    assert_eq!(second.fields.get("x-own"), Some("1"));
    assert!(second.fields.has("age") && second.fields.has("date"));
    assert_ne!(first.correlation_id(), second.correlation_id());

    // The method and every part of the URL count.
    let head = client.send(request("HEAD /a", "", "")).response_to_head();
    assert_eq!(
        (head.status, head.fields.get("content-length")),
        (200, Some("1"))
    );
    assert_eq!(ask(&mut client, "/a?").text(), "2");
    assert_eq!(ask(&mut client, "/A").text(), "3");
    let other = client.ask("GET /a HTTP/1.1\r\nHost: b.test\r\n\r\n");
    assert_eq!(other.text(), "4");
    let same = client.ask("GET /a HTTP/1.1\r\nHost: A.Test\r\n\r\n");
    assert_eq!(same.text(), "1");

    let record = proxyd.access_record(&second.correlation_id());
    assert_eq!(record.text("cache"), "hit");
    let record = proxyd.access_record(&first.correlation_id());
    assert_eq!(record.text("cache"), "miss");
}

#[test]
fn conditions_and_ranges_are_answered_from_the_store() {
    let upstream = scripted(|_| {
        answer(
            200,
            "Cache-Control: max-age=600\r\nETag: \"e\"\r\n",
            "0123456789",
        )
    });
    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();

    // The upstream does not get the condition of the client that fetches.
    let first = client.ask(get("/a", &[("If-None-Match", "\"e\"")]));
    assert_eq!((first.status, first.body.len()), (304, 0));
    assert!(!upstream.last_request().fields.has("if-none-match"));

    let part = client.ask(get("/a", &[("Range", "bytes=2-4")]));
    assert_eq!((part.status, part.text()), (206, "234".to_owned()));
    assert_eq!(part.fields.get("content-range"), Some("bytes 2-4/10"));
    let beyond = client.ask(get("/a", &[("Range", "bytes=10-")]));
    assert_eq!(
        (beyond.status, beyond.fields.get("content-range")),
        (416, Some("bytes */10"))
    );
    // As for a file, the response is an error of the proxy with its reason, which no cache may
    // store.
    refusal(&beyond, 416, "REQUEST_VALIDATION");
    assert_ne!(beyond.fields.get("cache-control"), Some("max-age=600"));
    assert!(!beyond.fields.has("etag"));
    assert_eq!(reason(&proxyd, &beyond), "range_not_satisfiable");
    let same = client.ask(get("/a", &[("If-None-Match", "W/\"e\"")]));
    assert_eq!(same.status, 304);
    let other = client.ask(get("/a", &[("If-None-Match", "\"f\"")]));
    assert_eq!((other.status, other.body.len()), (200, 10));
    assert_eq!(upstream.requests().len(), 1);

    // A range of a response that is not stored is requested from the upstream, and not stored.
    let range = client.ask(get("/b", &[("Range", "bytes=0-0")]));
    assert_eq!(
        upstream.last_request().fields.get("range"),
        Some("bytes=0-0")
    );
    assert_eq!(status(&range), "proxyd; fwd=uri-miss");
    assert_eq!(
        status(&ask(&mut client, "/b")),
        "proxyd; fwd=uri-miss; stored"
    );
}

#[test]
fn responses_that_are_not_for_others_are_fetched_each_time() {
    for (fields, reason) in [
        ("Cache-Control: private, max-age=600\r\n", "private"),
        ("Cache-Control: no-store\r\n", "no-store"),
        (
            "Cache-Control: public, max-age=600\r\nSet-Cookie: sid=1\r\n",
            "set-cookie",
        ),
        ("Cache-Control: max-age=600\r\nVary: *\r\n", "vary"),
        ("", "no-lifetime"),
    ] {
        let upstream = numbered(fields);
        let proxyd = cached(&upstream, "");
        let mut client = proxyd.connect();
        let first = ask(&mut client, "/");
        assert_eq!(
            status(&first),
            format!("proxyd; fwd=uri-miss; detail={reason}")
        );
        assert_eq!(ask(&mut client, "/").text(), "2", "{fields}");
    }
}

#[test]
fn responses_to_credentials_are_stored_only_on_request_of_the_upstream() {
    let authorized = &[("Authorization", "Bearer x")];
    for (fields, second) in [
        (FRESH, "2"),
        ("Cache-Control: public, max-age=600\r\n", "1"),
    ] {
        let upstream = numbered(fields);
        let proxyd = cached(&upstream, "");
        let mut client = proxyd.connect();
        assert_eq!(client.ask(get("/", authorized)).text(), "1");
        assert_eq!(client.ask(get("/", authorized)).text(), second);
    }

    // A password is required before the store is searched, each time.
    let hash = "$2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS";
    let upstream = numbered("Cache-Control: public, max-age=600\r\n");
    let proxyd = cached(
        &upstream,
        &format!("}}; basic-auth {{ user \"ann\" \"{hash}\""),
    );
    let mut client = proxyd.connect();
    let ann = &[("Authorization", "Basic YW5uOm9uZQ==")];
    assert_eq!(client.ask(get("/", ann)).text(), "1");
    assert_eq!(client.ask(get("/", ann)).text(), "1");
    assert_eq!(ask(&mut client, "/").status, 401);

    let upstream = numbered(FRESH);
    let proxyd = cached(
        &upstream,
        &format!("}}; basic-auth {{ user \"ann\" \"{hash}\""),
    );
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", ann)).text(), "1");
    assert_eq!(client.ask(get("/", ann)).text(), "2");
}

#[test]
fn a_lifetime_of_the_route_is_for_responses_without_one() {
    let upstream = numbered("");
    let proxyd = cached(&upstream, "ttl-secs 600");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "1");
    assert_eq!(ask(&mut client, "/").text(), "1");
    // A response to a cookie may be for its owner.
    let cookie = &[("Cookie", "sid=1")];
    assert_eq!(client.ask(get("/b", cookie)).text(), "2");
    assert_eq!(client.ask(get("/b", cookie)).text(), "3");
}

#[test]
fn a_heuristic_lifetime_is_a_share_of_the_time_since_the_last_change() {
    let upstream = numbered("Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\n");
    let proxyd = cached(&upstream, "heuristic-percent 10");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "1");
    let hit = ask(&mut client, "/");
    assert_eq!(hit.text(), "1");
    // The remaining time, a few seconds less than a day.
    let shown = status(&hit);
    assert!(shown.starts_with("proxyd; hit; ttl=8"), "{shown}");
    let cookie = &[("Cookie", "sid=1")];
    assert_eq!(client.ask(get("/", cookie)).text(), "2");

    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "3");
    assert_eq!(ask(&mut client, "/").text(), "4");
}

#[test]
fn only_listed_statuses_are_stored() {
    let upstream = scripted(|number| answer(404, FRESH, &number.to_string()));
    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "1");
    assert_eq!(ask(&mut client, "/").text(), "1");

    let proxyd = cached(&upstream, "statuses 200 301");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "2");
    assert_eq!(ask(&mut client, "/").text(), "3");
}

#[test]
fn fields_and_parameters_of_the_key_are_those_of_the_route() {
    let upstream = numbered(FRESH);
    let proxyd = cached(
        &upstream,
        "key-headers \"x-device\"; ignore-query \"utm_source\"",
    );
    let mut client = proxyd.connect();
    let device =
        |client: &mut RawClient, value| client.ask(get("/", &[("X-Device", value)])).text();
    assert_eq!(device(&mut client, "phone"), "1");
    assert_eq!(device(&mut client, "desk"), "2");
    assert_eq!(device(&mut client, "phone"), "1");
    assert_eq!(ask(&mut client, "/?a=1&utm_source=x").text(), "3");
    assert_eq!(upstream.last_request().target, "/?a=1&utm_source=x");
    assert_eq!(ask(&mut client, "/?utm_source=y&a=1").text(), "3");
    assert_eq!(ask(&mut client, "/?a=2").text(), "4");
}

#[test]
fn variants_differ_by_the_fields_that_the_response_names() {
    let upstream = numbered("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n");
    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();
    let language =
        |client: &mut RawClient, value| client.ask(get("/", &[("Accept-Language", value)]));
    assert_eq!(language(&mut client, "de").text(), "1");
    let english = language(&mut client, "en");
    assert_eq!(
        (english.text().as_str(), status(&english)),
        ("2", "proxyd; fwd=vary-miss; stored")
    );
    assert_eq!(language(&mut client, "de").text(), "1");
    assert_eq!(language(&mut client, "en").text(), "2");
    assert_eq!(ask(&mut client, "/").text(), "3");
}

#[test]
fn a_request_that_the_key_does_not_describe_neither_reads_nor_fills_the_store() {
    let upstream = numbered(FRESH);
    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();
    for (number, (field, value, reason)) in [
        ("X-Original-URL", "/admin", "override-field"),
        ("X-HTTP-Method-Override", "DELETE", "override-field"),
        ("Connection", "accept-language", "connection"),
        ("Cache-Control", "no-store", "no-store"),
        ("If-Match", "\"x\"", "precondition"),
    ]
    .into_iter()
    .enumerate()
    {
        let response = client.ask(get("/", &[(field, value)]));
        assert_eq!(response.text(), (number + 1).to_string());
        assert_eq!(
            status(&response),
            format!("proxyd; fwd=bypass; detail={reason}"),
            "{field}"
        );
    }
    let body = client.ask(request("GET /", "Content-Length: 1\r\n", "x"));
    assert_eq!(status(&body), "proxyd; fwd=bypass; detail=body");
    assert_eq!(
        status(&ask(&mut client, "/")),
        "proxyd; fwd=uri-miss; stored"
    );
}

#[test]
fn claims_of_clients_do_not_reach_the_upstream_and_those_of_proxies_are_part_of_the_key() {
    let claim = &[("X-Forwarded-Host", "evil.test")];
    let upstream = numbered(FRESH);
    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", claim)).text(), "1");
    let sent = upstream.last_request().fields;
    assert_eq!(sent.all("x-forwarded-host"), ["a.test"]);
    assert_eq!(ask(&mut client, "/").text(), "1");

    let upstream = numbered(FRESH);
    let proxyd = Config::through(&upstream, "cache")
        .listener("trusted-proxies \"10.0.0.0/8\"")
        .start();
    let mut client = proxyd.connect_from(Ipv4Addr::new(10, 0, 0, 1).into());
    assert_eq!(client.ask(get("/", claim)).text(), "1");
    assert_eq!(
        upstream.last_request().fields.all("x-forwarded-host"),
        ["evil.test"]
    );
    assert_eq!(ask(&mut client, "/").text(), "2");
    assert_eq!(client.ask(get("/", claim)).text(), "1");
}

#[test]
fn a_stale_response_is_validated_and_freshened() {
    let upstream = Upstream::start(|served| {
        let stale = "Cache-Control: max-age=1\r\nAge: 10\r\nETag: \"e\"\r\n";
        while let Some(request) = served.request() {
            served.send(if request.fields.get("if-none-match") == Some("\"e\"") {
                "HTTP/1.1 304 X\r\nCache-Control: max-age=600\r\nETag: \"e\"\r\nX-New: 1\r\n\r\n"
                    .to_owned()
            } else {
                answer(200, stale, "body")
            });
        }
    });
    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "body");
    let validated = ask(&mut client, "/");
    assert_eq!(
        (validated.status, validated.text()),
        (200, "body".to_owned())
    );
    assert_eq!(
        status(&validated),
        "proxyd; fwd=stale; fwd-status=304; stored"
    );
    assert_eq!(validated.fields.get("x-new"), Some("1"));
    let hit = ask(&mut client, "/");
    assert!(status(&hit).starts_with("proxyd; hit"), "{}", status(&hit));
    assert_eq!(upstream.requests().len(), 2);
    let record = proxyd.access_record(&validated.correlation_id());
    assert_eq!(record.text("cache"), "revalidated");
}

#[test]
fn a_stale_response_is_served_while_a_new_one_is_fetched() {
    let gate = Gate::new();
    let waits = gate.clone();
    let upstream = scripted(move |number| {
        if number == 1 {
            answer(200, "Cache-Control: max-age=1\r\nAge: 10\r\n", "old")
        } else {
            waits.wait();
            answer(200, FRESH, "new")
        }
    });
    let proxyd = cached(&upstream, "stale-while-revalidate-secs 600");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "old");
    for _ in 0..3 {
        let stale = ask(&mut client, "/");
        assert_eq!(stale.text(), "old");
        assert!(
            status(&stale).ends_with("detail=stale-while-revalidate"),
            "{}",
            status(&stale)
        );
    }
    // One fetch for all of them.
    let requests = upstream.wait_for_requests(2);
    assert_eq!(requests.len(), 2);
    gate.open();
    let fresh = (0..100_000).find(|_| ask(&mut client, "/").text() == "new");
    assert!(fresh.is_some());
    assert_eq!(upstream.requests().len(), 2);
}

#[test]
fn a_stale_response_is_served_in_place_of_an_error() {
    let upstream = scripted(|number| match number {
        1 => answer(
            200,
            "Cache-Control: max-age=1\r\nAge: 10\r\nETag: \"e\"\r\n",
            "old",
        ),
        _ => answer(503, "", "down"),
    });
    let proxyd = cached(&upstream, "stale-if-error-secs 600");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "old");
    let stale = ask(&mut client, "/");
    assert_eq!((stale.status, stale.text()), (200, "old".to_owned()));
    assert!(
        status(&stale).ends_with("detail=stale-if-error"),
        "{}",
        status(&stale)
    );
    assert!(
        status(&stale).contains("fwd-status=503"),
        "{}",
        status(&stale)
    );
    let stale = client.ask(get("/", &[("Range", "bytes=1-")]));
    assert_eq!((stale.status, stale.text()), (206, "ld".to_owned()));
    drop(upstream);
    let stale = ask(&mut client, "/");
    assert_eq!((stale.status, stale.text()), (200, "old".to_owned()));
    client.send(request("HEAD /", "", ""));
    let stale = client.head();
    assert_eq!(
        (stale.status, stale.fields.get("content-length")),
        (200, Some("3"))
    );
    assert!(ask(&mut client, "/other").status >= 502);
}

#[test]
fn a_range_request_for_a_stale_response_is_forwarded_unchanged() {
    let upstream = scripted(|number| match number {
        1 => answer(
            200,
            "Cache-Control: max-age=1\r\nAge: 10\r\nETag: \"e\"\r\n",
            "old",
        ),
        2 => answer(206, "Content-Range: bytes 1-2/3\r\nETag: \"f\"\r\n", "ew"),
        _ => answer(200, FRESH, "new"),
    });
    let proxyd = cached(&upstream, "stale-if-error-secs 600");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "old");

    let part = client.ask(get("/", &[("Range", "bytes=1-")]));

    assert_eq!((part.status, part.text()), (206, "ew".to_owned()));
    assert_eq!(status(&part), "proxyd; fwd=stale");
    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("range"), Some("bytes=1-"));
    assert!(!seen.fields.has("if-none-match"));
    assert_eq!(ask(&mut client, "/").text(), "new");
}

#[test]
fn one_request_is_forwarded_for_many_of_the_same_key() {
    let gate = Gate::new();
    let waits = gate.clone();
    let upstream = scripted(move |number| {
        waits.wait();
        answer(200, FRESH, &number.to_string())
    });
    let proxyd = cached(&upstream, "collapse-secs 60");
    let mut clients: Vec<_> = (0..20).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(1);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().text(), "1");
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_response_that_is_not_stored_releases_those_that_wait_at_once() {
    let gate = Gate::new();
    let waits = gate.clone();
    let upstream = scripted(move |number| {
        waits.wait();
        answer(200, "Cache-Control: private\r\n", &number.to_string())
    });
    let proxyd = cached(&upstream, "collapse-secs 60");
    let mut clients: Vec<_> = (0..5).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(1);
    gate.open();
    let mut bodies: Vec<_> = clients
        .iter_mut()
        .map(|client| client.response().text())
        .collect();
    bodies.sort();
    assert_eq!(bodies, ["1", "2", "3", "4", "5"]);
}

#[test]
fn requests_that_wait_too_long_are_forwarded_too() {
    let gate = Gate::new();
    let waits = gate.clone();
    let upstream = scripted(move |number| {
        if number == 1 {
            waits.wait();
        }
        answer(200, FRESH, &number.to_string())
    });
    let proxyd = cached(&upstream, "collapse-ms 1");
    let (mut first, mut second) = (proxyd.connect(), proxyd.connect());
    first.send(get("/", &[]));
    upstream.wait_for_requests(1);
    assert_eq!(ask(&mut second, "/").text(), "2");
    gate.open();
    assert_eq!(first.response().text(), "1");
}

#[test]
fn a_slow_reader_does_not_hold_up_the_store() {
    let body = "x".repeat(3_000_000);
    let length = body.len();
    let upstream = scripted(move |_| answer(200, FRESH, &body));
    let proxyd = Config::through(&upstream, "cache { cache-status #true }")
        .top("cache { max-bytes \"64MiB\"; max-object-bytes \"8MiB\" }")
        .start();
    let mut slow = proxyd.connect();
    slow.send(get("/", &[]));
    let mut begun = slow.head();
    // The first client reads no further, and its response is stored nevertheless.
    let mut fast = proxyd.connect();
    let response = ask(&mut fast, "/");
    assert_eq!(response.body.len(), length);
    assert_eq!(upstream.requests().len(), 1);
    slow.body(&mut begun);
    assert_eq!(begun.body.len(), length);
}

#[test]
fn a_response_is_stored_although_its_client_leaves() {
    let gate = Gate::new();
    let waits = gate.clone();
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            served.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=600\r\n\r\n01234",
            );
            waits.wait();
            served.send("56789");
        }
    });
    let proxyd = cached(&upstream, "");
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    let _begun = first.head();
    drop(first);
    gate.open();
    let mut second = proxyd.connect();
    assert_eq!(ask(&mut second, "/").text(), "0123456789");
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_truncated_response_is_not_stored() {
    let upstream = Upstream::start(|served| {
        if served.number() == 0 && served.request().is_some() {
            served.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=600\r\n\r\n01234",
            );
            return;
        }
        while served.request().is_some() {
            served.send(answer(200, FRESH, "whole"));
        }
    });
    let proxyd = cached(&upstream, "");
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    assert!(first.try_response().is_err());
    assert_eq!(ask(&mut proxyd.connect(), "/").text(), "whole");
}

#[test]
fn a_response_that_is_too_large_passes_whole() {
    let bounds = "cache { max-bytes \"64KiB\"; max-object-bytes \"8KiB\" }";
    // A response with a length, then one without.
    for is_chunked in [false, true] {
        let body = "x".repeat(200_000);
        let upstream = Upstream::start(move |served| {
            while served.request().is_some() {
                let response = if is_chunked {
                    format!(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                        body.len()
                    )
                } else {
                    answer(200, FRESH, &body)
                };
                served.send(response);
            }
        });
        let proxyd = Config::through(&upstream, "cache").top(bounds).start();
        for number in 1..=2 {
            let mut client = proxyd.connect();
            assert_eq!(ask(&mut client, "/").body.len(), 200_000);
            assert_eq!(upstream.requests().len(), number);
        }
    }
}

#[test]
fn the_cache_stays_within_its_bytes() {
    let body = "x".repeat(7_000);
    let upstream = scripted(move |_| answer(200, FRESH, &body));
    let proxyd = Config::through(&upstream, "cache")
        .route("metrics", METRICS)
        .top("cache { max-bytes \"64KiB\"; max-object-bytes \"8KiB\" }")
        .start();
    let mut client = proxyd.connect();
    for number in 0..50 {
        for _ in 0..2 {
            assert_eq!(ask(&mut client, &format!("/{number}")).body.len(), 7_000);
        }
        assert!(metric(&mut client, "proxy_cache_bytes") <= 65_536.0);
    }
    assert!(metric(&mut client, "proxy_cache_objects") >= 4.0);
    let misses = metric(
        &mut client,
        "proxy_cache_requests_total{route=\"all\",result=\"miss\"",
    );
    assert!(misses >= 50.0);
}

#[test]
fn an_unsafe_request_invalidates_the_responses_of_its_target() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            served.send(match request.target.as_str() {
                "/fails" if request.method == "POST" => answer(500, "", ""),
                "/form" => answer(201, "Location: /b\r\n", ""),
                _ => answer(200, FRESH, &request.number.to_string()),
            });
        }
    });
    // Requests that change the resource have another route than requests that read it.
    let proxyd = Config::new()
        .route("read", "upstream \"u\"; matches { method \"GET\" }; cache")
        .route("change", "upstream \"u\"")
        .upstream("u", &crate::support::target(&upstream))
        .start();
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/a").text(), "1");
    assert_eq!(ask(&mut client, "/b").text(), "2");
    assert_eq!(ask(&mut client, "/fails").text(), "3");
    assert_eq!(client.ask(post("/a", "x")).status, 200);
    assert_eq!(ask(&mut client, "/a").text(), "5");
    assert_eq!(ask(&mut client, "/b").text(), "2");
    assert_eq!(client.ask(post("/form", "x")).status, 201);
    assert_eq!(ask(&mut client, "/b").text(), "7");
    assert_eq!(client.ask(post("/fails", "x")).status, 500);
    assert_eq!(ask(&mut client, "/fails").text(), "3");
}

#[test]
fn equivalent_hosts_are_stored_apart_and_removed_together() {
    let upstream = numbered(FRESH);
    let proxyd = cached(&upstream, "ignore-query \"utm\"");
    let mut client = proxyd.connect();
    let mut ask = |method: &str, host: &str| {
        let head = format!("{method} /a?utm=1 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        client.ask(head).text()
    };
    let hosts = ["a.test", "a.test:80", "a.test.", "a.test:81"];
    for (number, host) in (1..).zip(hosts) {
        // An upstream may answer by the form of the host.
        for _ in 0..2 {
            assert_eq!(ask("GET", host), number.to_string(), "{host}");
        }
    }
    assert_eq!(ask("PUT", "A.test:80"), "5");
    for (number, host) in (6..).zip(["a.test", "a.test:80", "a.test."]) {
        assert_eq!(ask("GET", host), number.to_string(), "{host}");
    }
    assert_eq!(ask("GET", "a.test:81"), "4");
}

#[test]
fn request_cache_directives_apply_if_the_route_enables_them() {
    let reload = &[("Cache-Control", "no-cache")];
    let only = &[("Cache-Control", "only-if-cached")];
    for (settings, expected) in [("", "1"), ("client-directives #true", "2")] {
        let upstream = numbered("Cache-Control: max-age=600\r\nETag: \"x\"\r\n");
        let proxyd = cached(&upstream, settings);
        let mut client = proxyd.connect();
        if settings.is_empty() {
            assert_eq!(client.ask(get("/", only)).text(), "1");
        } else {
            let refused = client.ask(get("/", only));
            assert_eq!(refused.status, 504);
            assert_eq!(reason(&proxyd, &refused), "not_stored");
        }
        assert_eq!(ask(&mut client, "/").text(), "1");
        assert_eq!(client.ask(get("/", only)).text(), "1");
        assert_eq!(client.ask(get("/", reload)).text(), expected);
    }
}

#[test]
fn a_reload_keeps_responses_that_its_settings_do_not_change() {
    let upstream = numbered(FRESH);
    let config = |settings: &str| Config::through(&upstream, settings);
    let before = config("cache { collapse-secs 3 }");
    let proxyd = before.start();
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "1");

    let same = config(
        "cache { collapse-secs 4; cache-status #true }; response-headers { set \"X-New\" \"1\" }",
    );
    assert_eq!(proxyd.reload(&same.kdl()), Reload::Applied);
    let mut client = proxyd.connect();
    let kept = ask(&mut client, "/");
    assert_eq!(
        (kept.text().as_str(), kept.fields.get("x-new")),
        ("1", Some("1"))
    );

    let other = config("cache; request-headers { set \"X-Tenant\" \"b\" }");
    assert_eq!(proxyd.reload(&other.kdl()), Reload::Applied);
    assert_eq!(ask(&mut proxyd.connect(), "/").text(), "2");
}

#[test]
fn fields_for_each_client_are_added_to_stored_responses() {
    let upstream = numbered(FRESH);
    let route = "cache; cors { allow-origins \"https://a.test\" \"https://b.test\" }; \
                 response-headers { set \"X-Request\" \"{correlation_id}\" }; \
                 compression { types \"text/plain\" }";
    let proxyd = Config::through(&upstream, route).start();
    let mut client = proxyd.connect();
    for origin in ["https://a.test", "https://b.test"] {
        let response = client.ask(get("/", &[("Origin", origin)]));
        assert_eq!(response.text(), "1");
        assert_eq!(response.fields.all("access-control-allow-origin"), [origin]);
        let id = response.correlation_id();
        assert_eq!(response.fields.all("x-request"), [id.as_str()]);
    }
    assert_eq!(upstream.requests().len(), 1);
}
