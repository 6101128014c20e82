//! Responses that the cache must not serve or store, and requests that it must not disturb.

use crate::support::{Config, Proxy, reason, target};
use proxy_testkit::{Gate, RawClient, Reload, Response, Upstream, get};
use std::net::{IpAddr, TcpListener};

const FRESH: &str = "Cache-Control: public, max-age=600\r\n";
/// Stale on arrival, and usable in place of an error.
const LATE: &str = "Cache-Control: max-age=1, stale-if-error=600\r\nAge: 10\r\nETag: \"e\"\r\n";

fn answer(status: u16, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{fields}\r\n{body}")
}

/// Answers with the result of `response` for the number of the request, from 1.
fn scripted(response: impl Fn(usize) -> String + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            served.send(response(request.number));
        }
    })
}

fn numbered(fields: &'static str) -> Upstream {
    scripted(move |number| answer(200, fields, &number.to_string()))
}

fn cached(upstream: &Upstream, settings: &str) -> Proxy {
    Config::through(
        upstream,
        &format!("cache {{ cache-status #true }}; {settings}"),
    )
    .start()
}

fn ask(client: &mut RawClient, path: &str) -> Response {
    client.ask(get(path, &[]))
}

fn status(response: &Response) -> &str {
    response.fields.get("cache-status").unwrap_or_default()
}

#[test]
fn a_client_that_the_route_refuses_gets_no_stored_response() {
    let upstream = numbered(FRESH);
    let proxyd = cached(&upstream, "deny \"192.0.2.0/24\"");
    let from = |ip: &str| -> Response {
        let ip: IpAddr = ip.parse().unwrap();
        ask(&mut proxyd.connect_from(ip), "/")
    };
    assert_eq!(from("198.51.100.1").text(), "1");
    assert_eq!(from("198.51.100.1").text(), "1");
    let refused = from("192.0.2.9");
    assert_eq!(refused.status, 403);
    assert_eq!(reason(&proxyd, &refused), "access_denied");
}

/// A proxy, and the configuration of a reload that leaves no target for requests.
fn emptied(upstream: &Upstream, settings: &str) -> (Proxy, String) {
    let route = format!("upstream \"u\"; cache; {settings}");
    let with = |targets: &str| Config::new().route("all", &route).upstream("u", targets);
    let without = with(&format!("{} {{ weight 0 }}", target(upstream)));
    (with(&target(upstream)).start(), without.kdl())
}

#[test]
fn a_fresh_response_is_served_without_a_target() {
    let upstream = numbered(FRESH);
    let (proxyd, without) = emptied(&upstream, "");
    assert_eq!(ask(&mut proxyd.connect(), "/").text(), "1");
    assert_eq!(proxyd.reload(&without), Reload::Applied);
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "1");
    assert_eq!(ask(&mut client, "/other").status, 503);
}

#[test]
fn a_client_without_credentials_gets_no_stored_response_without_a_target_either() {
    let hash = "$2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS";
    let upstream = numbered(FRESH);
    let settings = format!("basic-auth {{ user \"ann\" \"{hash}\" }}");
    let (proxyd, without) = emptied(&upstream, &settings);
    let ann = &[("Authorization", "Basic YW5uOm9uZQ==")];
    let eve = &[("Authorization", "Basic ZXZlOm9uZQ==")];
    let mut client = proxyd.connect();
    for _ in 0..2 {
        assert_eq!(client.ask(get("/", ann)).text(), "1");
    }
    assert_eq!(proxyd.reload(&without), Reload::Applied);
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").status, 401);
    assert_ne!(client.ask(get("/", eve)).status, 200);
}

#[test]
fn a_stale_response_stands_in_for_an_upstream_that_takes_too_long() {
    let gate = Gate::new();
    let waits = gate.clone();
    let upstream = scripted(move |number| {
        if number > 1 {
            waits.wait();
        }
        answer(200, LATE, "old")
    });
    let proxyd = cached(&upstream, "policies { timeouts { request-ms 300 } }");
    let mut client = proxyd.connect();
    assert_eq!(ask(&mut client, "/").text(), "old");
    let stale = ask(&mut client, "/");
    assert_eq!((stale.status, stale.text()), (200, "old".to_owned()));
    assert!(
        status(&stale).ends_with("detail=stale-if-error"),
        "{}",
        status(&stale)
    );
    gate.open();
}

#[test]
fn requests_that_waited_for_a_client_that_left_are_answered() {
    let gate = Gate::new();
    let waits = gate.clone();
    let upstream = scripted(move |number| {
        if number == 1 {
            waits.wait();
        }
        answer(200, FRESH, &number.to_string())
    });
    let proxyd = Config::through(&upstream, "cache { collapse-secs 60 }").start();
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    upstream.wait_for_requests(1);
    let mut others: Vec<_> = (0..5).map(|_| proxyd.connect()).collect();
    for client in &mut others {
        client.send(get("/", &[]));
    }
    // The fetch ends with its client, and another client's request fetches.
    drop(first);
    for client in &mut others {
        assert_eq!(client.response().text(), "2");
    }
    assert_eq!(upstream.requests().len(), 2);
    gate.open();
}

