//! HTTP/1.1 responses of upstreams: clients receive them exactly, and no part of one becomes part
//! of the next. [RFC 9110 §6.4, §7.6.1, §15, RFC 9112 §6.3]

use crate::proxy_listeners;
use proxy_testkit::{Broken, RawClient, Response, Upstream, ok};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Row {
    name: &'static str,
    method: &'static str,
    /// Bytes of the upstream, and whether it closes the connection after them.
    answer: Vec<u8>,
    closes: bool,
    expected: Expected,
}

enum Expected {
    /// Status 502, or an incomplete response.
    Broken,
    /// This status and body, with or without these fields.
    Whole(
        u16,
        &'static str,
        &'static [(&'static str, Option<&'static str>)],
    ),
}

fn row(name: &'static str, answer: &str, expected: Expected) -> Row {
    Row {
        name,
        method: "GET",
        answer: answer.as_bytes().to_vec(),
        closes: false,
        expected,
    }
}

fn rows() -> Vec<Row> {
    [
        surplus(),
        bodiless(),
        interim(),
        reasons(),
        lengths(),
        ends(),
        fields(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const HELLO: Expected = Expected::Whole(200, "hello", &[]);

/// Bytes after a response are discarded.
fn surplus() -> Vec<Row> {
    const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKS: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    const SECOND_RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let with =
        |name, first: &str, after: &str, expected| row(name, &[first, after].concat(), expected);
    vec![
        row("a length", LENGTH, HELLO),
        row("chunks", CHUNKS, HELLO),
        with("a length and more bytes", LENGTH, "more", HELLO),
        with(
            "a length and another response",
            LENGTH,
            SECOND_RESPONSE,
            HELLO,
        ),
        with("a length and a line end", LENGTH, "\r\n", HELLO),
        with("chunks and more bytes", CHUNKS, "more", HELLO),
        with(
            "chunks and another response",
            CHUNKS,
            SECOND_RESPONSE,
            HELLO,
        ),
        with(
            "a length of nothing and another response",
            EMPTY,
            SECOND_RESPONSE,
            Expected::Whole(200, "", &[]),
        ),
        with(
            "a length of nothing and a body",
            EMPTY,
            "hello",
            Expected::Whole(200, "", &[]),
        ),
    ]
}

/// Responses that cannot have a body have none, for any head and following bytes.
fn bodiless() -> Vec<Row> {
    let head = |name, answer: &str, status| Row {
        method: "HEAD",
        ..row(name, answer, Expected::Whole(status, "", &[]))
    };
    let none = |status| Expected::Whole(status, "", &[]);
    vec![
        head("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200),
        head(
            "HEAD with a body",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            200,
        ),
        head(
            "HEAD with chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            200,
        ),
        head(
            "HEAD with another response",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
            200,
        ),
        head(
            "HEAD of nothing known",
            "HTTP/1.1 404 Not Found\r\n\r\n",
            404,
        ),
        row("204", "HTTP/1.1 204 No Content\r\n\r\n", none(204)),
        row(
            "204 with a body",
            "HTTP/1.1 204 No Content\r\n\r\nhello",
            none(204),
        ),
        row(
            "204 with a length",
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
            none(204),
        ),
        row(
            "204 with another response",
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
            none(204),
        ),
        row(
            "304",
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
            Expected::Whole(304, "", &[("etag", Some("\"a\""))]),
        ),
        row(
            "304 with a length",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            none(304),
        ),
        row(
            "304 with a body",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello",
            none(304),
        ),
        row(
            "304 with chunks",
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            none(304),
        ),
    ]
}

fn interim() -> Vec<Row> {
    let before = |name, interim: &str, expected| {
        row(
            name,
            &[interim, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"].concat(),
            expected,
        )
    };
    vec![
        before("100 unasked", "HTTP/1.1 100 Continue\r\n\r\n", HELLO),
        before("102", "HTTP/1.1 102 Processing\r\n\r\n", HELLO),
        before(
            "103",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
            HELLO,
        ),
        before(
            "103 twice",
            &"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(2),
            HELLO,
        ),
        before(
            "103 with a length",
            "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n",
            HELLO,
        ),
        before("199", "HTTP/1.1 199 Nobody Knows\r\n\r\n", HELLO),
        before(
            "103 a hundred times",
            &"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100),
            Expected::Broken,
        ),
        before(
            "103 with a bare LF",
            "HTTP/1.1 103 Early Hints\nLink: </a>\r\n\r\n",
            Expected::Broken,
        ),
        before(
            "103 with a coding",
            "HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: gzip\r\n\r\n",
            Expected::Broken,
        ),
        before(
            "101 unasked",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            Expected::Broken,
        ),
        before(
            "101 that names nothing",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            Expected::Broken,
        ),
    ]
}

fn reasons() -> Vec<Row> {
    let status_line_row = |name, line: &str, expected| {
        row(
            name,
            &[line, "\r\nContent-Length: 5\r\n\r\nhello"].concat(),
            expected,
        )
    };
    let whole = |status| Expected::Whole(status, "hello", &[]);
    vec![
        status_line_row(
            "a reason of one's own",
            "HTTP/1.1 200 Fine, thanks",
            whole(200),
        ),
        status_line_row("no reason behind a space", "HTTP/1.1 200 ", whole(200)),
        status_line_row("a reason with tabs", "HTTP/1.1 404 a\tb", whole(404)),
        status_line_row(
            "a reason beyond ASCII",
            "HTTP/1.1 404 caf\u{e9}",
            whole(404),
        ),
        status_line_row(
            "an unregistered status",
            "HTTP/1.1 299 Whatever",
            whole(299),
        ),
        status_line_row(
            "the highest status of its class",
            "HTTP/1.1 599 Odd",
            whole(599),
        ),
        status_line_row("HTTP/1.0", "HTTP/1.0 200 OK", whole(200)),
        status_line_row("a reason with a NUL", "HTTP/1.1 200 O\0K", Expected::Broken),
        status_line_row("a reason with a CR", "HTTP/1.1 200 O\rK", Expected::Broken),
        status_line_row(
            "a reason with an escape",
            "HTTP/1.1 200 \x1b[31mOK",
            Expected::Broken,
        ),
        status_line_row("HTTP/1.2", "HTTP/1.2 200 OK", Expected::Broken),
        status_line_row("HTTP/3", "HTTP/3 200 OK", Expected::Broken),
        status_line_row("a signed status", "HTTP/1.1 +20 OK", Expected::Broken),
        status_line_row(
            "a status with a point",
            "HTTP/1.1 200.1 OK",
            Expected::Broken,
        ),
    ]
}

const CHUNKS: &str = "5\r\nhello\r\n0\r\n\r\n";

fn lengths() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, fields, body) in [
        (
            "a length and a coding",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            CHUNKS,
        ),
        (
            "a coding and a length",
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
            CHUNKS,
        ),
        ("two codings", "Transfer-Encoding: gzip, chunked", CHUNKS),
        (
            "one coding twice",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            CHUNKS,
        ),
        (
            "a coding that is none",
            "Transfer-Encoding: identity\r\nContent-Length: 5",
            "hello",
        ),
        (
            "a coding in quotes",
            "Transfer-Encoding: \"chunked\"",
            CHUNKS,
        ),
        (
            "one length twice",
            "Content-Length: 5\r\nContent-Length: 5",
            "hello",
        ),
        ("a length in a list", "Content-Length: 5, 5", "hello"),
        ("a length of nothing but space", "Content-Length: ", "hello"),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}");
        rows.push(row(name, &answer, Expected::Broken));
    }
    for (name, chunks) in [
        ("a chunk ended by a bare LF", "5\r\nhello\n0\r\n\r\n"),
        (
            "a chunk's extension with a bare LF",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
        ),
        (
            "a trailer that is a length",
            "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n",
        ),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        rows.push(row(name, &answer, Expected::Broken));
    }
    for (name, rest) in [
        (
            "a coding in capitals",
            "Transfer-Encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ),
        (
            "a length with zeros before it",
            "Content-Length: 0005\r\n\r\nhello",
        ),
        (
            "chunk extensions",
            "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0;c\r\n\r\n",
        ),
    ] {
        rows.push(row(name, &["HTTP/1.1 200 OK\r\n", rest].concat(), HELLO));
    }
    rows
}

/// The response ends with the connection, or the connection ends too early.
fn ends() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, answer, expected) in [
        ("until the end", "HTTP/1.1 200 OK\r\n\r\nhello", HELLO),
        (
            "until the end, by HTTP/1.0",
            "HTTP/1.0 200 OK\r\n\r\nhello",
            HELLO,
        ),
        (
            "nothing until the end",
            "HTTP/1.1 200 OK\r\n\r\n",
            Expected::Whole(200, "", &[]),
        ),
        (
            "a length and the end",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
            HELLO,
        ),
        (
            "less than the length",
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
            Expected::Broken,
        ),
        (
            "less than the last chunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            Expected::Broken,
        ),
        (
            "less than the empty line",
            "HTTP/1.1 200 OK\r\nX: y\r\n",
            Expected::Broken,
        ),
        (
            "a coding in HTTP/1.0",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            Expected::Broken,
        ),
    ] {
        let closes = true;
        rows.push(Row {
            closes,
            ..row(name, answer, expected)
        });
    }
    rows
}

fn fields() -> Vec<Row> {
    let with = |name, fields: &str, expected| {
        row(
            name,
            &[
                "HTTP/1.1 200 OK\r\n",
                fields,
                "Content-Length: 5\r\n\r\nhello",
            ]
            .concat(),
            expected,
        )
    };
    vec![
        with(
            "a field",
            "X-A: 1\r\n",
            Expected::Whole(200, "hello", &[("x-a", Some("1"))]),
        ),
        with(
            "a field that is nominated",
            "Connection: x-a\r\nX-A: 1\r\n",
            Expected::Whole(200, "hello", &[("x-a", None), ("connection", None)]),
        ),
        with(
            "a length that is nominated",
            "Connection: content-length\r\n",
            Expected::Whole(200, "hello", &[("content-length", Some("5"))]),
        ),
        with(
            "fields of the connection",
            "Keep-Alive: timeout=5\r\nProxy-Connection: x\r\nUpgrade: h2\r\nTE: x\r\n",
            Expected::Whole(
                200,
                "hello",
                &[
                    ("keep-alive", None),
                    ("proxy-connection", None),
                    ("upgrade", None),
                    ("te", None),
                ],
            ),
        ),
        with(
            "a correlation ID of another",
            "X-Correlation-Id: forged\r\n",
            HELLO,
        ),
        with(
            "an empty value",
            "X-A:\r\n",
            Expected::Whole(200, "hello", &[("x-a", Some(""))]),
        ),
        with(
            "a value with space around it",
            "X-A: \t1 \r\n",
            Expected::Whole(200, "hello", &[("x-a", Some("1"))]),
        ),
        with("a folded value", "X-A: 1\r\n 2\r\n", Expected::Broken),
        with("a space before the colon", "X-A : 1\r\n", Expected::Broken),
        with("a space before the name", " X-A: 1\r\n", Expected::Broken),
        with("no name", ": 1\r\n", Expected::Broken),
        with("no colon", "X-A\r\n", Expected::Broken),
        with("a quote in a name", "X\"A: 1\r\n", Expected::Broken),
        with("a bare LF", "X-A: 1\nX-B: 2\r\n", Expected::Broken),
        with("a bare CR", "X-A: 1\rX-B: 2\r\n", Expected::Broken),
        with("a NUL", "X-A: 1\0\r\n", Expected::Broken),
    ]
}

#[test]
fn each_response_is_delivered_as_itself_and_never_as_the_next() {
    let (rows, turn) = (Arc::new(rows()), Arc::new(AtomicUsize::new(0)));
    let upstream = {
        let (rows, turn) = (Arc::clone(&rows), Arc::clone(&turn));
        Upstream::start(move |served| {
            while let Some(request) = served.request() {
                if request.target == "/next" {
                    served.send(ok("next"));
                    continue;
                }
                let row = &rows[turn.load(Ordering::SeqCst)];
                served.send(&row.answer);
                if row.closes {
                    return;
                }
            }
        })
    };
    let listeners = proxy_listeners::open(upstream.address(), "");
    assert!(60 <= rows.len(), "only {} rows", rows.len());

    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        turn.store(number, Ordering::SeqCst);
        for proxy in [listeners.plain, listeners.tls] {
            let mut client = RawClient::connect(proxy);
            client.send(format!("{} / HTTP/1.1\r\nHost: a.test\r\n\r\n", row.method));
            let answer = read_response(&mut client, row.method);
            let kept = answer
                .as_ref()
                .is_ok_and(|answer| !answer.fields.has("connection"));
            if let Err(fault) = row.expected.compare(answer) {
                wrong.push(format!("{}: {fault}", row.name));
            }
            if !kept {
                client = RawClient::connect(proxy);
            }
            let next = client.ask("GET /next HTTP/1.1\r\nHost: a.test\r\n\r\n");
            if (next.status, next.text().as_str()) != (200, "next") {
                wrong.push(format!(
                    "{}: then {} {:?}",
                    row.name,
                    next.status,
                    next.text()
                ));
            }
        }
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} wrong:\n{}", wrong.join("\n"));
}

