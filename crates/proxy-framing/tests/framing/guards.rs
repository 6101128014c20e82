//! Tests of the validators' results apart from accepted bytes and errors.

use std::collections::BTreeSet;

use proxy_framing::{
    Eof, FramingError, FramingErrorKind, RequestKind, RequestValidator, ResponseValidator, Scan,
    Stop,
};

use crate::cases::LIMITS;
use crate::drive::expecting;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const UPGRADE: &[u8] =
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

fn fault(guard: &mut RequestValidator, bytes: &[u8]) -> FramingError {
    match guard.scan(bytes).stop {
        Some(Stop::FramingError(fault)) => fault,
        other => panic!("not refused: {other:?}"),
    }
}

/// The correlation ID that is reported after `lines` and an error, in one piece and byte by byte.
fn correlation_id(lines: &str) -> Option<String> {
    let head = format!("GET / HTTP/1.1\r\n{lines}X: \x01\r\n\r\n");
    let reported = |guard: &RequestValidator| {
        guard
            .correlation_id()
            .map(|id| String::from_utf8(id.to_vec()).unwrap())
    };

    let mut guard = RequestValidator::new(LIMITS);
    assert_eq!(
        fault(&mut guard, head.as_bytes()),
        FramingError::ControlByteInValue
    );
    let whole = reported(&guard);

    let mut guard = RequestValidator::new(LIMITS);
    let refused = head
        .as_bytes()
        .chunks(1)
        .any(|piece| guard.scan(piece).stop.is_some());
    assert!(refused);
    assert_eq!(reported(&guard), whole);
    whole
}

#[test]
fn the_correlation_id_of_a_refused_head_is_read() {
    let id = correlation_id("Host: a\r\nX-Correlation-Id: 0190-ab.C_d\r\nAccept: */*\r\n");
    assert_eq!(id.as_deref(), Some("0190-ab.C_d"));
}

#[test]
fn whitespace_is_not_part_of_the_correlation_id() {
    assert_eq!(
        correlation_id("x-correlation-ID:  \tab \t\r\n").as_deref(),
        Some("ab")
    );
    assert_eq!(
        correlation_id("X-Correlation-Id:ab\r\n").as_deref(),
        Some("ab")
    );
}

#[test]
fn a_correlation_id_has_at_most_128_characters() {
    let id = "x".repeat(128);
    assert_eq!(
        correlation_id(&format!("X-Correlation-Id: {id}\r\n")),
        Some(id.clone())
    );
    assert_eq!(
        correlation_id(&format!("X-Correlation-Id: {id}x\r\n")),
        None
    );
}

#[test]
fn a_correlation_id_of_other_characters_is_not_read() {
    for value in ["", "  ", "a b", "a/b", "a,b", "a\tb", "\u{e9}"] {
        assert_eq!(
            correlation_id(&format!("X-Correlation-Id: {value}\r\n")),
            None,
            "{value:?}"
        );
    }
}

#[test]
fn the_first_of_two_correlation_ids_counts() {
    let two = "X-Correlation-Id: one\r\nX-Correlation-Id: two\r\n";
    assert_eq!(correlation_id(two).as_deref(), Some("one"));
    assert_eq!(
        correlation_id("X-Correlation-Id: a b\r\nX-Correlation-Id: two\r\n"),
        None
    );
}

#[test]
fn a_correlation_id_after_the_fault_is_not_read() {
    let mut guard = RequestValidator::new(LIMITS);
    fault(
        &mut guard,
        b"GET / HTTP/1.1\r\nX: \0\r\nX-Correlation-Id: ab\r\n\r\n",
    );
    assert_eq!(guard.correlation_id(), None);
}

#[test]
fn a_correlation_id_cut_by_the_fault_is_not_read() {
    let mut guard = RequestValidator::new(LIMITS);
    fault(
        &mut guard,
        b"GET / HTTP/1.1\r\nX-Correlation-Id: ab\0\r\n\r\n",
    );
    assert_eq!(guard.correlation_id(), None);
}

#[test]
fn the_correlation_id_of_a_good_head_is_discarded() {
    for size in [1, 1000] {
        let mut guard = RequestValidator::new(LIMITS);
        let good = b"GET / HTTP/1.1\r\nHost: a\r\nX-Correlation-Id: old\r\n\r\n";
        assert!(
            good.chunks(size)
                .all(|piece| guard.scan(piece).stop.is_none())
        );
        assert_eq!(
            fault(&mut guard, b"GET / HTTP/1.1\r\nX: \0\r\n"),
            FramingError::NulByte
        );
        assert_eq!(guard.correlation_id(), None);
    }
}

