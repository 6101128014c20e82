//! Limits are exact: the bound is allowed, one more is not.

use proxy_framing::{FramingError, HeadLimits, RequestKind, RequestValidator};

use crate::cases::{LIMITS, Verdict};
use crate::drive::{self, Outcome, drive};

/// The result for a request, which must be the same in one piece and in several.
fn request(bytes: &[u8], limits: HeadLimits) -> Outcome {
    let whole = drive::request(bytes, limits);
    assert_eq!(
        drive(&mut RequestValidator::new(limits), bytes.chunks(1)),
        whole
    );
    whole
}

fn get(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
}

#[test]
fn a_value_of_the_limit_passes_and_one_byte_more_is_refused() {
    let limits = HeadLimits {
        max_value_bytes: 20,
        ..LIMITS
    };
    for (len, verdict) in [
        (20, Verdict::Whole),
        (
            21,
            Verdict::Refused(FramingError::ValueSize {
                actual: 21,
                limit: 20,
            }),
        ),
        (
            500,
            Verdict::Refused(FramingError::ValueSize {
                actual: 21,
                limit: 20,
            }),
        ),
    ] {
        let bytes = get(&format!("X: {}\r\n", "v".repeat(len)));
        assert_eq!(request(&bytes, limits).1, verdict, "{len}");
    }
}

#[test]
fn whitespace_around_a_value_does_not_count() {
    let limits = HeadLimits {
        max_value_bytes: 3,
        ..LIMITS
    };
    let padded = get("X:   \t  abc   \t   \r\n");
    assert_eq!(request(&padded, limits).1, Verdict::Whole);
    let inside = get("X: a    c\r\n");
    let refused = Verdict::Refused(FramingError::ValueSize {
        actual: 6,
        limit: 3,
    });
    assert_eq!(request(&inside, limits).1, refused);
}

#[test]
fn a_name_of_the_limit_passes_and_one_byte_more_is_refused() {
    let limits = HeadLimits {
        max_name_bytes: 10,
        ..LIMITS
    };
    let refused = Verdict::Refused(FramingError::NameSize {
        actual: 11,
        limit: 10,
    });
    for (len, verdict) in [(10, Verdict::Whole), (11, refused), (400, refused)] {
        let bytes = get(&format!("{}: v\r\n", "n".repeat(len)));
        assert_eq!(request(&bytes, limits).1, verdict, "{len}");
    }
}

#[test]
fn a_name_is_refused_before_it_is_complete() {
    let mut guard = RequestValidator::new(LIMITS);
    let (accepted, verdict) = drive(
        &mut guard,
        [[b"GET / HTTP/1.1\r\n".as_slice(), &[b'n'; 300]]
            .concat()
            .as_slice()],
    );
    assert_eq!(
        verdict,
        Verdict::Refused(FramingError::NameSize {
            actual: 257,
            limit: 256
        })
    );
    assert_eq!(accepted, 16 + 256);
}

#[test]
fn a_section_of_the_limit_passes_and_one_byte_more_is_refused() {
    // "Host: a\r\n" is 9 bytes, "X: \r\n" with its value is 5 and the value.
    let limits = HeadLimits {
        max_head_bytes: 9 + 5 + 100,
        ..LIMITS
    };
    let refused = Verdict::Refused(FramingError::HeaderSize {
        actual: 115,
        limit: 114,
    });
    for (len, verdict) in [(100, Verdict::Whole), (101, refused), (1000, refused)] {
        let bytes = get(&format!("X: {}\r\n", "v".repeat(len)));
        assert_eq!(request(&bytes, limits).1, verdict, "{len}");
    }
    let bytes = get(&format!("X: {}\r\nY:\r\n", "v".repeat(100)));
    assert_eq!(request(&bytes, limits).1, refused);
}

#[test]
fn the_request_line_does_not_count_into_the_section() {
    let limits = HeadLimits {
        max_head_bytes: 9,
        ..LIMITS
    };
    let bytes = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "p".repeat(1000)).into_bytes();
    assert_eq!(request(&bytes, limits).1, Verdict::Whole);
}

