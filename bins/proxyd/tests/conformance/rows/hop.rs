//! Hop-by-hop fields, and fields that the proxy sets. [RFC 9110 §7.6, §7.8, §10.1.1]

use super::{Expected, GET, Row, with_field};
use crate::frame_row::{Seen, seen};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = nominations();
    rows.extend(upgrades());
    rows.extend(ours());
    rows.extend(trailers());
    rows
}

fn get() -> Seen {
    seen("GET", "/").with("host", "a.test")
}

fn row(fields: &str, seen: Seen) -> Row {
    let bytes = [GET, fields.as_bytes(), b"\r\n\r\n"].concat();
    Row::new(
        format!("fields {fields:?}"),
        bytes,
        Expected::Received(seen),
    )
}

fn nominations() -> Vec<Row> {
    vec![
        row("Connection: close", get().without("connection")),
        row("Connection: keep-alive\r\nKeep-Alive: timeout=5", get().without("connection").without("keep-alive")),
        row("Connection: x-a\r\nX-A: 1\r\nX-B: 2", get().without("x-a").with("x-b", "2")),
        row("Connection: X-a , x-B\r\nX-A: 1\r\nX-B: 2", get().without("x-a").without("x-b")),
        row("Connection: x-a\r\nConnection: x-b\r\nX-A: 1\r\nX-B: 2", get().without("x-a").without("x-b")),
        row("X-A: 1\r\nConnection: x-a\r\nx-a: 2", get().without("x-a")),
        row("Connection: cookie\r\nCookie: a=1", get().without("cookie")),
        row("Connection: authorization\r\nAuthorization: Basic eDp5", get().without("authorization")),
        row("Connection: host", get().without("connection")),
        row("Connection: x-forwarded-for", get().with("x-forwarded-for", "127.0.0.1")),
        row("Connection: x-forwarded-host, x-forwarded-proto", get().with("x-forwarded-host", "a.test")),
        row("Connection: via", get().with("via", "1.1 proxyd")),
        row("Connection: x-correlation-id\r\nX-Correlation-Id: abc-1", get().with("x-correlation-id", "abc-1")),
        row("Connection: connection", get().without("connection")),
        row("Connection: ,,", get().without("connection")),
        row("Connection:", get().without("connection")),
        row("Connection: \u{e9}", get().without("connection")),
        row("Proxy-Connection: keep-alive", get().without("proxy-connection")),
        row("TE: trailers", get().with("te", "trailers").with("connection", "te")),
        row("TE: gzip", get().without("te")),
        row("TE: trailers, gzip;q=0.5", get().with("te", "trailers")),
        row("TE: trailers\r\nConnection: te", get().with("te", "trailers").with("connection", "te")),
        Row::new("a length that is nominated", *b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: content-length\r\nContent-Length: 2\r\n\r\nhi", Expected::Received(seen("POST", "/").body("hi").with("content-length", "2"))),
        Row::new("a coding that is nominated", *b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", Expected::Received(seen("POST", "/").body("hi").with("transfer-encoding", "chunked"))),
    ]
}

fn upgrades() -> Vec<Row> {
    vec![
        row("Upgrade: websocket", get().without("upgrade")),
        row("Connection: upgrade", get().without("connection")),
        row(
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
            get()
                .without("upgrade")
                .without("http2-settings")
                .without("connection"),
        ),
        row(
            "Connection: Upgrade\r\nUpgrade: H2C",
            get().without("upgrade").without("connection"),
        ),
        row(
            "Connection: Upgrade\r\nUpgrade: h2c, websocket",
            get()
                .without("http2-settings")
                .with("upgrade", "websocket"),
        ),
        // A body precedes the protocol switch. [RFC 9110 §7.8]
        Row::new("an upgrade with a body", *b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nhi", Expected::Received(seen("POST", "/").body("hi").with("content-length", "2"))),
        Row::new("an upgrade with chunks", *b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", Expected::Received(seen("POST", "/").body("hi"))),
        row(
            "Connection: keep-alive\r\nUpgrade: websocket",
            get().without("upgrade"),
        ),
        Row::new(
            "an expectation nobody knows",
            with_field(b"Expect: miracles"),
            Expected::Answered(417),
        ),
        Row::new(
            "an expectation beside another",
            with_field(b"Expect: 100-continue, miracles"),
            Expected::Answered(417),
        ),
        row("Expect: 100-continue", get().without("expect")),
    ]
}

fn ours() -> Vec<Row> {
    vec![
        row(
            "X-Forwarded-For: 10.0.0.1",
            get().with("x-forwarded-for", "127.0.0.1"),
        ),
        row(
            "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2",
            get().with("x-forwarded-for", "127.0.0.1"),
        ),
        row(
            "X-Forwarded-Host: b.test",
            get().with("x-forwarded-host", "a.test"),
        ),
        row("Forwarded: for=10.0.0.1", get().without("forwarded")),
        row("Via: 1.0 b.test", get().with("via", "1.1 proxyd")),
        row(
            "X-Correlation-Id: abc-1",
            get().with("x-correlation-id", "abc-1"),
        ),
        row(
            "Cookie: a=1\r\nX: 1\r\nx: 2\r\nX: 3",
            get().with("cookie", "a=1"),
        ),
        row(
            "X-Empty:\r\nX-Space: \t ",
            get().with("x-empty", "").with("x-space", ""),
        ),
        row("Content-Length: 0", get().with("content-length", "0")),
        row("Trailer: x-sum", get().without("trailer")),
    ]
}

/// Fields that must be known before the body are not allowed after it. [RFC 9110 §6.5.1]
fn trailers() -> Vec<Row> {
    let mut rows = Vec::new();
    let sent = |trailers: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n{trailers}\r\n"
        )
    };
    let post = || seen("POST", "/").body("hi");
    rows.push(Row::new(
        "trailers",
        sent("X-Sum: 1\r\n"),
        Expected::Received(post().trailer("x-sum", "1")),
    ));
    for name in [
        "Authorization",
        "Cookie",
        "Expect",
        "TE",
        "Trailer",
        "Content-Type",
        "Content-Encoding",
        "Range",
        "Cache-Control",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "Forwarded",
        "Via",
        "X-Correlation-Id",
        "Keep-Alive",
    ] {
        let bytes = sent(&format!("{name}: 1\r\nX-Sum: 1\r\n"));
        rows.push(Row::new(
            format!("{name} behind a body"),
            bytes,
            Expected::Received(post().trailer("x-sum", "1")),
        ));
    }
    for name in [
        "Content-Length",
        "Transfer-Encoding",
        "Host",
        "Connection",
        "Upgrade",
    ] {
        let bytes = sent(&format!("{name}: 1\r\n"));
        rows.push(Row::new(
            format!("{name} behind a body"),
            bytes,
            Expected::CutOff,
        ));
    }
    for line in [
        "X : 1\r\n",
        " X: 1\r\n",
        "X: 1\r\n folded\r\n",
        "X: a\rb\r\n",
        "X: a\nY: b\r\n",
        ": 1\r\n",
        "X\r\n",
        "X\"Y: 1\r\n",
    ] {
        rows.push(Row::new(
            format!("trailer line {line:?}"),
            sent(line),
            Expected::CutOff,
        ));
    }
    rows
}
