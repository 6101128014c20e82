//! Every case of the tables: in one piece, in every two pieces, and byte by byte.

use std::collections::BTreeSet;

use proxy_framing::RequestValidator;

use crate::cases::{LIMITS, RequestCase, ResponseCase};
use crate::drive::{self, Outcome, drive, expecting};
use crate::{legal_requests, legal_responses, refused_bodies, refused_fields};
use crate::{refused_lengths, refused_lines, refused_responses};

/// All cases of requests; refused bodies get their head.
pub(crate) fn requests() -> Vec<(&'static str, crate::cases::Verdict, Vec<u8>)> {
    let whole = [
        legal_requests::HEADS,
        legal_requests::TARGETS,
        legal_requests::METHODS,
        legal_requests::BODIES,
        legal_requests::UPGRADES,
        refused_lines::LINES,
        refused_fields::FIELDS,
        refused_fields::HOSTS,
        refused_lengths::LENGTHS,
        refused_lengths::CODINGS,
    ];
    let owned = |head: &'static [u8]| {
        move |&(name, verdict, bytes): &RequestCase| (name, verdict, [head, bytes].concat())
    };
    let mut cases = whole.concat().iter().map(owned(b"")).collect::<Vec<_>>();
    let bodies = [refused_bodies::CHUNKS, refused_bodies::TRAILERS].concat();
    cases.extend(bodies.iter().map(owned(refused_bodies::HEAD)));
    cases
}

/// All cases of responses.
pub(crate) fn responses() -> Vec<ResponseCase> {
    [
        legal_responses::RESPONSES,
        refused_responses::LINES,
        refused_responses::MESSAGES,
    ]
    .concat()
}

#[test]
fn there_are_enough_cases_and_no_two_have_one_name() {
    let requests = requests();
    let responses = responses();
    assert!(200 <= requests.len(), "{} requests", requests.len());
    assert!(80 <= responses.len(), "{} responses", responses.len());

    assert_eq!(
        repeated(requests.iter().map(|case| case.0)),
        Vec::<&str>::new()
    );
    assert_eq!(
        repeated(responses.iter().map(|case| case.0)),
        Vec::<&str>::new()
    );
}

fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

#[test]
fn every_request_gets_its_verdict() {
    for (name, verdict, bytes) in requests() {
        assert_eq!(drive::request(&bytes, LIMITS).1, verdict, "{name}");
    }
}

#[test]
fn every_response_gets_its_verdict() {
    for (name, kind, verdict, bytes) in responses() {
        assert_eq!(drive::response(bytes, kind, LIMITS).1, verdict, "{name}");
    }
}

#[test]
fn a_request_is_read_the_same_for_every_split() {
    for (name, _, bytes) in requests() {
        let whole = drive::request(&bytes, LIMITS);
        for outcome in cuts(&bytes, |pieces| {
            drive(&mut RequestValidator::new(LIMITS), pieces.iter().copied())
        }) {
            assert_eq!(outcome, whole, "{name}");
        }
    }
}

#[test]
fn a_response_is_read_the_same_for_every_split() {
    for (name, kind, _, bytes) in responses() {
        let whole = drive::response(bytes, kind, LIMITS);
        for outcome in cuts(bytes, |pieces| {
            drive(&mut expecting(kind, LIMITS), pieces.iter().copied())
        }) {
            assert_eq!(outcome, whole, "{name}");
        }
    }
}

fn cuts(bytes: &[u8], mut run: impl FnMut(&[&[u8]]) -> Outcome) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for at in 0..=bytes.len() {
        let (a, b) = bytes.split_at(at);
        outcomes.push(run(&[a, b]));
    }
    for size in [1, 2, 3, 7] {
        outcomes.push(run(&bytes.chunks(size).collect::<Vec<_>>()));
    }
    outcomes
}
