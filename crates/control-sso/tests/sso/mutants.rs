//! Mutations of genuine responses: an accepted one always has the signed contents.

use crate::fixture::Fixture;
use control_sso::saml::Claims;
use roxmltree::Document;
use std::ops::Range;
use std::thread;

const MUTANTS: u64 = 24_000;
const THREADS: u64 = 2;
const SOURCES: &[&str] = &[
    "pysaml2-assertion",
    "pysaml2-response",
    "pysaml2-both",
    "samlify-assertion",
    "samlify-both",
    "okta",
    "entra",
    "ecdsa-p256",
];
/// Names that known attacks use.
const NAMES: &[&str] = &[
    "Assertion",
    "Response",
    "Signature",
    "Subject",
    "NameID",
    "Extensions",
    "Object",
];
const VALUES: &[&str] = &["admin", "evil", "_request-1", "#evil", "", "2.0"];

/// xorshift64*, with the same mutations in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap();
        usize::try_from(self.next() % end).unwrap()
    }

    fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Returns the ranges of elements in the source; none if it is not well-formed.
fn elements(text: &str) -> Vec<Range<usize>> {
    let Ok(document) = Document::parse(text) else {
        return Vec::new();
    };
    let all = document.descendants().filter(roxmltree::Node::is_element);
    all.map(|node| node.range()).collect()
}

fn attribute_values(text: &str) -> Vec<Range<usize>> {
    let Ok(document) = Document::parse(text) else {
        return Vec::new();
    };
    let nodes = document.descendants();
    let all = nodes.flat_map(|node| {
        node.attributes()
            .map(|own| own.range_value())
            .collect::<Vec<_>>()
    });
    all.collect()
}

fn mutate(text: &str, foreign: &str, random: &mut Random) -> String {
    let all = elements(text);
    if all.is_empty() {
        return text.to_owned();
    }
    let one = random.choose(&all).clone();
    let other = random.choose(&all).clone();
    let part = text[one.clone()].to_owned();
    let mut out = text.to_owned();
    match random.below(12) {
        0 => out.replace_range(one, ""),
        1 => out.insert_str(one.start, &part),
        // Moves or copies an element before, into or after another one.
        2 => out.insert_str(other.start, &part),
        3 => out.insert_str(other.end, &part),
        4 => {
            let place = text[other.clone()]
                .find('>')
                .map_or(other.end, |end| other.start + end + 1);
            out.insert_str(place, &part);
        }
        // Wraps an element, or puts a signed one below a new one with its ID.
        5 => {
            let name = random.choose(NAMES);
            let wrapped = format!(
                "<w:{name} xmlns:w=\"urn:oasis:names:tc:SAML:2.0:assertion\" ID=\"evil\">{part}</w:{name}>"
            );
            out.replace_range(one, &wrapped);
        }
        6 => {
            let name = random.choose(NAMES);
            if let Some(end) = part.find([' ', '>', '/']) {
                let changed = part.replacen(&part[1..end], name, 1);
                out.replace_range(one, &changed);
            }
        }
        7 => {
            let values = attribute_values(text);
            if !values.is_empty() {
                out.replace_range(
                    random.choose(&values).clone(),
                    random.choose::<&str>(VALUES),
                );
            }
        }
        // Inserts an element of a response that another key has signed.
        8 => {
            let others = elements(foreign);
            let theirs = foreign[random.choose(&others).clone()].to_owned();
            out.replace_range(one, &theirs);
        }
        9 => out.insert_str(
            one.end,
            random.choose::<&str>(&["<!---->", "<?a b?>", "<![CDATA[x]]>", "evil", "&#13;"]),
        ),
        10 => {
            for (from, to) in [("alice", "admin"), ("bob", "admin"), ("student", "admin")] {
                if random.below(2) == 0 {
                    out = out.replacen(from, to, 1);
                }
            }
        }
        _ => {
            let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
            let place = *random.choose(&places);
            if text.as_bytes()[place].is_ascii() {
                let byte = char::from(u8::try_from(32 + random.below(95)).unwrap());
                out.replace_range(place..=place, &byte.to_string());
            }
        }
    }
    out
}

/// Runs a part of the mutations; returns the number of accepted responses.
fn run(fixtures: &[(Fixture, Claims)], part: u64) -> u64 {
    let foreign = &Fixture::load("simplesamlphp").response;
    let mut accepted = 0;
    for number in (part..MUTANTS).step_by(usize::try_from(THREADS).unwrap()) {
        let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (fixture, genuine) = random.choose(fixtures);
        let mut text = fixture.response.clone();
        for _ in 0..=random.below(4) {
            text = mutate(&text, foreign, &mut random);
        }
        if let Ok(claims) = fixture.accept(text.as_bytes()) {
            assert_eq!(claims, *genuine, "mutant {number}: {text}");
            accepted += 1;
        }
    }
    accepted
}

#[test]
fn every_accepted_mutant_asserts_the_signed_content() {
    let loaded = SOURCES.iter().map(|name| {
        let fixture = Fixture::load(name);
        let claims = fixture.accept(fixture.response.as_bytes()).unwrap();
        (fixture, claims)
    });
    let fixtures: Vec<(Fixture, Claims)> = loaded.collect();
    let accepted: u64 = thread::scope(|scope| {
        let runs = (0..THREADS).map(|part| {
            scope.spawn({
                let fixtures = &fixtures;
                move || run(fixtures, part)
            })
        });
        let runs: Vec<_> = runs.collect();
        runs.into_iter().map(|run| run.join().unwrap()).sum()
    });
    // Some mutations must be harmless: otherwise the responses may be refused for another reason.
    assert!(
        MUTANTS / 200 < accepted && accepted < MUTANTS / 4,
        "{accepted}"
    );
}
