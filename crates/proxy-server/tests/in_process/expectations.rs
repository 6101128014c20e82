//! `Expect`, and interim responses.

use crate::support::{Config, Proxy, reason, refusal, request};
use proxy_testkit::{Gate, Upstream, get, ok};

const EXPECTING: &str = "Content-Length: 2\r\nExpect: 100-continue\r\n";

#[test]
fn a_client_that_waits_for_100_gets_it_and_then_the_answer() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let interim = client.ask(request("POST /", EXPECTING, ""));
        assert_eq!(interim.status, 100);
        let response = client.ask("hi");
        assert_eq!((response.status, response.text().as_str()), (200, "hi"));
    }
}

#[test]
fn a_client_that_waits_for_100_is_refused_at_once_without_a_target() {
    let upstream = Upstream::echo();
    let proxyd = start_with_nothing_but(&upstream);

    let response = proxyd.connect().ask(request("POST /other", EXPECTING, ""));

    refusal(&response, 404, "ROUTE_NOT_FOUND");
}

fn start_with_nothing_but(upstream: &Upstream) -> Proxy {
    let target = crate::support::target(upstream);
    let route = r#"upstream "u"; matches { path "/only" }"#;
    let config = Config::new().route("only", route);
    config.upstream("u", &target).start()
}

#[test]
fn a_client_that_does_not_wait_after_all_is_served() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let mut response = client.ask(request("POST /", EXPECTING, "hi"));
    if response.status == 100 {
        response = client.response();
    }

    assert_eq!((response.status, response.text().as_str()), (200, "hi"));
    // The connection is usable for another request.
    assert_eq!(response.fields.get("connection"), None);
    assert_eq!(client.ask(request("POST /", EXPECTING, "hi")).status, 200);
}

#[test]
fn other_expectations_are_refused() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[("Expect", "200-ok")]));

    refusal(&response, 417, "REQUEST_VALIDATION");
    assert_eq!(reason(&proxyd, &response), "unsupported_expectation");
    assert!(upstream.requests().is_empty());
}

#[test]
fn early_hints_reach_the_client_before_the_answer() {
    let gate = Gate::new();
    let wait = gate.clone();
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            served.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
            wait.wait();
            served.send(ok("done"));
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));
    let hint = client.response();
    assert_eq!(hint.status, 103);
    assert_eq!(hint.fields.get("link"), Some("</style.css>; rel=preload"));
    gate.open();
    assert_eq!(client.response().text(), "done");
    // Both connections remain usable.
    client.send(get("/", &[]));
    assert_eq!(client.response().status, 103);
    assert_eq!(client.response().text(), "done");
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn several_interim_responses_are_passed_on_in_order() {
    let upstream = Upstream::answering(
        [
            &b"HTTP/1.1 102 Processing\r\n\r\n"[..],
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
            b"HTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n",
            &ok("done"),
        ]
        .concat(),
    );
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));

    let statuses: Vec<u16> = (0..4).map(|_| client.response().status).collect();
    assert_eq!(statuses, [102, 103, 103, 200]);
}

#[test]
fn fields_of_one_connection_do_not_pass_in_interim_responses() {
    let upstream = Upstream::answering(
        [
            &b"HTTP/1.1 103 Early Hints\r\nConnection: X-Private\r\nX-Private: 1\r\n"[..],
            b"Keep-Alive: timeout=5\r\nLink: </a>\r\n\r\n",
            &ok("done"),
        ]
        .concat(),
    );
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));
    let hint = client.response();

    assert_eq!(hint.status, 103);
    assert_eq!(hint.fields.names(), ["link"]);
    assert_eq!(client.response().text(), "done");
}

#[test]
fn fields_that_a_route_edits_do_not_pass_in_interim_responses_and_trailers() {
    let fields = "X-Internal: secret\r\nServer: inner\r\nX-Frame-Options: ALLOWALL\r\n\
        Access-Control-Allow-Origin: *\r\nX-Correlation-Id: evil\r\nX-RateLimit-Limit: 1\r\n\
        Set-Cookie: a=b; Path=/inner\r\nLocation: /inner/a\r\nX-Kept: 1\r\n";
    let upstream = Upstream::answering(format!(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n{fields}\r\nHTTP/1.1 200 OK\r\n\
         Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n{fields}\r\n"
    ));
    let policies = r#"response-headers { remove "X-Internal" "Server"; set "X-Frame-Options" "DENY" }
        cors { allow-origins "https://app.test" }
        rewrite { replace-prefix "/app" "/inner" }"#;
    let proxyd = Config::through(&upstream, policies).start();
    let mut client = proxyd.connect();

    client.send(get("/app/a", &[("TE", "trailers"), ("Connection", "TE")]));
    let hint = client.response();
    assert_eq!(hint.status, 103);
    assert_eq!(hint.fields.names(), ["link", "x-kept"]);
    let response = client.response();
    assert_eq!(response.text(), "hi");
    assert_eq!(response.fields.get("x-frame-options"), Some("DENY"));
    assert_eq!(response.trailers.names(), ["x-kept"]);
}

#[test]
fn an_early_refusal_of_an_upstream_is_read_while_the_body_is_held_back() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let mut response = client.ask(request("POST /", EXPECTING, ""));
    if response.status == 100 {
        response = client.response();
    }

    assert_eq!((response.status, response.text().as_str()), (403, "no"));
}

#[test]
fn a_body_sent_without_waiting_does_not_cost_its_connection() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..3 {
        let response = client.ask(request("POST /", EXPECTING, "hi"));
        assert_eq!((response.status, response.text().as_str()), (200, "hi"));
        assert!(!response.fields.has("connection"));
    }
}