#[test]
fn each_request_has_the_whole_section_limit() {
    let limits = HeadLimits {
        max_head_bytes: 9,
        max_header_count: 1,
        ..LIMITS
    };
    let bytes = get("").repeat(5);
    assert_eq!(request(&bytes, limits).1, Verdict::Whole);
}

#[test]
fn as_many_fields_as_the_limit_pass_and_one_more_is_refused() {
    let refused = Verdict::Refused(FramingError::HeaderCount {
        actual: 101,
        limit: 100,
    });
    for (count, verdict) in [(99, Verdict::Whole), (100, refused), (200, refused)] {
        assert_eq!(
            request(&get(&"X: y\r\n".repeat(count)), LIMITS).1,
            verdict,
            "{count}"
        );
    }
}

#[test]
fn a_target_of_the_limit_passes_and_one_byte_more_is_refused() {
    let limits = HeadLimits {
        max_target_bytes: 30,
        ..LIMITS
    };
    let refused = Verdict::Refused(FramingError::TargetSize {
        actual: 31,
        limit: 30,
    });
    for (len, verdict) in [(30, Verdict::Whole), (31, refused), (5000, refused)] {
        let path = "p".repeat(len - 1);
        let bytes = format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        assert_eq!(request(&bytes, limits).1, verdict, "{len}");
    }
}

#[test]
fn limits_of_zero_refuse_every_request() {
    let none = HeadLimits {
        max_head_bytes: 0,
        max_header_count: 0,
        max_name_bytes: 0,
        max_value_bytes: 0,
        max_target_bytes: 0,
    };
    let refusal = |limits| drive::refusal(&get(""), limits);
    assert_eq!(
        refusal(none),
        Some(FramingError::TargetSize {
            actual: 1,
            limit: 0
        })
    );
    let limits = HeadLimits {
        max_target_bytes: 1,
        ..none
    };
    assert_eq!(
        refusal(limits),
        Some(FramingError::HeaderCount {
            actual: 1,
            limit: 0
        })
    );
    let limits = HeadLimits {
        max_header_count: 1,
        ..limits
    };
    assert_eq!(
        refusal(limits),
        Some(FramingError::HeaderSize {
            actual: 1,
            limit: 0
        })
    );
    let limits = HeadLimits {
        max_head_bytes: 9,
        ..limits
    };
    assert_eq!(
        refusal(limits),
        Some(FramingError::NameSize {
            actual: 1,
            limit: 0
        })
    );
    let limits = HeadLimits {
        max_name_bytes: 4,
        ..limits
    };
    assert_eq!(
        refusal(limits),
        Some(FramingError::ValueSize {
            actual: 1,
            limit: 0
        })
    );
    let limits = HeadLimits {
        max_value_bytes: 1,
        ..limits
    };
    assert_eq!(refusal(limits), None);
}

#[test]
fn limits_above_the_maximum_of_the_http_crate_are_capped() {
    let most = HeadLimits {
        max_head_bytes: u32::MAX,
        max_header_count: u32::MAX,
        max_name_bytes: u32::MAX,
        max_value_bytes: u32::MAX,
        max_target_bytes: u32::MAX,
    };
    let path = "p".repeat(65_534);
    let bytes = format!("GET /{path} HTTP/1.1\r\n").into_bytes();
    let refused = FramingError::TargetSize {
        actual: 65_535,
        limit: 65_534,
    };
    assert_eq!(drive::refusal(&bytes, most), Some(refused));
    let bytes = get(&"X: y\r\n".repeat(16_384));
    let refused = FramingError::HeaderCount {
        actual: 16_385,
        limit: 16_384,
    };
    assert_eq!(drive::refusal(&bytes, most), Some(refused));
    let bytes = get(&"n".repeat(65_536));
    let refused = FramingError::NameSize {
        actual: 65_536,
        limit: 65_535,
    };
    assert_eq!(drive::refusal(&bytes, most), Some(refused));
    let bytes = get(&format!("X: {}\r\n", "v".repeat(1 << 20)));
    assert_eq!(drive::refusal(&bytes, most), None);
}

