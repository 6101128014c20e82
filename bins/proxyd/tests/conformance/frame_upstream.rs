//! A target that sends HTTP/2 responses frame by frame. [RFC 9113 §8]

use crate::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, FrameEvent, Frames, GOAWAY, HEADERS, PADDED,
    PING, PUSH_PROMISE, RST_STREAM, SETTINGS, WHOLE, WINDOW_UPDATE, frame,
};
use crate::hpack::{field, fields, request_head, status};
use crate::proxy_listeners;
use proxy_testkit::{Broken, RawClient, Served, Upstream, get};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `200`, in HPACK.
const OK: &[u8] = b"\x88";

/// The frames on one stream, with the expected result for the client.
struct Row {
    name: String,
    answer: Box<dyn Fn(u32) -> Vec<u8> + Send + Sync>,
    expected: Expected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// 502, or an incomplete response.
    Broken,
    /// This response, complete.
    Whole(u16, &'static str),
}

fn row(
    name: impl Into<String>,
    expected: Expected,
    answer: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static,
) -> Row {
    Row {
        name: name.into(),
        answer: Box::new(answer),
        expected,
    }
}

/// A whole answer of these fields, with a body of five bytes.
fn hello(name: impl Into<String>, section: impl Into<Vec<u8>>, expected: Expected) -> Row {
    let section = section.into();
    row(name, expected, move |stream| {
        let head = frame(HEADERS, END_HEADERS, stream, &section);
        [head, frame(DATA, END_STREAM, stream, b"hello")].concat()
    })
}

fn rows() -> Vec<Row> {
    [
        heads(),
        bad_fields(),
        lengths(),
        streams(),
        connections(),
        ends(),
        whole(),
        whole_with_more(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn heads() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, section) in [
        ("a path", fields(&[(":status", "200"), (":path", "/")])),
        (
            "a path before the status",
            fields(&[(":path", "/"), (":status", "200")]),
        ),
        ("a method by its index", [OK, b"\x82"].concat()),
        (
            "an authority in the dynamic table",
            [OK, b"\x41\x06a.test"].concat(),
        ),
        (
            "a path in Huffman code",
            [OK, b"\x00\x84\xb9\x58\xd3\x3f\x01/"].concat(),
        ),
        (
            "a protocol",
            fields(&[(":status", "200"), (":protocol", "websocket")]),
        ),
        ("no status", field("x", "y")),
        ("no fields", Vec::new()),
        (
            "two statuses",
            fields(&[(":status", "200"), (":status", "204")]),
        ),
        (
            "a status behind a field",
            fields(&[("x", "y"), (":status", "200")]),
        ),
        (
            "an unknown pseudo-header field",
            fields(&[(":status", "200"), (":x", "y")]),
        ),
        (
            "an index beyond the table",
            [OK, &b"\xff\x80\x01"[..]].concat(),
        ),
        (
            "a switch of protocols nobody asked for",
            field(":status", "101"),
        ),
    ] {
        rows.push(hello(name, section, Expected::Broken));
    }
    for status in [
        "", "2", "20", "2000", "abc", "099", "000", "-20", "2 0", "200 OK", "600", "999",
    ] {
        let name = format!("status {status:?}");
        rows.push(hello(name, field(":status", status), Expected::Broken));
    }
    rows
}

fn bad_fields() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, value) in [
        ("X", "y"),
        ("x y", "z"),
        ("x:y", "z"),
        ("x\"y", "z"),
        ("x\r\ny", "z"),
        ("", "z"),
        ("x", "a\r\nset-cookie: b=1"),
        ("x", "a\nb"),
        ("x", "a\rb"),
        ("x", "a\0b"),
        ("x", " a"),
        ("x", "a "),
        ("connection", "close"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("proxy-connection", "close"),
    ] {
        let section = [OK, &field(name, value)].concat();
        rows.push(hello(
            format!("field {name:?} of {value:?}"),
            section,
            Expected::Broken,
        ));
    }
    rows
}

fn lengths() -> Vec<Row> {
    let mut rows = Vec::new();
    for length in [
        "4",
        "6",
        "",
        "+5",
        "5,5",
        "0x5",
        "five",
        "5 ",
        "99999999999999999999",
    ] {
        let section = [OK, &field("content-length", length)].concat();
        rows.push(hello(
            format!("a length of {length:?}"),
            section,
            Expected::Broken,
        ));
    }
    for (first, second) in [("5", "5"), ("5", "6"), ("6", "5"), ("", "5"), ("5", "")] {
        let lengths = [
            field("content-length", first),
            field("content-length", second),
        ]
        .concat();
        let name = format!("lengths of {first:?} and {second:?}");
        rows.push(hello(name, [OK, &lengths].concat(), Expected::Broken));
    }
    let section = [OK, &field("content-length", "5")].concat();
    rows.push(hello(
        "a length",
        section.clone(),
        Expected::Whole(200, "hello"),
    ));
    rows.push(row(
        "a length and no body",
        Expected::Broken,
        move |stream| frame(HEADERS, WHOLE, stream, &section),
    ));
    rows
}

fn open(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, OK)
}

