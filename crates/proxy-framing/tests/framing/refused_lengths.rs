//! Lengths and codings that are refused: the vectors of request smuggling.

use proxy_framing::FramingError;

use crate::cases::Verdict::Refused;
use crate::cases::{RequestCase, Verdict};

const BAD: Verdict = Refused(FramingError::BadContentLength);
const BOTH: Verdict = Refused(FramingError::ContentLengthWithTransferEncoding);
const CODING: Verdict = Refused(FramingError::TransferEncodingNotChunked);
const CONFLICT: Verdict = Refused(FramingError::ConflictingContentLength);
const OLD: Verdict = Refused(FramingError::TransferEncodingInHttp10);
const REPEATED: Verdict = Refused(FramingError::RepeatedContentLength);

#[rustfmt::skip]
pub(crate) const LENGTHS: &[RequestCase] = &[
    ("an empty length", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
    ("a length of spaces", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:   \r\n\r\n"),
    ("a length with a plus", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"),
    ("a length with a minus", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello"),
    ("a negative zero", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -0\r\n\r\n"),
    ("a length with two numbers", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\nhello"),
    ("a hexadecimal length", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello"),
    ("a length with letters", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: five\r\n\r\nhello"),
    ("a length with letters behind it", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5a\r\n\r\nhello"),
    ("a length with a point", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\nhello"),
    ("a length with an exponent", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1e1\r\n\r\nhello"),
    ("a length with an underscore", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0_5\r\n\r\nhello"),
    ("a length in quotes", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \"5\"\r\n\r\nhello"),
    ("a length with a semicolon", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5;a\r\n\r\nhello"),
    ("a length in other digits", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \xd9\xa5\r\n\r\nhello"),
    ("a length of 2 to the 63", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n"),
    ("a length of 2 to the 64", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n"),
    ("a length that wraps to 5", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621\r\n\r\nhello"),
    ("a list of equal lengths", REPEATED, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello"),
    ("a list of different lengths", REPEATED, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5,6\r\n\r\nhello"),
    ("a list with a space before the comma", REPEATED, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 ,5\r\n\r\nhello"),
    ("a list with an empty member", REPEATED, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ,5\r\n\r\nhello"),
    ("a length with a comma behind it", REPEATED, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5,\r\n\r\nhello"),
    ("two equal lengths", REPEATED, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    ("two equal lengths spelt differently", REPEATED, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ncontent-length:  05 \r\n\r\nhello"),
    ("two equal lengths far apart", REPEATED, b"POST / HTTP/1.1\r\nContent-Length: 5\r\nHost: a\r\nX: y\r\nContent-Length: 5\r\n\r\nhello"),
    ("two lengths of zero", REPEATED, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"),
    ("two different lengths", CONFLICT, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    ("a length and a zero", CONFLICT, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\nhello"),
    ("a length and a bad one", BAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: x\r\n\r\nhello"),
    ("a folded length", Refused(FramingError::ObsFold), b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n 6\r\n\r\nhello"),
    ("a length with a space before the colon", Refused(FramingError::SpaceBeforeColon), b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello"),
    ("a length behind a carriage return", Refused(FramingError::BareCr), b"POST / HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 5\r\n\r\nhello"),
    ("a length with a vertical tab", Refused(FramingError::ControlByteInValue), b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \x0b5\r\n\r\nhello"),
    ("a length with a zero byte", Refused(FramingError::NulByte), b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\0\r\n\r\nhello"),
];

#[rustfmt::skip]
pub(crate) const CODINGS: &[RequestCase] = &[
    ("a length, then chunked", BOTH, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunked, then a length", BOTH, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    ("a length of zero, then chunked", BOTH, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a length and a coding in odd letters", BOTH, b"POST / HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: 5\r\ntransfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
    ("a length and an unknown coding", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n\r\nhello"),
    ("xchunked", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("chunkedx", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n"),
    ("chunke", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunke\r\n\r\n0\r\n\r\n"),
    ("an empty coding", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n"),
    ("identity", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
    ("gzip", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"),
    ("gzip, chunked", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("chunked, identity", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    ("identity, chunked", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
    ("chunked, chunked", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    ("chunked and a comma", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n0\r\n\r\n"),
    ("a comma and chunked", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"),
    ("two words", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked x\r\n\r\n0\r\n\r\n"),
    ("chunked with a parameter", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n"),
    ("chunked in quotes", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
    ("chunked in other quotes", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: 'chunked'\r\n\r\n0\r\n\r\n"),
    ("chunked with a byte above ASCII", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\xa0\r\n\r\n0\r\n\r\n"),
    ("chunked twice in two lines", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunked, then identity in a second line", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-encoding: identity\r\n\r\n0\r\n\r\n"),
    ("cow, then chunked in a second line", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunked in http 1.0", OLD, b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunked and a length in http 1.0", OLD, b"POST / HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a vertical tab before chunked", Refused(FramingError::ControlByteInValue), b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    ("a form feed after chunked", Refused(FramingError::ControlByteInValue), b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n"),
    ("a zero byte after chunked", Refused(FramingError::NulByte), b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n"),
    ("a space before the coding's colon", Refused(FramingError::SpaceBeforeColon), b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    ("a tab before the coding's colon", Refused(FramingError::SpaceBeforeColon), b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t:chunked\r\n\r\n0\r\n\r\n"),
    ("a coding on a folded line", CODING, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    ("a coding hidden by a fold", Refused(FramingError::ObsFold), b"POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a coding behind a line feed", Refused(FramingError::BareLf), b"POST / HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a coding with a zero byte in its name", Refused(FramingError::NulByte), b"POST / HTTP/1.1\r\nHost: a\r\nTransfer\0-Encoding: chunked\r\n\r\n0\r\n\r\n"),
];
