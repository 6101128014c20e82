//! A compiled `path-regex`, and the memory that the regexes of one configuration may take.

use crate::pattern_error::PatternError;
use regex_automata::meta::{self, Config};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternID};
use std::sync::Arc;

/// Maximum size of each compiled automaton of a regex, in bytes.
const REGEX_SIZE_LIMIT: usize = 1 << 20;
/// Maximum nesting of groups in a regex.
pub(crate) const REGEX_NEST_LIMIT: u32 = 64;

/// Maximum size of a regex's search cache on one thread, in bytes.
const LARGE_CACHE_LIMIT: usize = 1 << 18;
/// Cache limit of a regex after the first [`LARGE_CACHES`] of a configuration, which bounds the sum
/// of all caches.
const SMALL_CACHE_LIMIT: usize = 1 << 13;
const LARGE_CACHES: usize = 64;

/// Maximum memory of all regexes of a configuration, compiled and with their search caches on one
/// thread, in bytes.
const MAX_BYTES: usize = 72 << 20;

/// The memory that is left for further regexes of a configuration.
///
/// The default is 72 MiB: about 4 400 plain regexes.
#[derive(Clone, Debug)]
pub struct RegexBudget {
    left: usize,
    large_caches: usize,
    is_spent: bool,
}

/// A compiled regex. A clone shares the automata and has a separate search cache.
#[derive(Clone, Debug)]
pub(crate) struct PathRegex {
    text: Arc<str>,
    compiled: meta::Regex,
}

impl Default for RegexBudget {
    fn default() -> Self {
        Self {
            left: MAX_BYTES,
            large_caches: LARGE_CACHES,
            is_spent: false,
        }
    }
}

impl RegexBudget {
    /// Maximum size of a search cache of the next regex, in bytes.
    fn cache_limit(&self) -> usize {
        match self.large_caches {
            0 => SMALL_CACHE_LIMIT,
            _ => LARGE_CACHE_LIMIT,
        }
    }

    /// Returns true if no further regex is compiled.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    fn spend(&mut self, bytes: usize) -> Result<(), PatternError> {
        self.large_caches = self.large_caches.saturating_sub(1);
        let left = self.left.checked_sub(bytes);
        self.is_spent = left.is_none();
        self.left = left.unwrap_or_default();
        left.map(drop)
            .ok_or(PatternError::RegexesTooLarge(MAX_BYTES))
    }
}

impl PathRegex {
    /// # Errors
    /// [`PatternError::RegexSyntax`], [`PatternError::RegexTooLarge`],
    /// [`PatternError::RegexNotAscii`], or [`PatternError::RegexesTooLarge`] without compiling once
    /// the budget is spent.
    pub(crate) fn compile(text: &str, budget: &mut RegexBudget) -> Result<Self, PatternError> {
        if budget.is_spent {
            return Err(PatternError::RegexesTooLarge(MAX_BYTES));
        }
        if !text.is_ascii() {
            return Err(PatternError::RegexNotAscii);
        }
        let cache_limit = budget.cache_limit();
        let config = Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .utf8_empty(false)
            .nfa_size_limit(Some(REGEX_SIZE_LIMIT))
            .hybrid_cache_capacity(cache_limit)
            // The backtracker has a separate cache, too large beyond the first regexes.
            .backtrack(cache_limit == LARGE_CACHE_LIMIT);
        let syntax = syntax::Config::new()
            .unicode(false)
            .utf8(false)
            .nest_limit(REGEX_NEST_LIMIT);
        let compiled = meta::Builder::new()
            .configure(config)
            .syntax(syntax)
            .build(text);
        match compiled {
            Ok(compiled) => {
                budget.spend(compiled.memory_usage().saturating_add(cache_limit))?;
                let text = Arc::from(text);
                Ok(Self { text, compiled })
            }
            Err(fault) => {
                let Some(limit) = fault.size_limit() else {
                    return Err(PatternError::RegexSyntax(syntax_text(&fault)));
                };
                // The failed attempt took as much time and memory as the largest regex within the
                // limit.
                budget.spend(limit)?;
                Err(PatternError::RegexTooLarge(limit))
            }
        }
    }

    pub(crate) fn is_match(&self, path: &str) -> bool {
        self.compiled.is_match(Input::new(path.as_bytes()))
    }

    /// The text of each group in `path`, the whole match first; `None` if it does not match.
    pub(crate) fn captures<'p>(&self, path: &'p str) -> Option<Vec<Option<&'p str>>> {
        let mut captures = self.compiled.create_captures();
        self.compiled
            .captures(Input::new(path.as_bytes()), &mut captures);
        let groups = captures.iter();
        let texts = groups.map(|group| group.and_then(|span| path.get(span.range())));
        captures.is_match().then(|| texts.collect())
    }

    /// The index of the group with this number or name.
    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        let groups = self.compiled.group_info();
        match name.parse::<usize>() {
            Ok(index) => (index < groups.group_len(PatternID::ZERO)).then_some(index),
            Err(_) => groups.to_index(PatternID::ZERO, name),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

fn syntax_text(fault: &meta::BuildError) -> String {
    match fault.syntax_error() {
        Some(fault) => fault.to_string(),
        None => fault.to_string(),
    }
}
