//! Pipelined requests: the end of one and the beginning of the next. [RFC 9112 §6, §9.3.2]

use super::{Expected, Row};

const B: &str = "GET /b HTTP/1.1\r\nHost: a.test\r\n\r\n";

pub(super) fn rows() -> Vec<Row> {
    let mut rows = good();
    rows.extend(ends());
    rows.extend(hidden());
    rows.extend(bad());
    rows
}

fn several(
    name: &str,
    text: String,
    statuses: &'static [u16],
    seen: &'static [(&'static str, &'static str)],
) -> Row {
    Row::new(name, text, Expected::Several { statuses, seen })
}

fn post(fields: &str, rest: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n{rest}")
}

fn good() -> Vec<Row> {
    const TWO: &[u16] = &[200, 200];
    const AB: &[(&str, &str)] = &[("/a", ""), ("/b", "")];
    const A_HELLO: &[(&str, &str)] = &[("/a", "hello"), ("/b", "")];
    vec![
        several("two GETs", [&B.replace("/b", "/a"), B].concat(), TWO, AB),
        several(
            "a POST without a length, then a GET",
            [&post("", ""), B].concat(),
            TWO,
            AB,
        ),
        several(
            "a POST of no length, then a GET",
            [&post("Content-Length: 0\r\n", ""), B].concat(),
            TWO,
            AB,
        ),
        several(
            "a POST with a length, then a GET",
            [&post("Content-Length: 5\r\n", "hello"), B].concat(),
            TWO,
            A_HELLO,
        ),
        several(
            "a POST in chunks, then a GET",
            [
                &post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
                B,
            ]
            .concat(),
            TWO,
            A_HELLO,
        ),
        several(
            "a POST in chunks with trailers, then a GET",
            [
                &post(
                    "Transfer-Encoding: chunked\r\n",
                    "5\r\nhello\r\n0\r\nX: y\r\n\r\n",
                ),
                B,
            ]
            .concat(),
            TWO,
            A_HELLO,
        ),
        several(
            "chunks with extensions, then a GET",
            [
                &post(
                    "Transfer-Encoding: chunked\r\n",
                    "5;a=\"\r\\n\"\r\nhello\r\n0\r\n\r\n",
                )
                .replace("\r\\n", "\\\\"),
                B,
            ]
            .concat(),
            TWO,
            A_HELLO,
        ),
        several(
            "a DELETE without a body, then a GET",
            ["DELETE /a HTTP/1.1\r\nHost: a.test\r\n\r\n", B].concat(),
            TWO,
            AB,
        ),
    ]
}

/// Connections that end, and requests between other bytes.
fn ends() -> Vec<Row> {
    const TWO: &[u16] = &[200, 200];
    const A_HELLO: &[(&str, &str)] = &[("/a", "hello"), ("/b", "")];
    vec![
        several(
            "an OPTIONS of all, then a GET",
            ["OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", B].concat(),
            TWO,
            &[("*", ""), ("/b", "")],
        ),
        several(
            "an empty line, then a GET",
            ["\r\n", B].concat(),
            &[200],
            &[("/b", "")],
        ),
        several(
            "a GET that closes, then another",
            [
                "GET /a HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
                B,
            ]
            .concat(),
            &[200],
            &[("/a", "")],
        ),
        several(
            "an HTTP/1.0 GET, then another",
            ["GET /a HTTP/1.0\r\nHost: a.test\r\n\r\n", B].concat(),
            &[200],
            &[("/a", "")],
        ),
        several(
            "an expectation and the body at once, then a GET",
            [
                &post("Content-Length: 5\r\nExpect: 100-continue\r\n", "hello"),
                B,
            ]
            .concat(),
            TWO,
            A_HELLO,
        ),
        several(
            "three requests of three kinds",
            [
                &post("Content-Length: 5\r\n", "hello"),
                &post("Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"),
                B,
            ]
            .concat(),
            &[200, 200, 200],
            &[("/a", "hello"), ("/a", "hi"), ("/b", "")],
        ),
    ]
}

/// Requests within bodies are body data.
fn hidden() -> Vec<Row> {
    const ONE: &[u16] = &[200];
    const HIDDEN: &[(&str, &str)] = &[("/a", "GET /b HTTP/1.1\r\nHost: a.test\r\n\r\n")];
    let length = format!("Content-Length: {}\r\n", B.len());
    let chunk = format!("{:x}\r\n{B}\r\n0\r\n\r\n", B.len());
    let in_get = |method: &str| format!("{method} /a HTTP/1.1\r\nHost: a.test\r\n{length}\r\n{B}");
    vec![
        several("a GET in the body of a POST", post(&length, B), ONE, HIDDEN),
        several(
            "a GET in the chunk of a POST",
            post("Transfer-Encoding: chunked\r\n", &chunk),
            ONE,
            HIDDEN,
        ),
        several("a GET in the body of a GET", in_get("GET"), ONE, HIDDEN),
        several(
            "a GET in the body of a DELETE",
            in_get("DELETE"),
            ONE,
            HIDDEN,
        ),
        several(
            "a GET in the body of an OPTIONS",
            in_get("OPTIONS"),
            ONE,
            HIDDEN,
        ),
        several(
            "a GET in the body of an unknown method",
            in_get("X-Y"),
            ONE,
            HIDDEN,
        ),
        several(
            "a GET in the body that an upgrade announces",
            post(
                &[&length, "Upgrade: h2c\r\nConnection: upgrade\r\n"].concat(),
                B,
            ),
            ONE,
            HIDDEN,
        ),
        several(
            "a GET in the body behind an expectation",
            post(&[&length, "Expect: 100-continue\r\n"].concat(), B),
            ONE,
            HIDDEN,
        ),
        several(
            "a GET in the body whose length is nominated",
            post(&[&length, "Connection: content-length\r\n"].concat(), B),
            ONE,
            HIDDEN,
        ),
    ]
}

/// The first is answered; the next is refused, and nothing after it is parsed.
fn bad() -> Vec<Row> {
    const REFUSED: &[u16] = &[200, 400];
    const A: &[(&str, &str)] = &[("/a", "")];
    let after = |name: &str, text: &str| {
        let whole = [&B.replace("/b", "/a"), text, B].concat();
        several(&format!("a GET, then {name}"), whole, REFUSED, A)
    };
    vec![
        after("a request without a host", "GET /x HTTP/1.1\r\n\r\n"),
        after(
            "a length and a coding",
            &post(
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                "0\r\n\r\n",
            ),
        ),
        after(
            "a coding and a length",
            &post(
                "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                "0\r\n\r\n",
            ),
        ),
        after(
            "two lengths",
            &post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
        ),
        after(
            "a coding of two names",
            &post("Transfer-Encoding: x, chunked\r\n", "0\r\n\r\n"),
        ),
        after(
            "a coding behind a tab",
            &post("Transfer-Encoding\t: chunked\r\n", "0\r\n\r\n"),
        ),
        after(
            "a folded coding",
            &post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
        ),
        after(
            "a bare LF before a length",
            "POST /x HTTP/1.1\nHost: a.test\nContent-Length: 5\n\nhello",
        ),
        after("a NUL", "GET /\0 HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        after("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        after("the rest of an unannounced body", "hello\r\n"),
        after("an unannounced chunk", "5\r\nhello\r\n0\r\n\r\n"),
    ]
}
