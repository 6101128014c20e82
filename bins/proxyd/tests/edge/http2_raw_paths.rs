//! Characters of a target that clients send unescaped, over HTTP/2.

use crate::support::{
    END_HEADERS, END_STREAM, Frames, HEADERS, Http2Upstream, block_on, curl, start, to, to_http2,
};
use http::Response;
use proxy_testkit::{Proxyd, RawClient, Upstream, get};

const ENDS: u8 = END_STREAM | END_HEADERS;

/// `GET` over `http` at `a.test`, without a path.
const PATHLESS: &[u8] = b"\x82\x86\x01\x06a.test";

const PATHS: [&str; 10] = [
    "/<",
    "/>",
    "/`",
    "/\"",
    "/?<",
    "/?>",
    "/?\"",
    "/?`",
    "/a`<b>\"{}|^?q=\"<`>\"{}|^",
    "/~",
];

/// `:path` in plain text, with this first byte.
fn path(first: u8, value: &str) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    [&[first, length], value.as_bytes()].concat()
}

/// Requests each of these paths on one connection.
fn ask_all(proxyd: &Proxyd, paths: &[Vec<u8>]) {
    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        for (stream, path) in (1..).step_by(2).zip(paths) {
            let head = [PATHLESS, path].concat();
            client.send(HEADERS, ENDS, stream, &head).await;
            let answer = client.next_of(HEADERS).await;
            assert_eq!(answer.stream, stream, "{}", path.escape_ascii());
        }
    });
}

fn targets(upstream: &Upstream) -> Vec<String> {
    let requests = upstream.requests().into_iter();
    requests.map(|request| request.target.clone()).collect()
}

#[test]
fn raw_characters_reach_an_http1_upstream_as_over_http1() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);
    for path in PATHS {
        let mut client = RawClient::connect(proxyd.address());
        assert_eq!(client.ask(get(path, &[])).status, 200, "{path}");
    }
    // Without indexing, and never indexed.
    for first in [0x04, 0x14] {
        ask_all(&proxyd, &PATHS.map(|value| path(first, value)));
    }
    let seen = targets(&upstream);
    assert_eq!(seen, [PATHS; 3].concat());
}

#[test]
fn raw_characters_pass_in_huffman_code() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);
    let paths = [
        &b"\x04\x83\x63\xff\xe7"[..],
        b"\x14\x84\x63\xfc\xfe\x7f",
        b"\x44\x85\x63\xff\xef\xfd\xff",
        b"\xbe",
    ];
    ask_all(&proxyd, &paths.map(<[u8]>::to_vec));
    assert_eq!(targets(&upstream), ["/<", "/?\"", "/`>", "/`>"]);
}

#[test]
fn raw_characters_pass_by_index() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);
    let paths = [
        path(0x44, "/a?b=\"c\""),
        b"\xbe".to_vec(),
        path(0x44, "/plain"),
        // The oldest entry, then the newest.
        b"\xbf".to_vec(),
        b"\xbe".to_vec(),
        path(0x04, "/<"),
        path(0x44, "/`"),
        b"\xc0".to_vec(),
    ];
    ask_all(&proxyd, &paths);
    let quoted = "/a?b=\"c\"";
    let wanted = [
        quoted, quoted, "/plain", quoted, "/plain", "/<", "/`", quoted,
    ];
    assert_eq!(targets(&upstream), wanted);
}

#[test]
fn raw_characters_are_logged_as_over_http1_and_refused_alike() {
    let upstream = Upstream::saying("hello");
    let strict = "h2c #true; path-policy \"strict\"";
    let proxyd = start(&to(&upstream, strict), &[]);
    for value in ["/<a>?\"b\"", "/../<", "/<%zz"] {
        let answer = RawClient::connect(proxyd.address()).ask(get(value, &[]));
        let over_http1 = proxyd.access_record(&answer.correlation_id());
        ask_all(&proxyd, &[path(0x04, value)]);
        let over_http2 = proxyd.stdout().find(0, |record| {
            record.has("status")
                && record.text("protocol") == "HTTP/2"
                && record.text("path") == over_http1.text("path")
        });
        assert_eq!(over_http2.number("status"), over_http1.number("status"));
    }
}

#[test]
fn raw_characters_reach_an_http2_upstream_as_from_http1() {
    let upstream = Http2Upstream::start(|mut request| async move {
        drop(request.respond.send_response(Response::new(()), true));
    });
    let address = upstream.address;
    let proxyd = start(&to_http2(address, ""), &[]);
    let value = "/a`<b>?c=\"d\"";
    let mut client = RawClient::connect(proxyd.address());
    assert_eq!(client.ask(get(value, &[])).status, 200);
    ask_all(&proxyd, &[path(0x04, value)]);
    let seen = upstream.requests.entries();
    let seen: Vec<_> = seen
        .iter()
        .map(|head| head.uri.path_and_query().unwrap().as_str())
        .collect();
    assert_eq!(seen, ["/a%60%3Cb%3E?c=%22d%22"; 2]);
}

#[test]
fn raw_characters_of_curl_pass() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);
    let value = "/a`<b>?c=\"d\"";
    let url = format!("http://{}{value}", proxyd.address());
    let arguments = ["--globoff", "--path-as-is", "--http2-prior-knowledge"];
    let printed = curl(&[&arguments[..], &[&url]].concat());
    assert_eq!(printed, "hello 2");
    assert_eq!(targets(&upstream), [value]);
}
