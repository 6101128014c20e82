//! Requests over HTTP/2, at their upstreams and clients.

use crate::support::{
    Authority, Frames, Http2, SETTINGS, TlsClient, ask, block_on, curl, get, over_tls, start, to,
};
use proxy_testkit::{Gate, RawClient, Upstream, ok};

const H2C: &str = "h2c #true";

#[test]
fn http2_is_negotiated_over_tls() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &over_tls("")), &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority).offering(&["h2"]);
        let secure = client.connect(proxyd.address(), "a.test").await;
        let mut http = Http2::over(secure.stream).await;
        let mut request = get("/a?b=c");
        request
            .headers_mut()
            .insert("x-seen", "yes".parse().unwrap());
        let answer = http.ask(request).await;

        assert_eq!((answer.status.as_u16(), answer.text()), (200, "hello"));
        assert!(answer.header("date").unwrap().ends_with(" GMT"));
        assert!(!answer.headers.contains_key("connection"));
        let id = answer.header("x-correlation-id").unwrap();
        let record = proxyd.access_record(id);
        assert_eq!(record.text("protocol"), "HTTP/2");
        assert_eq!(record.text("host"), "a.test");
    });
    let seen = upstream.last_request();
    assert_eq!(
        (seen.target.as_str(), seen.version.as_str()),
        ("/a?b=c", "HTTP/1.1")
    );
    for (name, value) in [
        ("host", "a.test"),
        ("x-seen", "yes"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "a.test"),
    ] {
        assert_eq!(seen.fields.get(name), Some(value), "{name}");
    }
}

#[test]
fn http2_is_spoken_without_tls_where_that_is_allowed() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        assert_eq!(http.get("/").await.text(), "hello");
    });
    // HTTP/1.1 is used for every other method, with any first letter.
    for request in ["PUT", "P", "GET"] {
        let mut client = proxyd.connect();
        client.send(&request.as_bytes()[..1]);
        client.send(&request.as_bytes()[1..]);
        let response = client.ask(" / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(response.status, 200, "{request}");
    }
}

#[test]
fn http2_where_it_is_not_allowed_is_not_a_request() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, ""), &[]);

    let mut client = RawClient::connect(proxyd.address());
    let response = client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(
        (response.status, response.error_code().as_str()),
        (400, "PARSE")
    );
}

#[test]
fn a_widespread_client_is_understood() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::echo();
    let secure = start(&to(&upstream, &over_tls("")), &[("site", &site)]);
    let plain = start(&to(&upstream, H2C), &[]);
    let root = authority.write(secure.folder(), "root.pem");
    for (how, address, scheme) in [
        ("--http2", secure.address(), "https"),
        ("--http2-prior-knowledge", plain.address(), "http"),
    ] {
        let resolve = format!("a.test:{}:127.0.0.1", address.port());
        let url = format!("{scheme}://a.test:{}/", address.port());
        let root = root.to_str().unwrap();
        let trust = ["--cacert", root, "--resolve", &resolve];
        let printed = curl(&[&["--data", "hello", how][..], &trust, &[&url]].concat());
        assert_eq!(printed, "hello 2");
    }
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let gate = Gate::new();
    let upstream = {
        let gate = gate.clone();
        Upstream::start(move |served| {
            while let Some(request) = served.request() {
                if request.target == "/slow" {
                    gate.wait();
                }
                served.send(ok(request.target));
            }
        })
    };
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let slow = http.send(get("/slow")).await;
        for _ in 0..20 {
            assert_eq!(http.get("/fast").await.text(), "/fast");
        }
        gate.open();
        let answer = crate::support::Answer::read(slow.await.unwrap()).await;
        assert_eq!(answer.unwrap().text(), "/slow");
    });
}