#[test]
fn a_correlation_id_outlives_its_input_buffer() {
    let mut guard = RequestValidator::new(LIMITS);
    let first = b"GET / HTTP/1.1\r\nX-Correlation-Id: kept\r\nHo";
    assert_eq!(
        guard.scan(first),
        Scan {
            accepted: first.len(),
            stop: None
        }
    );
    assert_eq!(
        fault(&mut guard, b"st : a\r\n"),
        FramingError::SpaceBeforeColon
    );
    assert_eq!(guard.correlation_id(), Some(b"kept".as_slice()));
}

#[test]
fn a_guard_names_the_current_part_of_a_request() {
    let reported = |guard: &RequestValidator| {
        (
            guard.between_messages(),
            guard.in_head(),
            guard.in_body(),
            guard.head_bytes_so_far(),
        )
    };
    let mut guard = RequestValidator::new(LIMITS);
    assert_eq!(reported(&guard), (true, false, false, 0));
    assert_eq!(guard.scan(b"\r\n").stop, None);
    assert_eq!(reported(&guard), (true, false, false, 2));
    assert_eq!(guard.scan(b"POST / HTTP/1.1\r\nHost").stop, None);
    assert_eq!(reported(&guard), (false, true, false, 23));
    assert_eq!(guard.scan(b": a\r\nContent-Length: 4\r\n\r\nab").stop, None);
    assert_eq!(reported(&guard), (false, false, true, 0));
    assert_eq!(guard.scan(b"cdG").stop, None);
    assert_eq!(reported(&guard), (false, true, false, 1));
    assert_eq!(guard.heads_seen(), 1);
}

#[test]
fn a_guard_names_the_refused_part() {
    let mut guard = RequestValidator::new(LIMITS);
    fault(&mut guard, b"GET / HTTP/1.1\r\nHost : a\r\n\r\n");
    assert!(guard.in_head() && !guard.in_body() && !guard.between_messages());

    let mut guard = RequestValidator::new(LIMITS);
    fault(
        &mut guard,
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx",
    );
    assert!(guard.in_body() && !guard.in_head() && !guard.between_messages());
    assert_eq!(guard.heads_seen(), 1);
}

#[test]
fn a_faulted_guard_stays_faulted() {
    let mut guard = RequestValidator::new(LIMITS);
    let stop = Some(Stop::FramingError(FramingError::BareLf));
    assert_eq!(guard.scan(b"\n").stop, stop);
    guard.resume_http();
    guard.pass_through();
    assert_eq!(guard.scan(GET), Scan { accepted: 0, stop });
    assert_eq!(guard.scan(b""), Scan { accepted: 0, stop });
    assert_eq!(guard.eof(), Err(FramingError::BareLf));
}

#[test]
fn http_continues_after_an_upgrade_that_was_declined() {
    let mut guard = RequestValidator::new(LIMITS);
    let both = [UPGRADE, GET].concat();
    let stop = Some(Stop::Upgrade);
    assert_eq!(
        guard.scan(&both),
        Scan {
            accepted: UPGRADE.len(),
            stop
        }
    );
    assert_eq!(guard.scan(GET), Scan { accepted: 0, stop });
    assert!(!guard.in_head() && !guard.in_body() && !guard.between_messages());

    guard.resume_http();
    assert!(guard.between_messages());
    assert_eq!(
        guard.scan(GET),
        Scan {
            accepted: GET.len(),
            stop: None
        }
    );
    assert_eq!(guard.heads_seen(), 2);
    assert_eq!(fault(&mut guard, b"\n"), FramingError::BareLf);
}

#[test]
fn all_bytes_pass_after_an_upgrade() {
    let mut guard = RequestValidator::new(LIMITS);
    assert_eq!(guard.scan(UPGRADE).stop, Some(Stop::Upgrade));
    guard.pass_through();
    assert_eq!(
        guard.scan(b"\0\n\r\xff"),
        Scan {
            accepted: 4,
            stop: None
        }
    );
    assert_eq!(guard.eof(), Ok(Eof::Tunnel));
}

