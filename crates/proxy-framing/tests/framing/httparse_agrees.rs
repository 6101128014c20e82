//! httparse accepts every message that a validator accepts, with the same number of fields.

use httparse::{EMPTY_HEADER, Request, Response, Status};
use proxy_framing::{HeadLimits, RequestKind, RequestValidator};

use crate::cases::LIMITS;
use crate::drive::{Guard, expecting};
use crate::tables;

/// Passes the bytes one by one to `guard`, and every prefix of an accepted head to `parse`: each
/// prefix must be incomplete, the whole complete at its last byte and no earlier.
fn check_prefixes<G: Guard>(
    guard: &mut G,
    bytes: &[u8],
    heads: impl Fn(&G) -> u64,
    parse: impl Fn(&[u8]) -> Status<usize>,
) {
    let mut seen = heads(guard);
    let mut head = Vec::new();
    for &byte in bytes {
        let within = guard.between_messages() || !head.is_empty();
        if guard.scan(&[byte]).accepted == 0 {
            return;
        }
        if !within {
            continue;
        }
        head.push(byte);
        let parsed = parse(&head);
        if heads(guard) == seen {
            assert!(parsed.is_partial(), "{}", head.escape_ascii());
        } else {
            assert_eq!(
                parsed,
                Status::Complete(head.len()),
                "{}",
                head.escape_ascii()
            );
            seen = heads(guard);
            head.clear();
        }
    }
}

fn field_count(head: &[u8]) -> usize {
    let lines = head
        .trim_ascii_start()
        .windows(2)
        .filter(|pair| pair == b"\r\n")
        .count();
    lines.saturating_sub(2)
}

pub(crate) fn check_request(bytes: &[u8], limits: HeadLimits) {
    let mut guard = RequestValidator::new(limits);
    check_prefixes(&mut guard, bytes, RequestValidator::heads_seen, |head| {
        let mut headers = [EMPTY_HEADER; 128];
        let mut request = Request::new(&mut headers);
        let parsed = request.parse(head).unwrap_or_else(|error| {
            panic!("httparse: {error} in {}", head.escape_ascii());
        });
        if parsed.is_complete() {
            assert_eq!(
                request.headers.len(),
                field_count(head),
                "{}",
                head.escape_ascii()
            );
            let target = request.path.unwrap();
            let is_visible = target.bytes().all(|byte| byte.is_ascii_graphic());
            assert!(is_visible && !target.contains('#'), "{target}");
            assert!(request.method.unwrap().parse::<http::Method>().is_ok());
        }
        parsed
    });
}

pub(crate) fn check_response(bytes: &[u8], kind: RequestKind, limits: HeadLimits) {
    let mut guard = expecting(kind, limits);
    check_prefixes(
        &mut guard,
        bytes,
        proxy_framing::ResponseValidator::heads_seen,
        |head| {
            let mut headers = [EMPTY_HEADER; 128];
            let mut response = Response::new(&mut headers);
            let parsed = response.parse(head).unwrap_or_else(|error| {
                panic!("httparse: {error} in {}", head.escape_ascii());
            });
            if parsed.is_complete() {
                assert_eq!(
                    response.headers.len(),
                    field_count(head),
                    "{}",
                    head.escape_ascii()
                );
            }
            parsed
        },
    );
}

#[test]
fn httparse_accepts_every_request_head_that_the_validator_accepts() {
    for (_, _, bytes) in tables::requests() {
        check_request(&bytes, LIMITS);
    }
}

#[test]
fn httparse_accepts_every_response_head_that_the_validator_accepts() {
    for (_, kind, _, bytes) in tables::responses() {
        check_response(bytes, kind, LIMITS);
    }
}

#[test]
fn httparse_agrees_on_every_byte_at_every_position_of_a_request_head() {
    let head = b"GET http://a:1/b?c HTTP/1.1\r\nHost: a:1\r\nX-y: z \r\n\r\n";
    for position in 0..head.len() {
        for byte in 0..=u8::MAX {
            let mut changed = head.to_vec();
            if let Some(slot) = changed.get_mut(position) {
                *slot = byte;
            }
            check_request(&changed, LIMITS);
        }
    }
}

#[test]
fn httparse_agrees_on_every_byte_at_every_position_of_a_response_head() {
    let head = b"HTTP/1.1 200 OK\r\nX-y: z \r\nContent-Length: 0\r\n\r\n";
    for position in 0..head.len() {
        for byte in 0..=u8::MAX {
            let mut changed = head.to_vec();
            if let Some(slot) = changed.get_mut(position) {
                *slot = byte;
            }
            check_response(&changed, RequestKind::Other, LIMITS);
        }
    }
}