#[test]
fn trailers_have_the_limits_of_heads() {
    let chunked = |trailers: &str| {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}0\r\n{trailers}\r\n").into_bytes()
    };
    let limits = HeadLimits {
        max_header_count: 2,
        max_head_bytes: 60,
        ..LIMITS
    };
    assert_eq!(
        request(&chunked("X: y\r\nX: y\r\n"), limits).1,
        Verdict::Whole
    );
    let refused = Verdict::Refused(FramingError::HeaderCount {
        actual: 3,
        limit: 2,
    });
    assert_eq!(
        request(&chunked("X: y\r\nX: y\r\nX: y\r\n"), limits).1,
        refused
    );
    let refused = Verdict::Refused(FramingError::HeaderSize {
        actual: 61,
        limit: 60,
    });
    assert_eq!(
        request(&chunked(&format!("X: {}\r\n", "v".repeat(56))), limits).1,
        refused
    );
    let name = format!("{}: v\r\n", "n".repeat(257));
    let refused = Verdict::Refused(FramingError::NameSize {
        actual: 257,
        limit: 256,
    });
    assert_eq!(request(&chunked(&name), LIMITS).1, refused);
}

#[test]
fn trailers_are_never_longer_than_hyper_holds() {
    let limits = HeadLimits {
        max_head_bytes: 100_000,
        max_value_bytes: 100_000,
        ..LIMITS
    };
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    let bytes = format!("{head}X: {}\r\n\r\n", "v".repeat(20_000)).into_bytes();
    let refused = Verdict::Refused(FramingError::HeaderSize {
        actual: 16_382,
        limit: 16_381,
    });
    assert_eq!(request(&bytes, limits).1, refused);
    let bytes = format!("{head}X: {}\r\n\r\n", "v".repeat(16_381 - 5)).into_bytes();
    assert_eq!(request(&bytes, limits).1, Verdict::Whole);
}

#[test]
fn extensions_are_bounded_for_the_whole_body() {
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice();
    let chunk = b"1;abcdefg\r\nx\r\n";
    let most = [head, &chunk.repeat(512), b"0\r\n\r\n"].concat();
    assert_eq!(request(&most, LIMITS).1, Verdict::Whole);
    let more = [head, &chunk.repeat(513)].concat();
    assert_eq!(
        request(&more, LIMITS).1,
        Verdict::Refused(FramingError::BadChunkExtension)
    );
}

#[test]
fn responses_have_the_same_limits() {
    let response = |bytes: &[u8], limits| {
        let whole = drive::response(bytes, RequestKind::Other, limits);
        let mut guard = drive::expecting(RequestKind::Other, limits);
        assert_eq!(drive(&mut guard, bytes.chunks(1)), whole);
        whole.1
    };
    let limits = HeadLimits {
        max_head_bytes: 40,
        max_header_count: 2,
        max_target_bytes: 5,
        max_value_bytes: 12,
        ..LIMITS
    };
    let good = b"HTTP/1.1 200 abcde\r\nContent-Length: 0\r\nX: abcdef\r\n\r\n";
    assert_eq!(response(good, limits), Verdict::Whole);
    let reason = b"HTTP/1.1 200 abcdef\r\n\r\n";
    let refused = Verdict::Refused(FramingError::TargetSize {
        actual: 6,
        limit: 5,
    });
    assert_eq!(response(reason, limits), refused);
    let size = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: abcdefghijklm\r\n\r\n";
    let refused = Verdict::Refused(FramingError::ValueSize {
        actual: 13,
        limit: 12,
    });
    assert_eq!(response(size, limits), refused);
    let count = b"HTTP/1.1 200 OK\r\na:b\r\na:b\r\na:b\r\n\r\n";
    let refused = Verdict::Refused(FramingError::HeaderCount {
        actual: 3,
        limit: 2,
    });
    assert_eq!(response(count, limits), refused);
}