#[test]
fn a_stored_default_is_for_requests_without_a_cookie_only() {
    let upstream = numbered("");
    let proxyd = Config::through(&upstream, "cache { cache-status #true; ttl-secs 600 }").start();
    let mut client = proxyd.connect();
    let cookie = &[("Cookie", "sid=1")];
    assert_eq!(ask(&mut client, "/").text(), "1");
    let own = client.ask(get("/", cookie));
    assert_eq!(own.text(), "2");
    assert_eq!(status(&own), "proxyd; fwd=uri-miss; detail=cookie");
    assert_eq!(ask(&mut client, "/").text(), "1");
}

#[test]
fn a_client_gets_the_fields_of_a_validation_that_are_not_stored() {
    let upstream = scripted(|number| {
        if number == 1 {
            answer(
                200,
                "Cache-Control: max-age=1\r\nAge: 10\r\nETag: \"e\"\r\n",
                "body",
            )
        } else {
            "HTTP/1.1 304 X\r\nETag: \"e\"\r\nSet-Cookie: sid=1\r\n\r\n".to_owned()
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
    assert_eq!(validated.fields.get("set-cookie"), Some("sid=1"));
    assert_eq!(
        status(&validated),
        "proxyd; fwd=stale; fwd-status=304; detail=set-cookie"
    );
}

#[test]
fn conditions_reach_the_upstream_where_nothing_can_be_stored() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            served.send(if request.fields.has("if-none-match") {
                "HTTP/1.1 304 X\r\nETag: \"e\"\r\nCache-Control: private\r\n\r\n".to_owned()
            } else {
                answer(200, "ETag: \"e\"\r\nCache-Control: private\r\n", "body")
            });
        }
    });
    let proxyd = cached(&upstream, "");
    let mut client = proxyd.connect();
    let held = &[("If-None-Match", "\"e\"")];
    // The proxy does not know yet that the response is private, and fetches all of it to store it.
    assert_eq!(client.ask(get("/", held)).status, 200);
    assert_eq!(client.ask(get("/", held)).status, 304);
    assert_eq!(ask(&mut client, "/").text(), "body");
}

#[test]
fn a_stream_of_events_is_neither_stored_nor_waited_for() {
    let gate = Gate::new();
    let waits = gate.clone();
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            served.send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                 Transfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n",
            );
            waits.wait();
            served.send("0\r\n\r\n");
        }
    });
    let proxyd = Config::through(
        &upstream,
        "cache { cache-status #true; ttl-secs 600; collapse-secs 60 }",
    )
    .start();
    for _ in 0..2 {
        let mut client = proxyd.connect();
        let head = client.send(get("/", &[])).head();
        assert_eq!(status(&head), "proxyd; fwd=uri-miss; detail=stream");
    }
    gate.open();
}

#[test]
fn a_response_that_is_fetched_meanwhile_has_its_location_written_back() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = Upstream::start_on(listener, move |served| {
        while let Some(request) = served.request() {
            let number = request.number;
            let age = if number == 1 { 10 } else { 0 };
            let fields = format!(
                "Cache-Control: max-age=5, stale-while-revalidate=600\r\nAge: {age}\r\n\
                 Location: http://{address}/x\r\n"
            );
            served.send(answer(301, &fields, &number.to_string()));
        }
    });
    let proxyd = Config::new()
        .route(
            "all",
            "upstream \"u\"; matches { path-prefix \"/api\" }; cache; \
             rewrite { strip-prefix \"/api\" }",
        )
        .upstream("u", &target(&upstream))
        .start();
    let mut client = proxyd.connect();
    let expected = Some("http://a.test/api/x");
    let first = ask(&mut client, "/api/y");
    assert_eq!(
        (first.text().as_str(), first.fields.get("location")),
        ("1", expected)
    );
    let renewed = (0..100_000).find_map(|_| {
        let response = ask(&mut client, "/api/y");
        (response.text() != "1").then_some(response)
    });
    let renewed = renewed.unwrap();
    assert_eq!(renewed.fields.get("location"), expected);
}

#[test]
fn a_value_of_the_client_in_a_field_for_the_upstream_is_not_shared() {
    // Public, but selected by a field that only the proxy sets.
    let upstream = numbered("Cache-Control: public, max-age=600\r\nVary: X-Client\r\n");
    let proxyd = cached(
        &upstream,
        "request-headers { set \"X-Client\" \"{client_ip}\" }",
    );
    let mut client = proxyd.connect();
    let first = ask(&mut client, "/");
    assert_eq!(status(&first), "proxyd; fwd=uri-miss; detail=vary");
    assert_eq!(ask(&mut client, "/").text(), "2");
}