fn after(frame: Vec<u8>, stream: u32) -> Vec<u8> {
    [open(stream), frame].concat()
}

fn data(stream: u32) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, b"hello")
}

fn streams() -> Vec<Row> {
    vec![
        row("data before a head", Expected::Broken, |stream| {
            frame(DATA, END_STREAM, stream, b"hello")
        }),
        row("an end at once", Expected::Broken, |stream| {
            frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])
        }),
        row("a refusal, twice", Expected::Broken, |stream| {
            frame(RST_STREAM, 0, stream, &[0, 0, 0, 7])
        }),
        row("an end behind the head", Expected::Broken, move |stream| {
            after(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]), stream)
        }),
        row(
            "an end without an error behind data",
            Expected::Broken,
            move |stream| {
                let data = frame(DATA, 0, stream, b"hel");
                after(
                    [data, frame(RST_STREAM, 0, stream, &[0; 4])].concat(),
                    stream,
                )
            },
        ),
        row("data on stream 0", Expected::Broken, move |stream| {
            after(frame(DATA, END_STREAM, 0, b"hello"), stream)
        }),
        row(
            "data with too much padding",
            Expected::Broken,
            move |stream| {
                after(
                    frame(DATA, END_STREAM | PADDED, stream, b"\x09hello"),
                    stream,
                )
            },
        ),
        row("a frame too large", Expected::Broken, move |stream| {
            after(
                frame(DATA, END_STREAM, stream, &vec![b'x'; 1 << 20]),
                stream,
            )
        }),
    ]
}

fn connections() -> Vec<Row> {
    vec![
        row("a promise", Expected::Broken, move |stream| {
            after(
                frame(PUSH_PROMISE, END_HEADERS, stream, b"\0\0\0\x02\x82\x84\x86"),
                stream,
            )
        }),
        row("a request", Expected::Broken, move |stream| {
            after(frame(HEADERS, WHOLE, 2, b"\x82\x84\x86"), stream)
        }),
        row("a piece of no head", Expected::Broken, move |stream| {
            after(frame(CONTINUATION, END_HEADERS, stream, OK), stream)
        }),
        row("a head that is interrupted", Expected::Broken, |stream| {
            [
                frame(HEADERS, 0, stream, OK),
                frame(DATA, END_STREAM, stream, b"hello"),
            ]
            .concat()
        }),
        row(
            "a window that grows by nothing",
            Expected::Broken,
            move |stream| after(frame(WINDOW_UPDATE, 0, 0, &[0; 4]), stream),
        ),
        row("settings of five bytes", Expected::Broken, move |stream| {
            after(frame(SETTINGS, 0, 0, &[0; 5]), stream)
        }),
        row("bytes that are no frame", Expected::Broken, |_| {
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more".to_vec()
        }),
    ]
}

/// The same with a part of its body.
fn half(frame: Vec<u8>, stream: u32) -> Vec<u8> {
    let part = self::frame(DATA, 0, stream, b"hel");
    after([part, frame].concat(), stream)
}

