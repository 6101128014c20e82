//! Responses that are refused.

use proxy_framing::FramingError;
use proxy_framing::RequestKind::{Connect, Head, Other, Upgrade};

use crate::cases::Verdict::Refused;
use crate::cases::{ResponseCase, Verdict};

const CODE: Verdict = Refused(FramingError::BadStatusCode);
const LINE: Verdict = Refused(FramingError::BadStatusLine);
const UNASKED: Verdict = Refused(FramingError::UnaskedUpgrade);
const UNEXPECTED: Verdict = Refused(FramingError::UnexpectedData);
const VERSION: Verdict = Refused(FramingError::BadVersion);

#[rustfmt::skip]
pub(crate) const LINES: &[ResponseCase] = &[
    ("an empty line before", Other, LINE, b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("a line feed before", Other, Refused(FramingError::BareLf), b"\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("a space before", Other, LINE, b" HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("another protocol", Other, LINE, b"SSH-2.0-OpenSSH_9.6\r\n"),
    ("http 0.9", Other, LINE, b"<html>"),
    ("a protocol in small letters", Other, LINE, b"http/1.1 200 OK\r\n\r\n"),
    ("an ICY status line", Other, LINE, b"ICY 200 OK\r\n\r\n"),
    ("frames of http 2", Other, Refused(FramingError::NulByte), b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"),
    ("version 2", Other, VERSION, b"HTTP/2 200 OK\r\n\r\n"),
    ("version 2.0", Other, VERSION, b"HTTP/2.0 200 OK\r\n\r\n"),
    ("version 1.2", Other, VERSION, b"HTTP/1.2 200 OK\r\n\r\n"),
    ("version 1.10", Other, VERSION, b"HTTP/1.10 200 OK\r\n\r\n"),
    ("version 1", Other, VERSION, b"HTTP/1 200 OK\r\n\r\n"),
    ("version 0.9", Other, VERSION, b"HTTP/0.9 200 OK\r\n\r\n"),
    ("two spaces before the code", Other, CODE, b"HTTP/1.1  200 OK\r\n\r\n"),
    ("a tab before the code", Other, LINE, b"HTTP/1.1\t200 OK\r\n\r\n"),
    ("no code", Other, LINE, b"HTTP/1.1\r\n\r\n"),
    ("a reason instead of the code", Other, CODE, b"HTTP/1.1 OK\r\n\r\n"),
    ("a code of two digits", Other, CODE, b"HTTP/1.1 20 OK\r\n\r\n"),
    ("a code of four digits", Other, CODE, b"HTTP/1.1 2000 OK\r\n\r\n"),
    ("a code of letters", Other, CODE, b"HTTP/1.1 2xx OK\r\n\r\n"),
    ("a code with a sign", Other, CODE, b"HTTP/1.1 +20 OK\r\n\r\n"),
    ("code 000", Other, CODE, b"HTTP/1.1 000 X\r\n\r\n"),
    ("code 099", Other, CODE, b"HTTP/1.1 099 X\r\n\r\n"),
    ("code 600", Other, CODE, b"HTTP/1.1 600 X\r\n\r\n"),
    ("code 999", Other, CODE, b"HTTP/1.1 999 X\r\n\r\n"),
    ("a tab after the code", Other, CODE, b"HTTP/1.1 200\tOK\r\n\r\n"),
    ("a line feed after the code", Other, Refused(FramingError::BareLf), b"HTTP/1.1 200\n\n"),
    ("a line feed after the reason", Other, Refused(FramingError::BareLf), b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
    ("a carriage return in the reason", Other, Refused(FramingError::BareCr), b"HTTP/1.1 200 O\rK\r\n\r\n"),
    ("a zero byte in the reason", Other, Refused(FramingError::NulByte), b"HTTP/1.1 200 O\0K\r\n\r\n"),
    ("a control byte in the reason", Other, Refused(FramingError::ControlByteInValue), b"HTTP/1.1 200 \x1b[1m\r\n\r\n"),
    ("an unrequested 101", Other, UNASKED, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    ("101 to head", Head, UNASKED, b"HTTP/1.1 101 X\r\n\r\n"),
    ("101 to connect", Connect, UNASKED, b"HTTP/1.1 101 X\r\n\r\n"),
    ("17 interim responses", Other, Refused(FramingError::TooManyInformational), b"HTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\n"),
    ("garbage after an interim response", Other, LINE, b"HTTP/1.1 100 Continue\r\n\r\nhello"),
];

#[rustfmt::skip]
pub(crate) const MESSAGES: &[ResponseCase] = &[
    ("two responses to one request", Other, UNEXPECTED, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("a body longer than its length", Other, UNEXPECTED, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhello"),
    ("an empty line after the body", Other, UNEXPECTED, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx\r\n"),
    ("a body after a head to head", Head, UNEXPECTED, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    ("a body after 204", Other, UNEXPECTED, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
    ("chunks after 204", Other, UNEXPECTED, b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a body after 304", Other, UNEXPECTED, b"HTTP/1.1 304 Not Modified\r\n\r\nx"),
    ("bytes after the last chunk", Other, UNEXPECTED, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx"),
    ("a final response after a declined upgrade", Upgrade, UNEXPECTED, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 101 X\r\n\r\n"),
    ("a length and a coding", Other, Refused(FramingError::ContentLengthWithTransferEncoding), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("a coding and a length", Other, Refused(FramingError::ContentLengthWithTransferEncoding), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
    ("a length and a coding to head", Head, Refused(FramingError::ContentLengthWithTransferEncoding), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("two lengths", Other, Refused(FramingError::RepeatedContentLength), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    ("two different lengths", Other, Refused(FramingError::ConflictingContentLength), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello"),
    ("a list of lengths", Other, Refused(FramingError::RepeatedContentLength), b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"),
    ("a bad length", Other, Refused(FramingError::BadContentLength), b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello"),
    ("a bad length on 204", Other, Refused(FramingError::BadContentLength), b"HTTP/1.1 204 X\r\nContent-Length: -1\r\n\r\n"),
    ("gzip as coding", Other, Refused(FramingError::TransferEncodingNotChunked), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
    ("gzip and chunked as coding", Other, Refused(FramingError::TransferEncodingNotChunked), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
    ("identity as coding", Other, Refused(FramingError::TransferEncodingNotChunked), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n"),
    ("chunked twice", Other, Refused(FramingError::TransferEncodingNotChunked), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("a coding in http 1.0", Other, Refused(FramingError::TransferEncodingInHttp10), b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("a folded field", Other, Refused(FramingError::ObsFold), b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"),
    ("a space before the first field", Other, Refused(FramingError::SpaceBeforeFields), b"HTTP/1.1 200 OK\r\n X: a\r\n\r\n"),
    ("a space before a colon", Other, Refused(FramingError::SpaceBeforeColon), b"HTTP/1.1 200 OK\r\nX : a\r\n\r\n"),
    ("an empty name", Other, Refused(FramingError::EmptyName), b"HTTP/1.1 200 OK\r\n: a\r\n\r\n"),
    ("a bad name", Other, Refused(FramingError::BadNameByte), b"HTTP/1.1 200 OK\r\nX(Y): a\r\n\r\n"),
    ("a line without a colon", Other, Refused(FramingError::BadNameByte), b"HTTP/1.1 200 OK\r\nhello\r\n\r\n"),
    ("a zero byte in a value", Other, Refused(FramingError::NulByte), b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n"),
    ("a control byte in a value", Other, Refused(FramingError::ControlByteInValue), b"HTTP/1.1 200 OK\r\nX: \x02\r\n\r\n"),
    ("a line feed in the head", Other, Refused(FramingError::BareLf), b"HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n"),
    ("a carriage return in the head", Other, Refused(FramingError::BareCr), b"HTTP/1.1 200 OK\r\nX: a\rY: b\r\n\r\n"),
    ("a bad chunk size", Other, Refused(FramingError::BadChunkSize), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
    ("a padded chunk size", Other, Refused(FramingError::BadChunkExtension), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nhello\r\n"),
    ("a bad chunk extension", Other, Refused(FramingError::BadChunkExtension), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;\r\nhello\r\n"),
    ("chunk data without an end", Other, Refused(FramingError::ChunkDataNotTerminated), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloo\r\n"),
    ("a forbidden trailer", Other, Refused(FramingError::BadTrailer), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 0\r\n\r\n"),
];
