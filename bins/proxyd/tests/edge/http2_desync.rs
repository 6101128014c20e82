//! HTTP/2 requests that could mean two things once they go on as HTTP/1.1. [RFC 9113 §10.3]

use crate::support::{
    DATA, END_HEADERS, END_STREAM, Frame, Frames, GET, HEADERS, POST, frame, literal, live, start,
    to,
};
use proxy_testkit::{Proxyd, Upstream, ok};

/// Reads no body, whatever the head says.
fn reading_heads() -> (Upstream, Proxyd) {
    let upstream = Upstream::start(|served| {
        while served.head().is_some() {
            served.send(ok("ok"));
        }
    });
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);
    (upstream, proxyd)
}

/// The head of the answer to what `frames` ask.
async fn asked(proxyd: &Proxyd, frames: &[Vec<u8>]) -> Frame {
    let mut client = Frames::connect(proxyd.address(), &[]).await;
    client.send_raw(&frames.concat()).await.unwrap();
    client.next_of(HEADERS).await
}

/// What `:status` is; ours come uncompressed but for 200, 204 and the like. [RFC 7541 Appendix A]
fn is_400(head: &Frame) -> bool {
    head.payload.first() == Some(&0x8c)
}

#[test]
fn a_tunnel_that_tells_a_length_does_not_eat_the_next_request() {
    let (upstream, proxyd) = reading_heads();
    let mut head = b"\x02\x07CONNECT\x86\x84\x41\x06a.test".to_vec();
    head.extend(literal(b":protocol", b"websocket"));
    head.extend(literal(b"sec-websocket-version", b"13"));
    head.extend(literal(b"content-length", b"40"));

    live(async {
        let refused = asked(&proxyd, &[frame(HEADERS, END_HEADERS, 1, &head)]).await;
        assert!(is_400(&refused));
    });
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn a_length_is_told_once_and_in_digits() {
    let (upstream, proxyd) = reading_heads();
    live(async {
        for lengths in [&["2", "2"][..], &["2", "02"], &[""]] {
            let mut head = POST.to_vec();
            for length in lengths {
                head.extend(literal(b"content-length", length.as_bytes()));
            }
            let body: &[u8] = if lengths.len() == 2 { b"ab" } else { b"" };
            let frames = [
                frame(HEADERS, END_HEADERS, 1, &head),
                frame(DATA, END_STREAM, 1, body),
            ];
            let answer = asked(&proxyd, &frames).await;
            assert!(is_400(&answer), "{lengths:?}");
        }
    });
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn a_path_begins_with_a_slash() {
    let (upstream, proxyd) = reading_heads();
    live(async {
        for path in ["?a=b", "*"] {
            let mut head = b"\x82\x86\x04".to_vec();
            head.push(u8::try_from(path.len()).unwrap());
            head.extend(path.as_bytes());
            head.extend(b"\x41\x06a.test");
            let frames = [frame(HEADERS, END_STREAM | END_HEADERS, 1, &head)];
            let answer = asked(&proxyd, &frames).await;
            assert!(is_400(&answer), "{path}");
        }
        let frames = [frame(HEADERS, END_STREAM | END_HEADERS, 1, GET)];
        assert!(!is_400(&asked(&proxyd, &frames).await));
    });
    assert_eq!(upstream.requests().len(), 1);
}