#[expect(clippy::too_many_lines, reason = "a table of frames")]
fn ends() -> Vec<Row> {
    let trailers = |name, value| {
        let section = field(name, value);
        move |stream| half(frame(HEADERS, WHOLE, stream, &section), stream)
    };
    vec![
        row(
            "the end of the connection",
            Expected::Broken,
            move |stream| half(frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 2]), stream),
        ),
        row(
            "trailers that do not end",
            Expected::Broken,
            move |stream| {
                half(
                    frame(HEADERS, END_HEADERS, stream, &field("x", "y")),
                    stream,
                )
            },
        ),
        row("trailers in capitals", Expected::Broken, trailers("X", "y")),
        row(
            "trailers with a line end",
            Expected::Broken,
            trailers("x", "a\r\nb: c"),
        ),
        row(
            "trailers with a field of the connection",
            Expected::Broken,
            trailers("connection", "close"),
        ),
        row(
            "trailers with a status",
            Expected::Broken,
            trailers(":status", "200"),
        ),
        row(
            "trailers with a path",
            Expected::Broken,
            trailers(":path", "/"),
        ),
        row(
            "trailers with a status behind a field",
            Expected::Broken,
            |stream| {
                let section = fields(&[("x", "y"), (":status", "200")]);
                half(frame(HEADERS, WHOLE, stream, &section), stream)
            },
        ),
        row(
            "trailers with a status in the second of two frames",
            Expected::Broken,
            |stream| {
                let begun = frame(HEADERS, END_STREAM, stream, b"\x00\x01x");
                let ended = frame(CONTINUATION, END_HEADERS, stream, &[b"\x01y", OK].concat());
                half([begun, ended].concat(), stream)
            },
        ),
        row(
            "a status in trailers without a body",
            Expected::Broken,
            move |stream| after(frame(HEADERS, WHOLE, stream, OK), stream),
        ),
        row(
            "an interim answer with a path",
            Expected::Broken,
            move |stream| {
                let section = fields(&[(":status", "103"), (":path", "/")]);
                let early = frame(HEADERS, END_HEADERS, stream, &section);
                [early, open(stream), data(stream)].concat()
            },
        ),
        row(
            "a field of the connection before one that continues",
            Expected::Broken,
            move |stream| {
                let begun = [OK, &field("connection", "close"), b"\x00\x01x"].concat();
                [
                    frame(HEADERS, 0, stream, &begun),
                    frame(CONTINUATION, END_HEADERS, stream, b"\x01y"),
                    data(stream),
                ]
                .concat()
            },
        ),
        row("seventeen interim answers", Expected::Broken, |stream| {
            frame(HEADERS, END_HEADERS, stream, &field(":status", "103")).repeat(17)
        }),
        row("an interim answer that ends", Expected::Broken, |stream| {
            frame(HEADERS, WHOLE, stream, &field(":status", "103"))
        }),
    ]
}