#[test]
fn an_upgrade_that_was_not_asked_for_cannot_be_granted() {
    let mut guard = RequestValidator::new(LIMITS);
    assert_eq!(guard.scan(GET).stop, None);
    guard.pass_through();
    assert_eq!(fault(&mut guard, b"\0"), FramingError::NulByte);
}

#[test]
fn an_upgrade_is_asked_for_anew_by_each_request() {
    let mut guard = RequestValidator::new(LIMITS);
    assert_eq!(guard.scan(UPGRADE).stop, Some(Stop::Upgrade));
    guard.resume_http();
    assert_eq!(guard.scan(GET).stop, None);
    let options = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, x\r\n\r\n";
    assert_eq!(guard.scan(options).stop, None);
    assert_eq!(guard.scan(UPGRADE).stop, Some(Stop::Upgrade));
}

#[test]
fn the_end_of_a_client_is_clean_only_between_requests() {
    let eof = |bytes: &[u8]| {
        let mut guard = RequestValidator::new(LIMITS);
        let stop = guard.scan(bytes).stop;
        assert!(matches!(stop, None | Some(Stop::Upgrade)));
        guard.eof()
    };
    assert_eq!(eof(b""), Ok(Eof::Idle));
    assert_eq!(eof(b"\r\n"), Ok(Eof::Idle));
    assert_eq!(eof(GET), Ok(Eof::Idle));
    assert_eq!(eof(UPGRADE), Ok(Eof::Idle));
    assert_eq!(eof(b"G"), Err(FramingError::Truncated));
    assert_eq!(
        eof(b"GET / HTTP/1.1\r\nHost: a\r\n"),
        Err(FramingError::Truncated)
    );
    let body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx";
    assert_eq!(eof(body), Err(FramingError::Truncated));
}

#[test]
fn the_effect_of_an_upstreams_close_depends_on_its_place() {
    let eof = |bytes: &[u8]| {
        let mut guard = expecting(RequestKind::Upgrade, LIMITS);
        let stop = guard.scan(bytes).stop;
        assert!(matches!(stop, None | Some(Stop::Upgrade)));
        guard.eof()
    };
    assert_eq!(ResponseValidator::new(LIMITS).eof(), Ok(Eof::Idle));
    assert_eq!(eof(b""), Ok(Eof::Unanswered));
    assert_eq!(
        eof(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        Ok(Eof::Idle)
    );
    assert_eq!(eof(b"HTTP/1.1 200 OK\r\n\r\n"), Ok(Eof::BodyEnd));
    assert_eq!(eof(b"HTTP/1.1 200 OK\r\n\r\nhello"), Ok(Eof::BodyEnd));
    assert_eq!(eof(b"HTTP/1.1 101 X\r\n\r\n"), Ok(Eof::Tunnel));
    assert_eq!(eof(b"H"), Err(FramingError::Truncated));
    assert_eq!(eof(b"HTTP/1.1 200 OK\r\nX"), Err(FramingError::Truncated));
    assert_eq!(
        eof(b"HTTP/1.1 100 Continue\r\n\r\n"),
        Err(FramingError::Truncated)
    );
    let length = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx";
    assert_eq!(eof(length), Err(FramingError::Truncated));
    let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    assert_eq!(eof(chunks), Err(FramingError::Truncated));
}

#[test]
fn a_body_that_ended_with_the_connection_leaves_nothing_owed() {
    let mut guard = expecting(RequestKind::Other, LIMITS);
    assert_eq!(guard.scan(b"HTTP/1.1 200 OK\r\n\r\nhello").stop, None);
    assert_eq!(guard.eof(), Ok(Eof::BodyEnd));
    assert_eq!(guard.eof(), Ok(Eof::Idle));
}

#[test]
fn a_body_that_went_by_unseen_is_counted() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let mut guard = expecting(RequestKind::Other, LIMITS);
    assert!(!guard.skip_body(1), "there is no body yet");
    assert_eq!(guard.scan(head).stop, None);

    assert!(!guard.skip_body(11), "it is not so long");
    assert!(guard.skip_body(4));
    assert_eq!(guard.scan(b"read").stop, None);
    assert!(guard.in_body());
    assert!(guard.skip_body(2));
    assert!(guard.between_messages());
    assert!(!guard.skip_body(1), "it is over");

    let surplus = guard.scan(b"x");
    assert_eq!(
        surplus.stop,
        Some(Stop::FramingError(FramingError::UnexpectedData))
    );
}