/// Reads the response after any interim ones.
fn read_response(client: &mut RawClient, method: &str) -> Result<Response, Broken> {
    loop {
        let answer = match method {
            "HEAD" => Ok(client.response_to_head()),
            _ => client.try_response(),
        };
        match answer {
            Ok(interim) if interim.status < 200 && interim.status != 101 => {}
            other => return other,
        }
    }
}

impl Expected {
    fn compare(&self, answer: Result<Response, Broken>) -> Result<(), String> {
        let answer = match (answer, self) {
            (Err(Broken::Silent), _) => return Err("silence".to_owned()),
            (Err(_), Self::Broken) => return Ok(()),
            (Err(broken), Self::Whole(..)) => return Err(broken.to_string()),
            (Ok(answer), _) => answer,
        };
        let raw = String::from_utf8_lossy(&answer.raw);
        let Self::Whole(status, body, fields) = self else {
            return if answer.status == 502 {
                Ok(())
            } else {
                Err(format!("{raw:?}"))
            };
        };
        let has_fields = fields.iter().all(|(name, value)| match value {
            Some(value) => answer.fields.all(name) == [*value],
            None => !answer.fields.has(name),
        });
        let id = answer.fields.all("x-correlation-id");
        let named = id.len() == 1 && id != ["forged"];
        if (answer.status, answer.text().as_str()) == (*status, *body) && has_fields && named {
            return Ok(());
        }
        Err(format!("{raw:?}"))
    }
}
