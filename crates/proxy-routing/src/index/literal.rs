//! Literals that a path must contain for a regex to match.

use crate::path_pattern::parse_regex;
use aho_corasick::automaton::OverlappingState;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, StartKind};
use regex_syntax::hir::Look;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use std::collections::BTreeMap;

/// Maximum number of texts in a set, for which [`FoundTexts`] has marks.
pub(super) const MAX_LITERALS: usize = 1024;
/// Minimum length of a literal, in bytes; shorter ones occur in nearly every path.
const MIN_LITERAL_BYTES: usize = 2;

/// The position of the literal in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LiteralPosition {
    /// At its start.
    Start,
    /// Somewhere.
    Anywhere,
}

/// A text without which the regex cannot match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) text: Vec<u8>,
    pub(super) place: LiteralPosition,
}

/// Finds the longest literal that is easily determined, if any.
pub(super) fn literal_of(regex: &str) -> Option<Literal> {
    let hir = parse_regex(regex)?;
    let mut extractor = Extractor::new();
    let prefixes = extractor.extract(&hir);
    let suffixes = extractor.kind(ExtractKind::Suffix).extract(&hir);
    let prefix = prefixes.longest_common_prefix().unwrap_or_default();
    let suffix = suffixes.longest_common_suffix().unwrap_or_default();
    let anchored = hir.properties().look_set_prefix().contains(Look::Start);
    let (text, place) = if anchored && MIN_LITERAL_BYTES <= prefix.len() {
        (prefix, LiteralPosition::Start)
    } else if prefix.len() < suffix.len() {
        (suffix, LiteralPosition::Anywhere)
    } else {
        (prefix, LiteralPosition::Anywhere)
    };
    let text = text.to_vec();
    (MIN_LITERAL_BYTES <= text.len()).then_some(Literal { text, place })
}

/// Finds the regexes that may match a path.
#[derive(Debug)]
pub(super) struct LiteralSet {
    automaton: AhoCorasick,
    anchored: Anchored,
    /// For each text, the ids stored for it.
    owners: Vec<Vec<usize>>,
}

impl LiteralSet {
    /// Takes at most [`MAX_LITERALS`] texts; `None` if no automaton can hold them.
    pub(super) fn new(
        texts: BTreeMap<Vec<u8>, Vec<usize>>,
        place: LiteralPosition,
    ) -> Option<Self> {
        let (anchored, start_kind) = match place {
            LiteralPosition::Start => (Anchored::Yes, StartKind::Anchored),
            LiteralPosition::Anywhere => (Anchored::No, StartKind::Unanchored),
        };
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .start_kind(start_kind)
            .build(texts.keys())
            .ok()?;
        Some(Self {
            automaton,
            anchored,
            owners: texts.into_values().collect(),
        })
    }

    /// Calls `visit` once for each text that occurs in `path`, with its ids.
    pub(super) fn owners_in<'a>(&'a self, path: &str, mut visit: impl FnMut(&'a [usize])) {
        let input = Input::new(path).anchored(self.anchored);
        let mut state = OverlappingState::start();
        let mut met = FoundTexts::default();
        while self
            .automaton
            .try_find_overlapping(input.clone(), &mut state)
            .is_ok()
            && let Some(found) = state.get_match()
        {
            let text = found.pattern().as_usize();
            if let Some(owners) = self.owners.get(text)
                && met.is_new(text)
            {
                visit(owners);
            }
        }
    }
}

/// The texts already found in this path, where one may occur a thousand times.
#[derive(Debug, Default)]
struct FoundTexts([u64; MAX_LITERALS / 64]);

impl FoundTexts {
    fn is_new(&mut self, text: usize) -> bool {
        let mark = 1 << (text % 64);
        let word = self.0.get_mut(text / 64);
        word.is_some_and(|word| std::mem::replace(word, *word | mark) & mark == 0)
    }
}
