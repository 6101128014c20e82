//! The result does not depend on how a stream is divided; tested with generated streams.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use proptest::{prop_assert_eq, proptest};
use proxy_framing::{HeadLimits, RequestKind, RequestValidator};

use crate::cases::{self, LIMITS};
use crate::drive::{self, drive, expecting};
use crate::tables;

const START_LINES: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\n",
    b"GET /a?b HTTP/1.1\r\n",
    b"POST /p HTTP/1.1\r\n",
    b"OPTIONS * HTTP/1.1\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n",
    b"GET http://a:1/ HTTP/1.0\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 101 X\r\n",
    b"HTTP/1.1 100\r\n",
    b"HTTP/1.0 204 No Content\r\n",
];

const FIELDS: &[&[u8]] = &[
    b"Host: a\r\n",
    b"Host: a.example:8080\r\n",
    b"Host: [::1]:80 \r\n",
    b"Content-Length: 3\r\n",
    b"content-length:0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding:\tChunked \r\n",
    b"Connection: upgrade, x\r\n",
    b"Connection: keep-alive\r\n",
    b"Upgrade: x\r\n",
    b"X-Correlation-Id: 12\r\n",
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\n",
    b"X_1: \xe9\t\r\n",
    b"Accept:*/*\r\n",
];

/// Parts of messages, whole and broken.
const PARTS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"Host: a\r\n",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"X:",
    b"\r\n",
    b"\r",
    b"\n",
    b" ",
    b":",
    b"abc",
    b"3\r\nabc\r\n",
    b"0\r\n",
    b"0\r\n\r\n",
    b"1;a=\"b\" ;c\r\n",
    b"\0",
    b"\x7f",
];

/// A stream: parts in any order, a head of known lines with its continuation, or a case of the
/// tables; with some bytes changed.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let cases = tables::requests().into_iter().map(|case| case.2);
    let answers = tables::responses().into_iter().map(|case| case.3.to_vec());
    let cases = cases.chain(answers).collect::<Vec<_>>();
    let parts = || vec(select(PARTS), 0..12).prop_map(|parts| parts.concat());
    let head = (select(START_LINES), vec(select(FIELDS), 0..6), parts()).prop_map(
        |(line, fields, rest)| [line, fields.concat().as_slice(), b"\r\n", &rest].concat(),
    );
    let changes = vec((any::<Index>(), any::<u8>()), 0..3);
    (
        prop_oneof![parts(), head.clone(), head, select(cases)],
        changes,
    )
        .prop_map(|(mut bytes, changes)| {
            for (place, byte) in changes {
                let len = bytes.len().max(1);
                if let Some(slot) = bytes.get_mut(place.index(len)) {
                    *slot = byte;
                }
            }
            bytes
        })
}

/// Limits of every size that matters for such short streams.
fn limits() -> impl Strategy<Value = HeadLimits> {
    let small =
        (0..80_u32, 0..6_u32, 0..20_u32, 0..70_u32, 0..12_u32).prop_map(|sizes| HeadLimits {
            max_head_bytes: sizes.0,
            max_header_count: sizes.1,
            max_name_bytes: sizes.2,
            max_value_bytes: sizes.3,
            max_target_bytes: sizes.4,
        });
    prop_oneof![proptest::strategy::Just(LIMITS), small]
}

fn kind() -> impl Strategy<Value = RequestKind> {
    select(
        &[
            RequestKind::Head,
            RequestKind::Connect,
            RequestKind::Upgrade,
            RequestKind::Other,
        ][..],
    )
}

/// `bytes` divided at these positions.
fn pieces<'a>(bytes: &'a [u8], places: &[Index]) -> Vec<&'a [u8]> {
    let mut places = places
        .iter()
        .map(|place| place.index(bytes.len() + 1))
        .collect::<Vec<_>>();
    places.sort_unstable();
    let mut rest = bytes;
    let mut taken = 0;
    let mut pieces = Vec::new();
    for place in places {
        let (piece, after) = rest.split_at(place - taken);
        pieces.push(piece);
        rest = after;
        taken = place;
    }
    pieces.push(rest);
    pieces
}

proptest! {
    #![proptest_config(cases::tries(4096))]

    #[test]
    fn requests_fare_the_same_however_they_are_cut(
        bytes in stream(),
        limits in limits(),
        places in vec(any::<Index>(), 0..6),
    ) {
        let whole = drive::request(&bytes, limits);
        let cut = drive(&mut RequestValidator::new(limits), pieces(&bytes, &places));
        prop_assert_eq!(cut, whole);
        let single = drive(&mut RequestValidator::new(limits), bytes.chunks(1));
        prop_assert_eq!(single, whole);
    }

    #[test]
    fn responses_fare_the_same_however_they_are_cut(
        bytes in stream(),
        limits in limits(),
        kind in kind(),
        places in vec(any::<Index>(), 0..6),
    ) {
        let whole = drive::response(&bytes, kind, limits);
        let cut = drive(&mut expecting(kind, limits), pieces(&bytes, &places));
        prop_assert_eq!(cut, whole);
        let single = drive(&mut expecting(kind, limits), bytes.chunks(1));
        prop_assert_eq!(single, whole);
    }
}
