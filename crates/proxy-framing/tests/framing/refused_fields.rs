//! Field lines that are refused.

use proxy_framing::FramingError;

use crate::cases::Verdict::Refused;
use crate::cases::{RequestCase, Verdict};

const NAME: Verdict = Refused(FramingError::BadNameByte);
const SPACE: Verdict = Refused(FramingError::SpaceBeforeColon);
const CONTROL: Verdict = Refused(FramingError::ControlByteInValue);
const LF: Verdict = Refused(FramingError::BareLf);
const CR: Verdict = Refused(FramingError::BareCr);
const NUL: Verdict = Refused(FramingError::NulByte);
const HOST: Verdict = Refused(FramingError::BadHost);

#[rustfmt::skip]
pub(crate) const FIELDS: &[RequestCase] = &[
    ("a space before the first field", Refused(FramingError::SpaceBeforeFields), b"GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    ("a tab before the first field", Refused(FramingError::SpaceBeforeFields), b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"),
    ("a line of a space before the fields", Refused(FramingError::SpaceBeforeFields), b"GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n"),
    ("a line of a space after the fields", Refused(FramingError::ObsFold), b"GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n"),
    ("a folded line", Refused(FramingError::ObsFold), b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"),
    ("a line folded with a tab", Refused(FramingError::ObsFold), b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n"),
    ("a space before the colon", SPACE, b"GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
    ("a tab before the colon", SPACE, b"GET / HTTP/1.1\r\nHost\t: a\r\n\r\n"),
    ("a space in a name", SPACE, b"GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n"),
    ("an empty name", Refused(FramingError::EmptyName), b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
    ("a line without a colon", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nfoo\r\n\r\n"),
    ("a request line as field", SPACE, b"GET / HTTP/1.1\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a bracket in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX[]: b\r\n\r\n"),
    ("a slash in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX/Y: b\r\n\r\n"),
    ("a quote in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\n\"X\": b\r\n\r\n"),
    ("a comma in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX,Y: b\r\n\r\n"),
    ("a semicolon in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX;Y: b\r\n\r\n"),
    ("an equals sign in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX=Y: b\r\n\r\n"),
    ("an at sign in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\n@X: b\r\n\r\n"),
    ("a byte above ASCII in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX\xe9: b\r\n\r\n"),
    ("a control byte in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX\x01: b\r\n\r\n"),
    ("a delete byte in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX\x7f: b\r\n\r\n"),
    ("a vertical tab in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\n\x0bX: b\r\n\r\n"),
    ("a carriage return in a name", NAME, b"GET / HTTP/1.1\r\nHost: a\r\nX\rY: b\r\n\r\n"),
    ("a line feed in a name", LF, b"GET / HTTP/1.1\r\nHost: a\r\nX\nY: b\r\n\r\n"),
    ("a zero byte in a name", NUL, b"GET / HTTP/1.1\r\nHost: a\r\nX\0Y: b\r\n\r\n"),
    ("a control byte in a value", CONTROL, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\n\r\n"),
    ("a vertical tab in a value", CONTROL, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x0bb\r\n\r\n"),
    ("a form feed in a value", CONTROL, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x0cb\r\n\r\n"),
    ("an escape byte in a value", CONTROL, b"GET / HTTP/1.1\r\nHost: a\r\nX: \x1b[31m\r\n\r\n"),
    ("a delete byte in a value", CONTROL, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x7f\r\n\r\n"),
    ("a delete byte deep in a long value", CONTROL, b"GET / HTTP/1.1\r\nHost: a\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x7faaaaaaaaaaaaaaaa\r\n\r\n"),
    ("a zero byte in a value", NUL, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
    ("a zero byte as value", NUL, b"GET / HTTP/1.1\r\nHost: a\r\nX:\0\r\n\r\n"),
    ("a line feed as line end", LF, b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
    ("a line feed after the colon", LF, b"GET / HTTP/1.1\r\nHost: a\r\nX:\n\r\n"),
    ("a line feed as last line", LF, b"GET / HTTP/1.1\r\nHost: a\r\n\n"),
    ("line feeds throughout", LF, b"GET / HTTP/1.1\nHost: a\n\n"),
    ("a carriage return in a value", CR, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
    ("a carriage return before a line end", CR, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\r\n\r\n"),
    ("a carriage return as value", CR, b"GET / HTTP/1.1\r\nHost: a\r\nX:\rb\r\n\r\n"),
    ("a carriage return as last line", CR, b"GET / HTTP/1.1\r\nHost: a\r\n\rGET / HTTP/1.1\r\n"),
    ("a carriage return that hides a field", CR, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n"),
];

#[rustfmt::skip]
pub(crate) const HOSTS: &[RequestCase] = &[
    ("no host", Refused(FramingError::MissingHost), b"GET / HTTP/1.1\r\n\r\n"),
    ("no host among other fields", Refused(FramingError::MissingHost), b"GET / HTTP/1.1\r\nAccept: */*\r\nX-Host: a\r\n\r\n"),
    ("no host with an absolute target", Refused(FramingError::MissingHost), b"GET http://a/ HTTP/1.1\r\n\r\n"),
    ("two hosts", Refused(FramingError::RepeatedHost), b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("the same host twice", Refused(FramingError::RepeatedHost), b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"),
    ("a host and an empty one", HOST, b"GET / HTTP/1.1\r\nHost: a\r\nHost:\r\n\r\n"),
    ("an empty host and another", HOST, b"GET / HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n"),
    ("an empty host", HOST, b"GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    ("an empty host with white space", HOST, b"GET / HTTP/1.1\r\nHost: \t \r\n\r\n"),
    ("an empty host with an absolute target", HOST, b"GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n"),
    ("an empty host of the server as a whole", HOST, b"OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n"),
    ("an empty host in http 1.0", HOST, b"GET / HTTP/1.0\r\nHost:\r\n\r\n"),
    ("two hosts in http 1.0", Refused(FramingError::RepeatedHost), b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"),
    ("a list of hosts", HOST, b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
    ("a list of hosts without a space", HOST, b"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"),
    ("a space in the host", HOST, b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    ("a slash in the host", HOST, b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    ("a scheme in the host", HOST, b"GET / HTTP/1.1\r\nHost: http://a\r\n\r\n"),
    ("a user in the host", HOST, b"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
    ("a query in the host", HOST, b"GET / HTTP/1.1\r\nHost: a?b\r\n\r\n"),
    ("an encoded byte in the host", HOST, b"GET / HTTP/1.1\r\nHost: a%00b\r\n\r\n"),
    ("a byte above ASCII in the host", HOST, b"GET / HTTP/1.1\r\nHost: \xc3\xa9.example\r\n\r\n"),
    ("a port without a host", HOST, b"GET / HTTP/1.1\r\nHost: :80\r\n\r\n"),
    ("letters in the port", HOST, b"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"),
    ("a port too high", HOST, b"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"),
    ("a port too long", HOST, b"GET / HTTP/1.1\r\nHost: a:000080\r\n\r\n"),
    ("two ports", HOST, b"GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n"),
    ("an IPv6 address without brackets", HOST, b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n"),
    ("an open bracket", HOST, b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"),
    ("empty brackets", HOST, b"GET / HTTP/1.1\r\nHost: []\r\n\r\n"),
    ("letters in brackets", HOST, b"GET / HTTP/1.1\r\nHost: [example]\r\n\r\n"),
    ("brackets around too much", HOST, b"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:255.255.255.255.255.255.255.255.255]\r\n\r\n"),
    ("bytes after the brackets", HOST, b"GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n"),
    ("a bad host in http 1.0", HOST, b"GET / HTTP/1.0\r\nHost: a b\r\n\r\n"),
];
