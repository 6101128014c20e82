//! The line positions that a validator records of a head.

use crate::cases::LIMITS;
use proxy_framing::{FieldLine, Lines, RequestValidator};

fn noted(pieces: &[&str]) -> Lines {
    let mut guard = RequestValidator::new(LIMITS);
    let mut lines = Lines::new();
    for piece in pieces {
        let scan = guard.scan_noting(piece.as_bytes(), Some(&mut lines));
        assert_eq!((scan.accepted, scan.stop), (piece.len(), None), "{piece}");
    }
    lines
}

#[test]
fn each_line_of_the_first_head_is_noted() {
    let lines =
        noted(&["GET / HTTP/1.1\r\nHost: a\r\nX-B:c\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n"]);

    let [host, other] =
        [(16, 20, 24), (25, 28, 31)].map(|(from, colon, end)| FieldLine { from, colon, end });
    assert_eq!(lines.start, 16);
    assert_eq!(lines.fields, [host, other]);
    assert_eq!(lines.end, 34);
}

#[test]
fn a_head_that_does_not_lead_its_bytes_or_is_cut_is_not_noted() {
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let cases: [&[&str]; 4] = [
        &["\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"],
        &["GET / HTTP/1.1\r\nHost: a\r\n"],
        &["GET / HTTP/1.1\r\nHost: a\r\n", "\r\n"],
        &[post, "abcGET / HTTP/1.1\r\nHost: a\r\n\r\n"],
    ];
    for pieces in cases {
        assert_eq!(noted(pieces).end, 0, "{pieces:?}");
    }
    assert_eq!(noted(&[post, "abc", get]).end, get.len());
}
