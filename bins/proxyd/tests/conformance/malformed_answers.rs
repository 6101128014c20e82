//! A malformed response of an HTTP/2 target costs no other request on its connection. [RFC 9113 §8.1.1]

use crate::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, FrameEvent, Frames, HEADERS, SETTINGS, WHOLE, frame,
};
use crate::hpack::{field, request_head, status};
use crate::proxy_listeners;
use proxy_testkit::{Broken, Served, Upstream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `200`, in HPACK.
const OK: &[u8] = b"\x88";

/// `:method: GET`, the first field of a request's head, in HPACK.
const GET: u8 = 0x82;

/// Malformed header sections, with an entry in the dynamic table or without.
fn sections() -> Vec<Vec<u8>> {
    let with = |field: Vec<u8>| [OK, &field].concat();
    let mut inserted = field("X-Custom", "y");
    inserted[0] = 0x40;
    let mut value = field("x-value", "a\nb");
    value[0] = 0x40;
    vec![
        with(field("X-Custom", "y")),
        with(inserted),
        // The entry of the section before, by its index.
        with(vec![0xbe]),
        // `X-A` in Huffman code.
        with(b"\x00\x83\xfc\x5a\x1f\x01y".to_vec()),
        with(field("x y", "z")),
        with(field("x", "a\r\nset-cookie: b=1")),
        with(value),
        with(vec![0xbe]),
        with(field(":x", "y")),
        with(field(":path", "/")),
        field(":status", "2000"),
        field(":status", "abc"),
    ]
}

/// Answers each `GET` with the section of this turn, and then the other request with a whole response.
fn serve(served: &mut Served, sections: &[Vec<u8>], turn: &AtomicUsize) -> Result<(), Broken> {
    served.exactly(24)?;
    served.send(frame(SETTINGS, 0, 0, &[]));
    let (mut other, mut is_answered) = (None, false);
    loop {
        let header = served.exactly(9)?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let payload = served.exactly(length as usize)?;
        let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        match header[3] {
            SETTINGS if header[4] & ACK == 0 => {
                served.send(frame(SETTINGS, ACK, 0, &[]));
            }
            HEADERS if payload.first() == Some(&GET) => {
                let section = &sections[turn.load(Ordering::SeqCst)];
                served.send(frame(HEADERS, WHOLE, stream, section));
                is_answered = true;
            }
            HEADERS => other = Some(stream),
            _ => {}
        }
        if is_answered && let Some(stream) = other.take() {
            let head = frame(HEADERS, END_HEADERS, stream, OK);
            served.send([head, frame(DATA, END_STREAM, stream, b"hello")].concat());
            is_answered = false;
        }
    }
}

#[test]
fn a_malformed_answer_costs_no_other_request_on_its_connection() {
    let (sections, turn) = (Arc::new(sections()), Arc::new(AtomicUsize::new(0)));
    let upstream = {
        let (sections, turn) = (Arc::clone(&sections), Arc::clone(&turn));
        Upstream::start(move |served| {
            // The proxy closes the connection at the end of the test.
            serve(served, &sections, &turn).ok();
        })
    };
    let listeners = proxy_listeners::open(upstream.address(), "protocol \"h2\"");
    let mut client = Frames::begin(listeners.plain, &[]);
    let mut stream = 1;

    for number in 0..sections.len() {
        turn.store(number, Ordering::SeqCst);
        for method in ["POST", "GET"] {
            let head = request_head(method, "http", "a.test", "/");
            client.send(&frame(HEADERS, WHOLE, stream, &head));
            stream += 2;
        }
        let (mut statuses, mut ended) = ([0, 0], 0);
        while ended < 2 {
            let frame = match client.next() {
                FrameEvent::Frame(frame) => frame,
                end @ (FrameEvent::End | FrameEvent::Silence) => panic!("{number}: {end:?}"),
            };
            if frame.kind == HEADERS {
                let is_get = usize::from(frame.stream + 2 == stream);
                statuses[is_get] = status(&frame.payload);
            }
            ended += usize::from(frame.ends_stream());
        }
        // The first 502 is in the client's table for the later ones.
        let [other, malformed] = statuses;
        let is_fulfilled = other == 200 && matches!(malformed, 502 | 0);
        assert!(
            is_fulfilled,
            "{statuses:?} for {}",
            sections[number].escape_ascii()
        );
    }
    assert_eq!(upstream.connections(), 1);
}
