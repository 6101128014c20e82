//! Data beyond the announced length of a request. [RFC 9113 §8.1.1]
//!
//! The upstream may have got the announced part, and have answered, before the rest arrives. No
//! byte of the rest is forwarded.

use crate::frames::{DATA, END_HEADERS, END_STREAM, FrameEvent, Frames, HEADERS, PING};
use crate::hpack::post_with;
use crate::proxy_listeners;
use crate::received_request::ReceivedRequest;
use proxy_testkit::{RawClient, Upstream, get};

const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";

#[test]
fn bytes_beyond_the_content_length_are_not_forwarded() {
    let upstream = Upstream::saying("ok");
    let listeners = proxy_listeners::open(upstream.address(), "");
    for proxy in [listeners.plain, listeners.tls_h2] {
        for (length, bodies) in [
            ("0", &[SMUGGLED][..]),
            ("0", &[b"", SMUGGLED]),
            ("2", &[b"hi", SMUGGLED]),
            ("2", &[b"hi", b"", b"!"]),
        ] {
            for waits in [false, true] {
                let mut client = Frames::begin(proxy, &[]);
                let head = post_with("content-length", length);
                client.send_frame(HEADERS, END_HEADERS, 1, &head);
                send(&mut client, bodies, waits);
                read_to_end(&mut client);
            }
        }
    }
    // The request forwarded meanwhile was valid; the next one does not follow a rest.
    let mut client = RawClient::connect(listeners.plain);
    assert_eq!(client.ask(get("/", &[])).status, 200);
    for request in upstream.requests() {
        let received_request = ReceivedRequest::from(&request);
        received_request.check().unwrap();
        assert_eq!(received_request.target, "/", "{}", received_request.text);
        assert!(
            received_request.body.is_empty() || received_request.body == b"hi",
            "{}",
            received_request.text
        );
    }
}

/// Sends these pieces of a body; the last one after all earlier ones were processed, or at once.
fn send(client: &mut Frames, bodies: &[&[u8]], waits: bool) {
    let Some((last, before)) = bodies.split_last() else {
        return;
    };
    for body in before {
        client.send_frame(DATA, 0, 1, body);
    }
    if waits {
        client.send_frame(PING, 0, 0, &[0; 8]);
        client.next_of(PING);
    }
    client.send_frame(DATA, END_STREAM, 1, last);
    client.send_frame(PING, 0, 0, &[1; 8]);
}

/// Reads until everything was processed, or the end.
fn read_to_end(client: &mut Frames) {
    loop {
        match client.next() {
            FrameEvent::Frame(frame) if frame.kind == PING && frame.payload == [1; 8] => return,
            FrameEvent::Frame(_) => {}
            FrameEvent::End => return,
            FrameEvent::Silence => panic!("silence"),
        }
    }
}
