//! Responses that are legal, some of them barely.

use proxy_framing::RequestKind::{self, Connect, Head, Other};

use crate::cases::ResponseCase;
use crate::cases::Verdict::{Open, Upgrade, Whole};

const ASKED: RequestKind = RequestKind::Upgrade;

#[rustfmt::skip]
pub(crate) const RESPONSES: &[ResponseCase] = &[
    ("a length", Other, Whole, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    ("a length of zero", Other, Whole, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("a length with whitespace", Other, Whole, b"HTTP/1.1 200 OK\r\nContent-Length:\t5 \r\n\r\nhello"),
    ("a length in http 1.0", Other, Whole, b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    ("a length cut short", Other, Open, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"),
    ("chunks", Other, Whole, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    ("chunks with trailers", Other, Whole, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nGrpc-Status: 0\r\n\r\n"),
    ("chunks with an extension", Other, Whole, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;a=\"b\"\r\nx\r\n0\r\n\r\n"),
    ("a body until the close", Other, Open, b"HTTP/1.1 200 OK\r\n\r\nhello\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
    ("a body until the close in http 1.0", Other, Open, b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nhello\0"),
    ("no body until the close", Other, Open, b"HTTP/1.1 200 OK\r\n\r\n"),
    ("no reason", Other, Whole, b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"),
    ("no space after the code", Other, Whole, b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"),
    ("a reason of several words", Other, Whole, b"HTTP/1.1 404 Not  Found at\tall\r\nContent-Length: 0\r\n\r\n"),
    ("a reason above ASCII", Other, Whole, b"HTTP/1.1 404 Non trouv\xc3\xa9\r\nContent-Length: 0\r\n\r\n"),
    ("a code nobody knows", Other, Whole, b"HTTP/1.1 599 X\r\nContent-Length: 0\r\n\r\n"),
    ("a head to head", Head, Whole, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
    ("a chunked head to head", Head, Whole, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("a head to head without a length", Head, Whole, b"HTTP/1.1 200 OK\r\n\r\n"),
    ("204", Other, Whole, b"HTTP/1.1 204 No Content\r\n\r\n"),
    ("204 with a length", Other, Whole, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
    ("204 with a coding", Other, Whole, b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("304", Other, Whole, b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
    ("304 with a length", Other, Whole, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    ("205 with a length", Other, Whole, b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
    ("100, then 200", Other, Whole, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("103 with fields, then 200", Other, Whole, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
    ("103 with a length, then 200", Other, Whole, b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("100 alone", Other, Whole, b"HTTP/1.1 100 Continue\r\n\r\n"),
    ("100 to head, then 200", Head, Whole, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
    ("199, then 200", Other, Whole, b"HTTP/1.1 199 X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("101", ASKED, Upgrade(0), b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ("101 with bytes behind it", ASKED, Upgrade(4), b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n\x81\x00\n\0"),
    ("101 with a length", ASKED, Upgrade(5), b"HTTP/1.1 101 X\r\nContent-Length: 5\r\n\r\nhello"),
    ("100, then 101", ASKED, Upgrade(1), b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 X\r\n\r\nx"),
    ("an upgrade declined", ASKED, Whole, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"),
    ("a tunnel", Connect, Upgrade(3), b"HTTP/1.1 200 Established\r\n\r\nabc"),
    ("a tunnel with a length", Connect, Upgrade(3), b"HTTP/1.1 204 X\r\nContent-Length: 9\r\n\r\nabc"),
    ("a tunnel declined", Connect, Whole, b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"),
    ("fields like those of requests", Other, Whole, b"HTTP/1.1 200 OK\r\nHost: a b\r\nHost: c\r\nUpgrade: x\r\nConnection: upgrade\r\nX-Correlation-Id: 1\r\nContent-Length: 0\r\n\r\n"),
    ("a value above ASCII", Other, Whole, b"HTTP/1.1 200 OK\r\nX: \xe9\xff\r\nContent-Length: 0\r\n\r\n"),
    ("an empty value", Other, Whole, b"HTTP/1.1 200 OK\r\nX:\r\nContent-Length: 0\r\n\r\n"),
    ("a repeated field", Other, Whole, b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"),
    ("a head cut short", Other, Open, b"HTTP/1.1 200 OK\r\nContent-Le"),
    ("a status line cut short", Other, Open, b"HTTP/1.1 20"),
    ("nothing yet", Other, Whole, b""),
];
