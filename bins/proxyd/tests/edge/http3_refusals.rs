//! Requests and streams that HTTP/3 forbids.

use crate::support::{Http3, Http3Client, Site, block_on, frame_of, head_of, section_of};
use proxy_testkit::Upstream;
use quinn::{ReadError, ReadToEndError};

const MESSAGE_ERROR: u64 = 0x10e;
const REQUEST_INCOMPLETE: u64 = 0x10d;
const EXCESSIVE_LOAD: u64 = 0x107;

const METHOD: (&str, &str) = (":method", "GET");
const SCHEME: (&str, &str) = (":scheme", "https");
const AUTHORITY: (&str, &str) = (":authority", "a.test");
const PATH: (&str, &str) = (":path", "/");
const HEAD: [(&str, &str); 4] = [METHOD, SCHEME, AUTHORITY, PATH];

/// The code with which the stream of this request is reset.
async fn reset(client: &Http3, request: &[u8]) -> u64 {
    let (mut send, mut receive) = client.open().await;
    drop(send.write_all(request).await);
    drop(send.finish());
    match receive.read_to_end(10_000).await {
        Err(ReadToEndError::Read(ReadError::Reset(code))) => code.into_inner(),
        other => panic!("not reset: {other:?}"),
    }
}

fn with(more: &[(&str, &str)]) -> Vec<u8> {
    section_of(&[&HEAD, more].concat())
}

#[test]
fn malformed_heads_end_their_stream_only() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    let heads = [
        section_of(&[SCHEME, AUTHORITY, PATH]),
        section_of(&[METHOD, AUTHORITY, PATH]),
        section_of(&[METHOD, SCHEME, AUTHORITY]),
        section_of(&[METHOD, SCHEME, AUTHORITY, (":path", "")]),
        section_of(&[METHOD, SCHEME, AUTHORITY, (":path", "/a b")]),
        section_of(&[METHOD, SCHEME, AUTHORITY, (":path", "/a#b")]),
        section_of(&[METHOD, SCHEME, (":authority", "me@a.test"), PATH]),
        section_of(&[METHOD, SCHEME, AUTHORITY, ("x", "1"), PATH]),
        section_of(&[(":method", "CONNECT"), SCHEME, AUTHORITY, PATH]),
        // WebSocket, which is not offered. [RFC 9220]
        section_of(&[
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            SCHEME,
            AUTHORITY,
            PATH,
        ]),
        with(&[PATH]),
        with(&[(":status", "200")]),
        with(&[(":protocol", "websocket")]),
        with(&[("Host", "a.test")]),
        with(&[("x y", "1")]),
        with(&[("x", "a\r\nb")]),
        with(&[("connection", "close")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("upgrade", "h2c")]),
        with(&[("keep-alive", "1")]),
        with(&[("proxy-connection", "close")]),
        with(&[("te", "gzip")]),
    ];
    block_on(async {
        let client = site.connect().await;
        for head in &heads {
            assert_eq!(reset(&client, head).await, MESSAGE_ERROR, "{head:?}");
        }
        assert_eq!(client.get("/").await.status, 200);
    });
    assert_eq!(upstream.requests().len(), 1);
    let record = site
        .proxyd
        .stdout()
        .find(0, |record| record.has("http_status"));
    assert_eq!(record.text("reason"), "http3_protocol_error");
    assert_eq!(record.text("error_type"), "Parse");
}

#[test]
fn contradictory_hosts_and_lengths_are_answered_400() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        for fields in [
            &[("host", "b.test")][..],
            &[("host", "a.test"), ("host", "a.test")],
            &[("content-length", "1"), ("content-length", "1")],
            &[("content-length", "+1")],
            &[("x", " padded ")],
        ] {
            let answer = client.send(&with(fields)).await.unwrap();
            assert_eq!(answer.status, 400, "{fields:?}");
            assert!(answer.header("x-correlation-id").is_some());
        }
        let answer = client
            .send(&section_of(&[METHOD, SCHEME, PATH]))
            .await
            .unwrap();
        assert_eq!(answer.status, 400);
    });
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn connect_is_refused_over_http3() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        let head = section_of(&[(":method", "CONNECT"), (":authority", "a.test:443")]);
        let answer = client.send(&head).await.unwrap();
        assert!((400..600).contains(&answer.status), "{}", answer.status);
        assert_eq!(client.get("/").await.status, 200);
    });
}

#[test]
fn a_body_of_another_length_is_malformed() {
    let upstream = Upstream::echo();
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        for (length, body) in [("5", &b"ab"[..]), ("1", b"ab"), ("0", b"ab")] {
            let mut bytes = head_of("POST", "/", &[("content-length", length)]);
            bytes.extend(frame_of(0x0, body));
            assert_eq!(reset(&client, &bytes).await, MESSAGE_ERROR, "{length}");
        }
        let mut bytes = head_of("POST", "/", &[]);
        bytes.extend(section_of(&[(":path", "/other")]));
        assert_eq!(reset(&client, &bytes).await, MESSAGE_ERROR);
        assert_eq!(client.get("/").await.status, 200);
    });
}

