//! Chunks and trailers that are refused.

use proxy_framing::FramingError;

use crate::cases::Verdict::Refused;
use crate::cases::{RequestCase, Verdict};

const SIZE: Verdict = Refused(FramingError::BadChunkSize);
const EXTENSION: Verdict = Refused(FramingError::BadChunkExtension);
const DATA: Verdict = Refused(FramingError::ChunkDataNotTerminated);
const TRAILER: Verdict = Refused(FramingError::BadTrailer);

/// The head of a chunked request, before the body of each case.
pub(crate) const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

#[rustfmt::skip]
pub(crate) const CHUNKS: &[RequestCase] = &[
    ("no size", SIZE, b"\r\nhello\r\n0\r\n\r\n"),
    ("a space before the size", SIZE, b" 5\r\nhello\r\n0\r\n\r\n"),
    ("a size with a plus", SIZE, b"+5\r\nhello\r\n0\r\n\r\n"),
    ("a size with a minus", SIZE, b"-5\r\nhello\r\n0\r\n\r\n"),
    ("a size with a prefix", SIZE, b"0x5\r\nhello\r\n0\r\n\r\n"),
    ("a size with an underscore", SIZE, b"0_5\r\nhello\r\n0\r\n\r\n"),
    ("a size with a wrong letter", SIZE, b"5g\r\nhello\r\n0\r\n\r\n"),
    ("a size in quotes", SIZE, b"\"5\"\r\nhello\r\n0\r\n\r\n"),
    ("a size with a point", SIZE, b"5.0\r\nhello\r\n0\r\n\r\n"),
    ("a size with a suffix", SIZE, b"5h\r\nhello\r\n0\r\n\r\n"),
    ("a size of 17 digits", SIZE, b"00000000000000005\r\nhello\r\n0\r\n\r\n"),
    ("a size of 2 to the 64", SIZE, b"10000000000000000\r\nhello\r\n0\r\n\r\n"),
    ("a size that wraps to 5", SIZE, b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
    ("a size with a control byte", SIZE, b"5\x0b\r\nhello\r\n0\r\n\r\n"),
    ("a size with a byte above ASCII", SIZE, b"\xff\r\nhello\r\n0\r\n\r\n"),
    ("a size with a comma", SIZE, b"5,5\r\nhello\r\n0\r\n\r\n"),
    ("a size with a zero byte", Refused(FramingError::NulByte), b"5\0\r\nhello\r\n0\r\n\r\n"),
    ("a size with a line feed", Refused(FramingError::BareLf), b"5\nhello\r\n0\r\n\r\n"),
    ("a size with a carriage return", Refused(FramingError::BareCr), b"5\rhello\r\n0\r\n\r\n"),
    ("a second size with a line feed", Refused(FramingError::BareLf), b"1\r\nx\r\n5\nhello\r\n0\r\n\r\n"),
    ("a second size without a digit", SIZE, b"1\r\nx\r\n\r\n0\r\n\r\n"),
    ("a space after the size", EXTENSION, b"5 \r\nhello\r\n0\r\n\r\n"),
    ("two sizes", EXTENSION, b"5 6\r\nhello\r\n0\r\n\r\n"),
    ("a semicolon alone", EXTENSION, b"5;\r\nhello\r\n0\r\n\r\n"),
    ("a semicolon and a line feed", Refused(FramingError::BareLf), b"5;\nhello\r\n0\r\n\r\n"),
    ("two semicolons", EXTENSION, b"5;;a\r\nhello\r\n0\r\n\r\n"),
    ("an extension without a name", EXTENSION, b"5;=a\r\nhello\r\n0\r\n\r\n"),
    ("an extension without a value after its sign", EXTENSION, b"5;a=\r\nhello\r\n0\r\n\r\n"),
    ("an extension with an open quote", EXTENSION, b"5;a=\"b\r\nhello\r\n0\r\n\r\n"),
    ("an extension with bytes after the quote", EXTENSION, b"5;a=\"b\"c\r\nhello\r\n0\r\n\r\n"),
    ("an extension with whitespace at its end", EXTENSION, b"5;a \r\nhello\r\n0\r\n\r\n"),
    ("an extension with two values", EXTENSION, b"5;a=b=c\r\nhello\r\n0\r\n\r\n"),
    ("an extension with two words", EXTENSION, b"5;a b\r\nhello\r\n0\r\n\r\n"),
    ("an extension with a control byte", EXTENSION, b"5;a\x01\r\nhello\r\n0\r\n\r\n"),
    ("an extension with a byte above ASCII", EXTENSION, b"5;\xe9\r\nhello\r\n0\r\n\r\n"),
    ("an extension with a carriage return", Refused(FramingError::BareCr), b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
    ("an extension with a line feed", Refused(FramingError::BareLf), b"5;a\nb\r\nhello\r\n0\r\n\r\n"),
    ("an extension with a line feed in quotes", Refused(FramingError::BareLf), b"5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"),
    ("an extension with a carriage return in quotes", EXTENSION, b"5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n"),
    ("an extension with a zero byte", Refused(FramingError::NulByte), b"5;a\0\r\nhello\r\n0\r\n\r\n"),
    ("an extension with an escaped zero byte", Refused(FramingError::NulByte), b"5;a=\"\\\0\"\r\nhello\r\n0\r\n\r\n"),
    ("data longer than its size", DATA, b"4\r\nhello\r\n0\r\n\r\n"),
    ("data shorter than its size", DATA, b"6\r\nhello\r\n0\r\n\r\n"),
    ("data ended by a line feed", DATA, b"5\r\nhello\n0\r\n\r\n"),
    ("data ended by a carriage return", DATA, b"5\r\nhello\r0\r\n\r\n"),
    ("data ended by nothing", DATA, b"5\r\nhello0\r\n\r\n"),
    ("data ended by two carriage returns", DATA, b"5\r\nhello\r\r\n0\r\n\r\n"),
];

#[rustfmt::skip]
pub(crate) const TRAILERS: &[RequestCase] = &[
    ("a length as trailer", TRAILER, b"0\r\nContent-Length: 5\r\n\r\n"),
    ("a coding as trailer", TRAILER, b"0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("a host as trailer", TRAILER, b"0\r\nHost: b\r\n\r\n"),
    ("connection as trailer", TRAILER, b"0\r\nX: y\r\nConnection: close\r\n\r\n"),
    ("upgrade as trailer", TRAILER, b"0\r\nUpgrade: x\r\n\r\n"),
    ("a forbidden trailer in odd letters", TRAILER, b"0\r\ncOnTeNt-LeNgTh:5\r\n\r\n"),
    ("a line feed after the last chunk", Refused(FramingError::BareLf), b"0\r\n\n"),
    ("a carriage return after the last chunk", Refused(FramingError::BareCr), b"0\r\n\rX"),
    ("a trailer ended by a line feed", Refused(FramingError::BareLf), b"0\r\nX: y\n\r\n"),
    ("a trailer with a carriage return", Refused(FramingError::BareCr), b"0\r\nX: y\rz\r\n\r\n"),
    ("a trailer without a colon", Refused(FramingError::BadNameByte), b"0\r\nX\r\n\r\n"),
    ("a trailer with a space before its colon", Refused(FramingError::SpaceBeforeColon), b"0\r\nX : y\r\n\r\n"),
    ("a trailer without a name", Refused(FramingError::EmptyName), b"0\r\n: y\r\n\r\n"),
    ("whitespace before the trailers", Refused(FramingError::SpaceBeforeFields), b"0\r\n X: y\r\n\r\n"),
    ("a folded trailer", Refused(FramingError::ObsFold), b"0\r\nX: y\r\n z\r\n\r\n"),
    ("a trailer with a zero byte", Refused(FramingError::NulByte), b"0\r\nX: \0\r\n\r\n"),
    ("a trailer with a control byte", Refused(FramingError::ControlByteInValue), b"0\r\nX: \x08\r\n\r\n"),
    ("garbage after the last chunk", Refused(FramingError::BadNameByte), b"0\r\nGET\r\n\r\n"),
    ("a request instead of the empty line", Refused(FramingError::SpaceBeforeColon), b"0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a third empty line after the body", Refused(FramingError::BadRequestLine), b"0\r\n\r\n\r\n\r\n\r\n"),
];