#[test]
fn bodies_without_length_are_always_seen() {
    for head in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let mut guard = expecting(RequestKind::Other, LIMITS);
        assert_eq!(guard.scan(head).stop, None);
        assert!(guard.in_body() && !guard.skip_body(1));
    }
}

#[test]
fn an_upstream_must_not_speak_before_it_is_asked() {
    let mut guard = ResponseValidator::new(LIMITS);
    let stop = Some(Stop::FramingError(FramingError::UnexpectedData));
    assert_eq!(
        guard.scan(b"HTTP/1.1 408 X\r\n"),
        Scan { accepted: 0, stop }
    );
}

#[test]
fn one_connection_serves_many_responses() {
    let mut guard = ResponseValidator::new(LIMITS);
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for asked in 1..=3 {
        guard.expect(RequestKind::Other);
        assert!(guard.awaits_head() && guard.between_messages());
        assert_eq!(
            guard.scan(response),
            Scan {
                accepted: response.len(),
                stop: None
            }
        );
        assert!(!guard.awaits_head() && guard.between_messages());
        assert_eq!(guard.heads_seen(), asked);
    }
}

#[test]
fn interim_responses_are_counted_for_each_request() {
    let mut guard = ResponseValidator::new(LIMITS);
    for _ in 0..3 {
        guard.expect(RequestKind::Other);
        assert_eq!(guard.scan(&b"HTTP/1.1 103 X\r\n\r\n".repeat(16)).stop, None);
        assert!(guard.awaits_head());
        assert_eq!(guard.scan(b"HTTP/1.1 204 X\r\n\r\n").stop, None);
    }
}

#[test]
fn a_guard_names_the_current_part_of_a_response() {
    let reported = |guard: &ResponseValidator| {
        (
            guard.between_messages(),
            guard.in_head(),
            guard.in_body(),
            guard.head_bytes_so_far(),
        )
    };
    let mut guard = expecting(RequestKind::Other, LIMITS);
    assert_eq!(reported(&guard), (true, false, false, 0));
    assert_eq!(guard.scan(b"HTTP/1.1 200 OK\r\nX: y\r\nContent").stop, None);
    assert_eq!(reported(&guard), (false, true, false, 30));
    assert_eq!(guard.scan(b"-Length: 4\r\n\r\nab").stop, None);
    assert_eq!(reported(&guard), (false, false, true, 0));
    assert_eq!(guard.scan(b"cd").stop, None);
    assert_eq!(reported(&guard), (true, false, false, 0));
}

#[test]
fn a_tunnel_passes_everything() {
    let mut guard = expecting(RequestKind::Upgrade, LIMITS);
    assert_eq!(
        guard.scan(b"HTTP/1.1 101 X\r\n\r\n").stop,
        Some(Stop::Upgrade)
    );
    guard.pass_through();
    assert_eq!(
        guard.scan(b"\0\n"),
        Scan {
            accepted: 2,
            stop: None
        }
    );
    assert_eq!(guard.eof(), Ok(Eof::Tunnel));
}

#[test]
fn an_idle_guard_is_small() {
    assert!(
        size_of::<RequestValidator>() <= 128,
        "{}",
        size_of::<RequestValidator>()
    );
    assert!(
        size_of::<ResponseValidator>() <= 128,
        "{}",
        size_of::<ResponseValidator>()
    );
    assert!(
        size_of::<FramingError>() <= 12,
        "{}",
        size_of::<FramingError>()
    );
}

#[test]
fn every_fault_has_a_name_a_group_and_a_sentence() {
    let limit = FramingError::HeaderSize {
        actual: 8193,
        limit: 8192,
    };
    assert_eq!(limit.group(), FramingErrorKind::Limit);
    assert_eq!(limit.to_string(), "header size 8193 exceeds limit 8192");
    assert_eq!(FramingError::BareLf.group(), FramingErrorKind::Framing);
    assert_eq!(FramingError::BareLf.to_string(), "bare line feed");
    let names = [
        FramingError::BareLf,
        FramingError::BareCr,
        FramingError::NulByte,
        FramingError::ObsFold,
        FramingError::BadTarget,
        FramingError::Truncated,
        limit,
    ]
    .map(FramingError::as_str);
    assert_eq!(BTreeSet::from(names).len(), names.len());
}
