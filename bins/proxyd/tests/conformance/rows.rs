//! Raw requests of an attacker. [RFC 9110, RFC 9112]

mod forms;
mod hop;
mod limits;
mod pipelines;

use crate::frame_row::Seen;

/// A request with its expected result.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Expected,
}

#[derive(PartialEq, Eq)]
pub(crate) enum Expected {
    /// This status, the connection closed, nothing forwarded.
    Refused(u16),
    /// This status; nothing forwarded.
    Answered(u16),
    /// The body is malformed: never delivered as complete, never answered with success.
    CutOff,
    /// Status 200, and the upstream gets exactly this.
    Passed {
        target: &'static str,
        body: &'static str,
    },
    /// Status 200, and the upstream gets this.
    Received(Seen),
    /// These statuses in order, and the upstream gets exactly these targets and bodies.
    Several {
        statuses: &'static [u16],
        seen: &'static [(&'static str, &'static str)],
    },
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\n";

pub(crate) fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    names(&mut rows);
    values(&mut rows);
    targets(&mut rows);
    lines(&mut rows);
    hosts(&mut rows);
    lengths(&mut rows);
    codings(&mut rows);
    chunks(&mut rows);
    broken_chunks(&mut rows);
    rows.extend(forms::rows());
    rows.extend(hop::rows());
    rows.extend(pipelines::rows());
    rows.extend(limits::rows());
    rows
}

impl Row {
    fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>, expected: Expected) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
            expected,
        }
    }
}

fn refused(rows: &mut Vec<Row>, name: String, bytes: Vec<u8>) {
    let expected = Expected::Refused(400);
    rows.push(Row {
        name,
        bytes,
        expected,
    });
}