fn whole() -> Vec<Row> {
    const HELLO: Expected = Expected::Whole(200, "hello");
    vec![
        hello("a body", OK, HELLO),
        hello(
            "an odd status",
            field(":status", "299"),
            Expected::Whole(299, "hello"),
        ),
        row("no body", Expected::Whole(200, ""), |stream| {
            frame(HEADERS, WHOLE, stream, OK)
        }),
        row("no content", Expected::Whole(204, ""), |stream| {
            frame(HEADERS, WHOLE, stream, b"\x89")
        }),
        row("nothing new", Expected::Whole(304, ""), |stream| {
            frame(
                HEADERS,
                WHOLE,
                stream,
                &[b"\x8b", &field("content-length", "5")[..]].concat(),
            )
        }),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table of frames")]
fn whole_with_more() -> Vec<Row> {
    const HELLO: Expected = Expected::Whole(200, "hello");
    vec![
        row("padding", HELLO, move |stream| {
            [
                open(stream),
                frame(DATA, END_STREAM | PADDED, stream, b"\x02hello\0\0"),
            ]
            .concat()
        }),
        row("pieces", HELLO, move |stream| {
            [
                open(stream),
                frame(DATA, 0, stream, b"he"),
                frame(DATA, 0, stream, b""),
                frame(DATA, 0, stream, b"llo"),
                frame(DATA, END_STREAM, stream, b""),
            ]
            .concat()
        }),
        row("a head in pieces", HELLO, move |stream| {
            [
                frame(HEADERS, 0, stream, OK),
                frame(CONTINUATION, END_HEADERS, stream, &field("x", "y")),
                data(stream),
            ]
            .concat()
        }),
        row("an interim answer before", HELLO, move |stream| {
            let early = frame(HEADERS, END_HEADERS, stream, &field(":status", "103"));
            [early, open(stream), data(stream)].concat()
        }),
        row(
            "an interim answer before an answer without a body",
            Expected::Whole(200, ""),
            move |stream| {
                let early = frame(HEADERS, END_HEADERS, stream, &field(":status", "103"));
                [early, frame(HEADERS, WHOLE, stream, OK)].concat()
            },
        ),
        row(
            "an answer to which the table has the status",
            Expected::Whole(299, "hello"),
            move |stream| {
                // Entry 62 is the status of the interim answer, then that of the final one.
                let early = frame(HEADERS, END_HEADERS, stream, b"\x48\x03103");
                let again = frame(HEADERS, END_HEADERS, stream, b"\xbe");
                let head = frame(HEADERS, END_HEADERS, stream, b"\x48\x03299");
                [early, again, head, data(stream)].concat()
            },
        ),
        row("a head in pieces of a byte", HELLO, move |stream| {
            let section = [OK, &field("x", "y")].concat();
            let mut frames = frame(HEADERS, 0, stream, &[]);
            for byte in &section {
                frames.extend(frame(CONTINUATION, 0, stream, &[*byte]));
            }
            frames.extend(frame(CONTINUATION, END_HEADERS, stream, &[]));
            [frames, data(stream)].concat()
        }),
        row("unknown frames", HELLO, move |stream| {
            [open(stream), frame(0x42, 0xff, stream, b"?"), data(stream)].concat()
        }),
        row("a ping and settings between", HELLO, move |stream| {
            [
                open(stream),
                frame(PING, 0, 0, &[7; 8]),
                frame(SETTINGS, 0, 0, &[]),
                data(stream),
            ]
            .concat()
        }),
        row("trailers", HELLO, move |stream| {
            [
                open(stream),
                frame(DATA, 0, stream, b"hello"),
                frame(HEADERS, WHOLE, stream, &field("x-sum", "1")),
            ]
            .concat()
        }),
        row("trailers without any", HELLO, move |stream| {
            [
                open(stream),
                frame(DATA, 0, stream, b"hello"),
                frame(HEADERS, WHOLE, stream, &[]),
            ]
            .concat()
        }),
        row(
            "an end without an error behind all of it",
            HELLO,
            move |stream| {
                [
                    open(stream),
                    data(stream),
                    frame(RST_STREAM, 0, stream, &[0; 4]),
                ]
                .concat()
            },
        ),
    ]
}

/// Serves one connection; `turn` selects the row.
fn serve(served: &mut Served, rows: &[Row], turn: &AtomicUsize) -> Result<(), Broken> {
    served.exactly(24)?;
    served.send(frame(SETTINGS, 0, 0, &[]));
    loop {
        let header = served.exactly(9)?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        served.exactly(length as usize)?;
        let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        match header[3] {
            SETTINGS if header[4] & ACK == 0 => {
                served.send(frame(SETTINGS, ACK, 0, &[]));
            }
            HEADERS => {
                let row = &rows[turn.load(Ordering::SeqCst)];
                served.send((row.answer)(stream));
            }
            _ => {}
        }
    }
}

/// The response to an HTTP/1.1 client: complete, or `None`.
fn by_http1(proxy: SocketAddr) -> Option<(u16, String)> {
    let mut client = RawClient::connect(proxy);
    client.send(get("/", &[]));
    answer_by_http1(&mut client)
}

fn answer_by_http1(client: &mut RawClient) -> Option<(u16, String)> {
    match client.try_response() {
        Ok(interim) if interim.status < 200 => answer_by_http1(client),
        Ok(answer) => Some((answer.status, answer.text())),
        Err(Broken::Silent) => panic!("silence"),
        Err(_) => None,
    }
}

/// The same over HTTP/2.
fn by_http2(proxy: SocketAddr) -> Option<(u16, String)> {
    let mut client = Frames::begin(proxy, &[]);
    let head = request_head("GET", "http", "a.test", "/");
    client.send(&frame(HEADERS, WHOLE, 1, &head));
    let (mut final_status, mut body) = (0, Vec::new());
    loop {
        let frame = match client.next() {
            FrameEvent::Frame(frame) if frame.stream == 1 => frame,
            FrameEvent::Frame(_) => continue,
            FrameEvent::End => return None,
            FrameEvent::Silence => panic!("silence"),
        };
        match frame.kind {
            // Interim responses are skipped; after the first one they are indexed.
            HEADERS if final_status < 200 => final_status = status(&frame.payload),
            DATA => body.extend_from_slice(&frame.payload),
            RST_STREAM => return None,
            _ => {}
        }
        if frame.ends_stream() {
            return Some((final_status, String::from_utf8_lossy(&body).into_owned()));
        }
    }
}

#[test]
fn each_answer_by_http2_is_delivered_whole_or_not_as_complete() {
    let (rows, turn) = (Arc::new(rows()), Arc::new(AtomicUsize::new(0)));
    let upstream = {
        let (rows, turn) = (Arc::clone(&rows), Arc::clone(&turn));
        Upstream::start(move |served| {
            // The proxy ends the connection, as it should.
            serve(served, &rows, &turn).ok();
        })
    };
    let listeners = proxy_listeners::open(upstream.address(), "protocol \"h2\"");
    assert!(70 <= rows.len(), "only {} rows", rows.len());

    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        turn.store(number, Ordering::SeqCst);
        // Shown if a client gets no answer.
        println!("{}", row.name);
        for (how, received_request) in [
            ("1", by_http1(listeners.plain)),
            ("2", by_http2(listeners.plain)),
        ] {
            let fulfilled = match (&received_request, row.expected) {
                (None | Some((502, _)), Expected::Broken) => true,
                (Some((status, body)), Expected::Whole(wanted, text)) => {
                    (*status, body.as_str()) == (wanted, text)
                }
                (None | Some(_), _) => false,
            };
            if !fulfilled {
                wrong.push(format!(
                    "{} by HTTP/{how}: {received_request:?}, not {:?}",
                    row.name, row.expected
                ));
            }
        }
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} wrong:\n{}", wrong.join("\n"));
}