#[test]
fn no_more_streams_are_open_than_allowed() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let proxyd = start(&to(&upstream, "h2c #true; max-concurrent-streams 2"), &[]);

    block_on(async {
        use crate::support::{END_HEADERS, END_STREAM, GET, HEADERS, REFUSED_STREAM, RST_STREAM};
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        let settings = frames.next_of(SETTINGS).await;
        let is_announced = settings
            .payload
            .chunks(6)
            .any(|one| one == [0, 3, 0, 0, 0, 2]);
        assert!(is_announced, "{settings:?}");
        frames.send(SETTINGS, 1, 0, &[]).await;
        for stream in [1, 3, 5] {
            frames
                .send(HEADERS, END_STREAM | END_HEADERS, stream, GET)
                .await;
        }
        let reset = frames.next_of(RST_STREAM).await;
        assert_eq!((reset.stream, reset.code()), (5, REFUSED_STREAM));
        gate.open();
        let mut answered = [0, 0].map(|_: u8| 0);
        for place in &mut answered {
            *place = frames.next_of(HEADERS).await.stream;
        }
        answered.sort_unstable();
        assert_eq!(answered, [1, 3]);
    });
}

#[test]
fn local_responses_are_complete() {
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, H2C).replace(
        "upstream \"u\" }",
        "matches { path \"/\" }; upstream \"u\" }",
    );
    let proxyd = start(&kdl, &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let answer = http.get("/nowhere").await;
        assert_eq!(answer.status, 404);
        assert_eq!(answer.error_code(), "ROUTE_NOT_FOUND");
        let length = answer.body.len().to_string();
        assert_eq!(answer.header("content-length"), Some(&*length));
        let head = http.ask(ask("HEAD", "/nowhere")).await;
        assert_eq!(head.header("content-length"), Some(&*length));
        assert!(head.body.is_empty());
    });
}

#[test]
fn early_hints_precede_the_response() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nx: y\r\n\r\n";
    let upstream = Upstream::answering([hints.as_bytes(), &ok("hello")].concat());
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut response = http.send(get("/")).await;
        let hint = std::future::poll_fn(|cx| response.poll_informational(cx)).await;
        let hint = hint.unwrap().unwrap();
        assert_eq!(hint.status(), 103);
        assert_eq!(hint.headers()["link"], "</a>");
        assert_eq!(hint.headers().len(), 1);
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

#[test]
fn a_response_without_content_has_no_length() {
    let hints = "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n";
    let nothing = "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n";
    let upstream = Upstream::answering([hints, nothing].concat());
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut response = http.send(get("/")).await;
        let hint = std::future::poll_fn(|cx| response.poll_informational(cx)).await;
        assert_eq!(hint.unwrap().unwrap().headers().len(), 0);
        let response = response.await.unwrap();
        assert_eq!(response.status(), 204);
        assert!(!response.headers().contains_key("content-length"));
    });
}

#[test]
fn a_body_held_back_is_asked_for_when_it_is_wanted() {
    let upstream = Upstream::echo();
    let limited = to(&upstream, H2C) + "limits { max-body-size-bytes 10 }";
    let proxyd = start(&limited, &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let request = |length: &str| {
            let mut request = ask("POST", "/");
            let headers = request.headers_mut();
            headers.insert("expect", "100-continue".parse().unwrap());
            headers.insert("content-length", length.parse().unwrap());
            request
        };
        let (mut response, mut body) = http.begin(request("5")).await;
        let interim = std::future::poll_fn(|cx| response.poll_informational(cx)).await;
        assert_eq!(interim.unwrap().unwrap().status(), 100);
        body.send_data("hello".into(), true).unwrap();
        let answer = crate::support::Answer::read(response.await.unwrap()).await;
        assert_eq!(answer.unwrap().text(), "hello");

        // A request that is too large is refused without `100 Continue`.
        let (mut response, _body) = http.begin(request("11")).await;
        let interim = std::future::poll_fn(|cx| response.poll_informational(cx)).await;
        assert!(interim.is_none());
        assert_eq!(response.await.unwrap().status(), 413);
    });
}