fn with_field(field: &[u8]) -> Vec<u8> {
    [GET, field, b"\r\n\r\n"].concat()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn names(rows: &mut Vec<Row>) {
    // A colon would end the name.
    for byte in (0..=u8::MAX).filter(|byte| !is_token(*byte) && *byte != b':') {
        let field = [b"X", &[byte][..], b"Y: v"].concat();
        refused(
            rows,
            format!("byte {byte:#04x} in a name"),
            with_field(&field),
        );
    }
    let fields: [&[u8]; 8] = [
        b": no name",
        b"no colon",
        b"Before : colon",
        b"Tab\t: colon",
        b" Folded: first",
        b"X: a\r\n folded",
        b"X: a\r\n\tfolded",
        b"X: a\nY: b",
    ];
    for field in fields {
        let name = format!("field line {:?}", String::from_utf8_lossy(field));
        refused(rows, name, with_field(field));
    }
}

fn values(rows: &mut Vec<Row>) {
    let controls = (0..=0x1f).chain([0x7f]).filter(|byte| *byte != b'\t');
    for byte in controls {
        let field = [b"X: a", &[byte][..], b"b"].concat();
        refused(
            rows,
            format!("byte {byte:#04x} in a value"),
            with_field(&field),
        );
    }
    for value in [
        "",
        "a\tb",
        "a b",
        "\"q\"",
        "caf\u{e9}",
        "a:b",
        ",,",
        "  padded  ",
    ] {
        rows.push(Row {
            name: format!("value {value:?}"),
            bytes: with_field(format!("X: {value}").as_bytes()),
            expected: Expected::Passed {
                target: "/",
                body: "",
            },
        });
    }
}

fn targets(rows: &mut Vec<Row>) {
    for byte in (0..=0x20).chain(0x7f..=u8::MAX).chain(*b"#") {
        let line = [
            b"GET /a",
            &[byte][..],
            b"b HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ]
        .concat();
        refused(rows, format!("byte {byte:#04x} in a target"), line);
    }
    for target in [
        "/", "/a/b", "/a?b=c", "/?", "/a;b", "/a%20b", "/~a", "//a", "/a:b@c", "/a?b?c/d",
    ] {
        rows.push(Row {
            name: format!("target {target}"),
            bytes: format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n").into_bytes(),
            expected: Expected::Passed { target, body: "" },
        });
    }
}

fn lines(rows: &mut Vec<Row>) {
    let lines = [
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET /\tHTTP/1.1",
        " GET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1 x",
        "GET /",
        "GET",
        "GET / http/1.1",
        "GET / HTTP/1",
        "GET / HTTP/1.",
        "GET / HTTP/1.10",
        "GET / HTTP/01.1",
        "GET / HTTP/1.1\t",
        "GET / HTTPS/1.1",
        "GET / HTTP /1.1",
        "G\u{e9}T / HTTP/1.1",
        "G@T / HTTP/1.1",
        "GET a HTTP/1.1",
        "GET * HTTP/1.1",
        "GET ?a HTTP/1.1",
        "GET http:// HTTP/1.1",
        "GET http:///a HTTP/1.1",
        "GET http://u@a.test/ HTTP/1.1",
        "(GET) / HTTP/1.1",
    ];
    for line in lines {
        let bytes = format!("{line}\r\nHost: a.test\r\n\r\n").into_bytes();
        refused(rows, format!("line {line:?}"), bytes);
    }
}

fn hosts(rows: &mut Vec<Row>) {
    let bare = b"GET / HTTP/1.1\r\n\r\n".to_vec();
    refused(rows, "no Host".to_owned(), bare);
    for host in [
        "",
        " ",
        ":80",
        "a b",
        "a,b",
        "u@a.test",
        "a.test/",
        "a.test?x",
        "a.test#x",
        "a.test:x",
        "a.test:1:2",
        "[::1",
        "::1]",
        "[::1]x",
        "[]",
        "a.test\r\nHost: a.test",
        "a.test\r\nHost: b.test",
        "a.test\r\nhost: c.test",
        "a\\b",
        "a<b",
    ] {
        let bytes = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        refused(rows, format!("Host {host:?}"), bytes);
    }
    for host in [
        "a.test",
        "A.TEST",
        "a.test:80",
        "[::1]",
        "[::1]:80",
        "127.0.0.1",
        "a-b.test",
    ] {
        rows.push(Row {
            name: format!("Host {host}"),
            bytes: format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(),
            expected: Expected::Passed {
                target: "/",
                body: "",
            },
        });
    }
}

fn post(fields: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n\r\n{body}").into_bytes()
}

/// Values that are not a length in any version of HTTP.
pub(crate) const NO_LENGTHS: [&str; 19] = [
    "+5",
    "-5",
    "-0",
    "0x5",
    "5,5",
    "5, 5",
    "5,6",
    "5 5",
    "5;",
    "5.0",
    "",
    " ",
    "five",
    "5e0",
    "\"5\"",
    "18446744073709551616",
    "18446744073709551621",
    "99999999999999999999999",
    "\u{665}",
];

fn lengths(rows: &mut Vec<Row>) {
    let further = [
        "9223372036854775808",
        "5\r\nContent-Length: 5",
        "5\r\nContent-Length: 6",
        "5\r\ncontent-length: 0",
    ];
    for value in NO_LENGTHS.into_iter().chain(further) {
        let bytes = post(&format!("Content-Length: {value}"), "hello");
        refused(rows, format!("Content-Length {value:?}"), bytes);
    }
    for value in ["5", "05", "005", " 5 ", "\t5"] {
        rows.push(Row {
            name: format!("Content-Length {value:?}"),
            bytes: post(&format!("Content-Length: {value}"), "hello"),
            expected: Expected::Passed {
                target: "/",
                body: "hello",
            },
        });
    }
    rows.push(Row {
        name: "Content-Length longer than the body".to_owned(),
        bytes: post("Content-Length: 6", "hello"),
        expected: Expected::CutOff,
    });
}

fn codings(rows: &mut Vec<Row>) {
    for value in [
        "identity",
        "gzip",
        "gzip, chunked",
        "chunked, gzip",
        "chunked, chunked",
        "chunked, identity",
        "xchunked",
        "chunkedx",
        "chun ked",
        "\"chunked\"",
        "chunked;q=1",
        ", chunked",
        "chunked,",
        "",
        "\u{b}chunked",
        "chunked\u{b}",
        "chunked\r\nTransfer-Encoding: chunked",
        "chunked\r\nTransfer-Encoding: identity",
        "identity\r\nTransfer-Encoding: chunked",
        "chunked\r\nContent-Length: 5",
        "chunked\r\nContent-Length: 0",
        "chunked\r\n chunked",
        "\r\n chunked",
        "x\r\nTransfer-Encoding: chunked",
    ] {
        let bytes = post(
            &format!("Transfer-Encoding: {value}"),
            "0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        );
        refused(rows, format!("Transfer-Encoding {value:?}"), bytes);
    }
    for (name, fields) in [
        ("CL.TE", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        ("TE before the colon", "Transfer-Encoding : chunked"),
        ("TE after a bare LF", "X: y\nTransfer-Encoding: chunked"),
        ("TE after a bare CR", "X: y\rTransfer-Encoding: chunked"),
    ] {
        refused(rows, name.to_owned(), post(fields, "0\r\n\r\nX"));
    }
    let old = b"POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    refused(
        rows,
        "Transfer-Encoding in HTTP/1.0".to_owned(),
        old.to_vec(),
    );
}

fn chunks(rows: &mut Vec<Row>) {
    for body in [
        "5\r\nhello\r\n0\r\n\r\n",
        "05\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n00\r\n\r\n",
        "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b\"\r\nhello\r\n0;c\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Trailer: v\r\n\r\n",
    ] {
        rows.push(Row {
            name: format!("chunks {body:?}"),
            bytes: post("Transfer-Encoding: Chunked", body),
            expected: Expected::Passed {
                target: "/",
                body: "hello",
            },
        });
    }
}

fn broken_chunks(rows: &mut Vec<Row>) {
    for body in [
        "",
        "5",
        "5\r\n",
        "5\r\nhel",
        "5\r\nhello",
        "5\r\nhello\r\n",
        "5\r\nhello\r\n0",
        "5\r\nhello\r\n0\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "g\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "4\r\nhello\r\n0\r\n\r\n",
        "6\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\n\n",
        "ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5;\0\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX : v\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: a\0b\r\n\r\n",
        "5\r\nhello\r\n0\r\n X: a\r\n\r\n",
    ] {
        rows.push(Row {
            name: format!("broken chunks {body:?}"),
            bytes: post("Transfer-Encoding: chunked", body),
            expected: Expected::CutOff,
        });
    }
}
