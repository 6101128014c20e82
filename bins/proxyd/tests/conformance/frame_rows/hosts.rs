//! The host of a request. [RFC 9113 §8.3.1, RFC 9110 §7.2]

use crate::frame_row::{Expected, Row, seen};
use crate::hpack::{BARE, field, request_head};

const BAD: [&str; 27] = [
    "",
    " ",
    "a b",
    "a,b",
    "u@a.test",
    "u:p@a.test",
    "@a.test",
    "a.test/",
    "a.test/b",
    "a.test?x",
    "a.test#x",
    "a.test:x",
    "a.test:1:2",
    "a.test:65536",
    "a.test:-1",
    ":80",
    "[::1",
    "::1]",
    "[::1]x",
    "[]",
    "a\\b",
    "a<b",
    "a%41",
    "http://a.test",
    "a.test\r\nx: y",
    "a.test\0",
    "caf\u{e9}.test",
];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for host in BAD {
        let authority = request_head("GET", "http", host, "/");
        rows.push(Row::head(
            format!("authority {host:?}"),
            &authority,
            Expected::Malformed,
        ));
        let alone = [BARE, &field("host", host)].concat();
        rows.push(Row::head(
            format!("host {host:?} and no authority"),
            &alone,
            Expected::Malformed,
        ));
    }
    for host in [
        "a.test",
        "A.TEST",
        "a.test:80",
        "a.test.",
        "[::1]",
        "[::1]:80",
        "127.0.0.1",
        "a_b.test",
    ] {
        let found = || Expected::Passed(seen("GET", "/").with("host", host));
        let authority = request_head("GET", "http", host, "/");
        rows.push(Row::head(
            format!("authority {host:?}"),
            &authority,
            found(),
        ));
        let alone = [BARE, &field("host", host)].concat();
        rows.push(Row::head(
            format!("host {host:?} and no authority"),
            &alone,
            found(),
        ));
    }
    pairs(&mut rows);
    rows
}

fn pairs(rows: &mut Vec<Row>) {
    let both = |authority: &str, hosts: &[&str]| {
        let hosts: Vec<_> = hosts.iter().map(|host| field("host", host)).collect();
        [request_head("GET", "http", authority, "/"), hosts.concat()].concat()
    };
    for (name, section) in [
        (
            "a host other than the authority",
            both("a.test", &["b.test"]),
        ),
        (
            "a host with a port that the authority lacks",
            both("a.test", &["a.test:80"]),
        ),
        ("an empty host beside the authority", both("a.test", &[""])),
        (
            "two hosts beside the authority",
            both("a.test", &["a.test", "a.test"]),
        ),
        (
            "two hosts, one of them other",
            both("a.test", &["a.test", "b.test"]),
        ),
        (
            "two hosts and no authority",
            [BARE, &field("host", "a.test"), &field("host", "b.test")].concat(),
        ),
        ("neither authority nor host", BARE.to_vec()),
    ] {
        rows.push(Row::head(name, &section, Expected::Malformed));
    }
    let same = both("a.test", &["A.TEST"]);
    rows.push(Row::head(
        "a host that is the authority",
        &same,
        Expected::Passed(seen("GET", "/").with("host", "a.test")),
    ));
}