#[test]
fn incomplete_and_endless_heads_end_their_stream() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        assert_eq!(reset(&client, b"").await, REQUEST_INCOMPLETE);
        assert_eq!(
            reset(&client, &frame_of(0x21, b"grease")).await,
            REQUEST_INCOMPLETE
        );
        let large = with(&[("x", &*"a".repeat(100_000))]);
        assert_eq!(reset(&client, &large).await, EXCESSIVE_LOAD);
        // 30 000 references to one entry.
        let many = frame_of(0x1, &[&[0, 0][..], &vec![0xd1; 30_000]].concat());
        assert_eq!(reset(&client, &many).await, EXCESSIVE_LOAD);
        assert_eq!(client.get("/").await.status, 200);
    });
}

#[test]
fn frames_where_they_are_not_allowed_end_the_connection() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    let get = head_of("GET", "/", &[]);
    let cases = [
        (frame_of(0x0, b"early"), 0x105),
        (frame_of(0x4, b""), 0x105),
        ([&get[..], &frame_of(0x7, &[0])].concat(), 0x105),
        ([&get[..], &frame_of(0x2, b"")].concat(), 0x105),
        (
            [&get[..], &section_of(&[]), &frame_of(0x0, b"late")].concat(),
            0x105,
        ),
        (get[..get.len() - 1].to_vec(), 0x106),
        // A reference to a dynamic table.
        (frame_of(0x1, &[0, 0, 0x80]), 0x200),
        (frame_of(0x1, &[2, 0, 0x80]), 0x200),
    ];
    block_on(async {
        for (bytes, code) in &cases {
            let client = site.connect().await;
            drop(client.send(bytes).await);
            assert_eq!(client.closed().await, *code, "{bytes:?}");
        }
        assert_eq!(site.connect().await.get("/").await.status, 200);
    });
}

#[test]
fn violations_on_control_and_qpack_streams_end_the_connection() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    let cases: [(&[u8], u64); 9] = [
        (&[0x0, 0x4, 0x0], 0x103),
        (&[0x1, 0x0], 0x103),
        (&[0x2, 0x3f, 0xe1, 0x1f], 0x201),
        (&[0x2, 0xc0, 0x0], 0x201),
        (&[0x3, 0x80], 0x202),
        (&[0x3, 0x1], 0x202),
        (&[0x0], 0x103),
        (&[0x2, 0x40], 0x201),
        (&[0x3, 0x0], 0x202),
    ];
    block_on(async {
        for (bytes, code) in cases {
            let client = site.connect().await;
            let mut stream = client.connection.open_uni().await.unwrap();
            stream.write_all(bytes).await.unwrap();
            assert_eq!(client.closed().await, code, "{bytes:?}");
        }
        // A critical stream that ends.
        let client = site.connect().await;
        let mut stream = client.connection.open_uni().await.unwrap();
        stream.write_all(&[0x2]).await.unwrap();
        stream.finish().unwrap();
        assert_eq!(client.closed().await, 0x104);
        // A stream of an unknown type is stopped, and nothing else happens.
        let client = site.connect().await;
        let mut stream = client.connection.open_uni().await.unwrap();
        stream.write_all(&[0x40, 0x54, 1, 2, 3]).await.unwrap();
        assert_eq!(stream.stopped().await.unwrap().unwrap().into_inner(), 0x103);
        assert_eq!(client.get("/").await.status, 200);
    });
}

#[test]
fn a_control_stream_follows_its_rules() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    let cases: [(&[u8], u64); 8] = [
        // Settings of HTTP/2, and a setting twice.
        (&[0x0, 0x4, 0x2, 0x0, 0x1], 0x109),
        (&[0x0, 0x4, 0x2, 0x4, 0x1], 0x109),
        (&[0x0, 0x4, 0x4, 0x6, 0x1, 0x6, 0x1], 0x109),
        // No settings, and settings twice.
        (&[0x0, 0x21, 0x0], 0x10a),
        (&[0x0, 0x4, 0x0, 0x4, 0x0], 0x105),
        (&[0x0, 0x4, 0x0, 0x0, 0x1, 0x1], 0x105),
        // A lower MAX_PUSH_ID, and a higher GOAWAY.
        (&[0x0, 0x4, 0x0, 0xd, 0x1, 0x4, 0xd, 0x1, 0x3], 0x108),
        (&[0x0, 0x4, 0x0, 0x7, 0x1, 0x0, 0x7, 0x1, 0x4], 0x108),
    ];
    block_on(async {
        for (bytes, code) in cases {
            let client = Http3Client::trusting(&site.authority, None);
            let connecting = client.endpoint.connect(site.proxyd.address(), "a.test");
            let connection = connecting.unwrap().await.unwrap();
            let mut control = connection.open_uni().await.unwrap();
            control.write_all(bytes).await.unwrap();
            let client = Http3 {
                connection,
                control,
            };
            assert_eq!(client.closed().await, code, "{bytes:?}");
        }
    });
}
