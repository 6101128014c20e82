//! Heads at and above the default limits.

use super::{Expected, GET, Row};
use crate::frame_row::seen;

pub(super) fn rows() -> Vec<Row> {
    let head = |fields: &str| [GET, fields.as_bytes(), b"\r\n"].concat();
    let many = |count: usize| {
        let each = (0..count).map(|number| format!("X{number}: v\r\n"));
        each.collect::<Vec<_>>().concat()
    };
    let passed = |name: &str, bytes| Row::new(name, bytes, Expected::Received(seen("GET", "/")));
    let refused = |name: &str, bytes| Row::new(name, bytes, Expected::Refused(429));
    let target = |length: usize| {
        let path = ["/", &"p".repeat(length - 1)].concat();
        (format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"), path)
    };
    let (long, path) = target(8_000);
    let length =
        |value: &str| format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {value}\r\n\r\n");
    vec![
        // `Host` is one of the hundred.
        passed("100 fields", head(&many(99))),
        refused("101 fields", head(&many(100))),
        passed(
            "a name of 256 bytes",
            head(&format!("{}: v\r\n", "x".repeat(256))),
        ),
        refused(
            "a name of 257 bytes",
            head(&format!("{}: v\r\n", "x".repeat(257))),
        ),
        passed(
            "a value of 4096 bytes",
            head(&format!("X: {}\r\n", "v".repeat(4_096))),
        ),
        refused(
            "a value of 4097 bytes",
            head(&format!("X: {}\r\n", "v".repeat(4_097))),
        ),
        refused(
            "a head of more than 8192 bytes",
            head(&format!(
                "X: {0}\r\nY: {0}\r\nZ: {0}\r\n",
                "v".repeat(3_000)
            )),
        ),
        Row::new(
            "a target of 8000 bytes",
            long,
            Expected::Received(seen("GET", path)),
        ),
        refused("a target of 20000 bytes", target(20_000).0.into_bytes()),
        Row::new(
            "a body of more than 10 MiB",
            length("10485761"),
            Expected::Answered(413),
        ),
        Row::new(
            "a body of nearly 2^63 bytes",
            length("9223372036854775807"),
            Expected::Answered(413),
        ),
        refused("a name without an end", head(&"x".repeat(300))),
    ]
}
