//! Paths in which a regex finds a match, made from its syntax tree.

use crate::path::{PATH, canonical_path};
use crate::path_pattern::{PathPattern, parse_regex};
use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum number of texts that are kept of one part of a regex.
const MAX_TEXTS: usize = 24;
/// Maximum length of a text, in bytes.
const MAX_TEXT_BYTES: usize = 512;
/// Repetitions beyond the least number in a text of a part that may be repeated without end.
const FURTHER_REPETITIONS: usize = 8;
/// Preferred samples of a character class, if it contains them.
const CLASS_LETTERS: &[u8] = b"a1/Z_-.~0m";
/// Maximum number of samples of a class.
const MAX_CLASS_LETTERS: usize = 3;

impl PathPattern {
    /// Canonical paths that match a regex: a sample, without an order, at most `max`. Empty for an
    /// exact path and a prefix, and for a regex that matches no canonical path of the sample.
    #[must_use]
    pub fn sample(&self, max: usize) -> Vec<String> {
        if self.text().is_some() {
            return Vec::new();
        }
        let texts = parse_regex(self.as_str()).map_or_else(Vec::new, |tree| texts(&tree));
        let mut paths: Vec<String> = Vec::new();
        for text in texts {
            let Ok(text) = String::from_utf8(text) else {
                continue;
            };
            let slash = if text.starts_with('/') { "" } else { "/" };
            let around = [
                format!("{slash}{text}"),
                format!("/p{slash}{text}"),
                format!("{slash}{text}/s"),
                format!("{slash}{text}s"),
            ];
            for path in around {
                let is_canonical = canonical_path(&path).is_ok_and(|canonical| canonical == path);
                if is_canonical && self.matches(&path) && !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths.truncate(max);
        paths
    }
}

/// Sample texts matched by `tree` if its look-arounds permit; at least one, which may be empty.
fn texts(tree: &Hir) -> Vec<Vec<u8>> {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![Vec::new()],
        HirKind::Literal(literal) => vec![literal.0.to_vec()],
        HirKind::Class(class) => letters(class).into_iter().map(|one| vec![one]).collect(),
        HirKind::Capture(group) => texts(&group.sub),
        HirKind::Concat(parts) => concatenations(&parts.iter().map(texts).collect::<Vec<_>>()),
        HirKind::Alternation(choices) => {
            let each = (MAX_TEXTS / choices.len().max(1)).max(1);
            let all = choices
                .iter()
                .flat_map(|one| texts(one).into_iter().take(each));
            all.take(MAX_TEXTS).collect()
        }
        HirKind::Repetition(repetition) => {
            let least = repetition.min as usize;
            let most = match repetition.max {
                Some(max) => max as usize,
                None => least.saturating_add(FURTHER_REPETITIONS),
            };
            let sub = texts(&repetition.sub);
            // The greatest number of repetitions precedes repetitions of further letters.
            let counts = [
                (least, 1),
                (most, 1),
                (least, MAX_TEXTS),
                (least.saturating_add(1), MAX_TEXTS),
            ];
            let counts = counts.into_iter().filter(|(count, _)| *count <= most);
            let mut repeated: Vec<Vec<u8>> = Vec::new();
            for (count, max) in counts {
                for one in sub.iter().take(if count == 0 { 1 } else { max }) {
                    let text = one.repeat(count.min(MAX_TEXT_BYTES / one.len().max(1)));
                    if !repeated.contains(&text) {
                        repeated.push(text);
                    }
                }
            }
            repeated.truncate(MAX_TEXTS);
            repeated
        }
    }
}

/// One text of each part in turn: first the first of each, then each further one of every part, and
/// then combinations.
fn concatenations(parts: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
    let mut all = vec![join(parts, |_, _| 0)];
    for (varied, part) in parts.iter().enumerate() {
        let others = (1..part.len())
            .map(|choice| join(parts, |at, _| if at == varied { choice } else { 0 }));
        all.extend(others);
    }
    all.extend((1..MAX_TEXTS).map(|turn| join(parts, |_, length| turn % length.max(1))));
    all.retain(|one| one.len() <= MAX_TEXT_BYTES);
    all.truncate(MAX_TEXTS);
    all
}

fn join(parts: &[Vec<Vec<u8>>], choice: impl Fn(usize, usize) -> usize) -> Vec<u8> {
    let chosen = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| part.get(choice(at, part.len())));
    chosen.flatten().copied().collect()
}

fn letters(class: &Class) -> Vec<u8> {
    let has = |byte: u8| match class {
        Class::Bytes(class) => class
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&byte)),
        Class::Unicode(class) => class
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&char::from(byte))),
    };
    let known = CLASS_LETTERS.iter().copied().filter(|byte| has(*byte));
    let known: Vec<u8> = known.take(MAX_CLASS_LETTERS).collect();
    if known.is_empty() {
        return (0..=u8::MAX)
            .filter(|byte| PATH.has(*byte) && has(*byte))
            .take(1)
            .collect();
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_of_a_regex_matches_it() {
        for regex in [
            "^/a",
            "b$",
            ".",
            r"^/v\d+/users$",
            r"\.(png|jpe?g)$",
            "^/(a|b)/[^/]+/c",
            "(?i)X",
            "^/x{3,5}$",
            "^/[0-9a-f]{8}-[0-9a-f]{4}$",
            "a/a",
            "^/api(/.*)?$",
        ] {
            let pattern = PathPattern::regex(regex).unwrap();
            let sample = pattern.sample(8);
            assert!(!sample.is_empty(), "{regex}");
            assert!(
                sample.iter().all(|path| pattern.matches(path)),
                "{regex}: {sample:?}"
            );
        }
        assert_eq!(PathPattern::prefix("/a").unwrap().sample(8), [""; 0]);
        assert_eq!(PathPattern::regex("^x").unwrap().sample(8), [""; 0]);
    }

    #[test]
    fn each_branch_of_a_regex_is_in_its_sample() {
        let sample = PathPattern::regex(r"^/(cart|shop|pay)(/done)?$")
            .unwrap()
            .sample(24);
        for path in ["/cart", "/shop", "/pay", "/cart/done"] {
            assert!(sample.iter().any(|one| one == path), "{path} in {sample:?}");
        }
    }
}
