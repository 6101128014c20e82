//! Data beyond the announced length of a request. [RFC 9113 §8.1.1]
//!
//! The upstream may have got the announced part, and have answered, before the rest arrives. No
//! byte of the rest is forwarded.

use crate::doors;
use crate::frames::{DATA, END_HEADERS, END_STREAM, Frames, HEADERS, Heard, PING};
use crate::got::Got;
use crate::hpack::post_with;
use proxy_testkit::{RawClient, Upstream, get};

const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";

#[test]
fn bytes_behind_the_length_of_a_body_are_not_forwarded() {
    let upstream = Upstream::saying("ok");
    let doors = doors::open(upstream.address(), "");
    for door in [doors.plain, doors.tls_h2] {
        for (length, bodies) in [
            ("0", &[SMUGGLED][..]),
            ("0", &[b"", SMUGGLED]),
            ("2", &[b"hi", SMUGGLED]),
            ("2", &[b"hi", b"", b"!"]),
        ] {
            for waits in [false, true] {
                let mut client = Frames::begin(door, &[]);
                let head = post_with("content-length", length);
                client.send_frame(HEADERS, END_HEADERS, 1, &head);
                send(&mut client, bodies, waits);
                hear_out(&mut client);
            }
        }
    }
    // The request forwarded meanwhile was valid; the next one does not follow a rest.
    let mut client = RawClient::connect(doors.plain);
    assert_eq!(client.ask(get("/", &[])).status, 200);
    for request in upstream.requests() {
        let got = Got::from(&request);
        got.is_wholesome().unwrap();
        assert_eq!(got.target, "/", "{}", got.text);
        assert!(got.body.is_empty() || got.body == b"hi", "{}", got.text);
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
fn hear_out(client: &mut Frames) {
    loop {
        match client.next() {
            Heard::Frame(frame) if frame.kind == PING && frame.payload == [1; 8] => return,
            Heard::Frame(_) => {}
            Heard::End => return,
            Heard::Silence => panic!("silence"),
        }
    }
}
