//! A `path`, `path-prefix` or `path-regex` condition.

mod regex;
pub(crate) mod regex_prefix;
mod sample;

use crate::path::{PathError, forgiving_path};
use crate::pattern_error::PatternError;
use crate::rank::narrow;
pub(crate) use regex::PathRegex;
use regex::REGEX_NEST_LIMIT;
pub use regex::RegexBudget;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Specificity of a regex: below an exact path, above every prefix.
const REGEX_SPECIFICITY: u32 = u32::MAX - 1;

/// A pattern of paths. Two patterns are equal if their texts are.
#[derive(Clone, Debug)]
pub struct PathPattern {
    kind: PathKind,
}

#[derive(Clone, Debug)]
pub(crate) enum PathKind {
    Exact(Box<str>),
    Prefix(Box<str>),
    Regex(PathRegex),
}

impl PathPattern {
    /// Matches exactly this path. The text is normalized first.
    ///
    /// # Errors
    /// [`PatternError::Path`] or [`PatternError::PathEnd`].
    pub fn exact(text: &str) -> Result<Self, PatternError> {
        let kind = PathKind::Exact(canonical(text)?);
        Ok(Self { kind })
    }

    /// `/api` matches `/api` and `/api/…` but not `/apix`; a prefix that ends in `/` matches every
    /// path that begins with it. The text is normalized first.
    ///
    /// # Errors
    /// [`PatternError::Path`] or [`PatternError::PathEnd`].
    pub fn prefix(text: &str) -> Result<Self, PatternError> {
        let kind = PathKind::Prefix(canonical(text)?);
        Ok(Self { kind })
    }

    /// Paths in which the regex finds a match; it is not anchored unless it contains `^` and `$`.
    /// The regex is applied to the canonical path, which is ASCII with upper-case escapes; classes
    /// such as `\d` are ASCII too.
    ///
    /// # Errors
    /// [`PatternError::RegexSyntax`], [`PatternError::RegexTooLarge`] (1 MiB compiled) or
    /// [`PatternError::RegexNotAscii`].
    pub fn regex(text: &str) -> Result<Self, PatternError> {
        Self::regex_within(text, &mut RegexBudget::default())
    }

    /// Like [`PathPattern::regex`], for one of several regexes that share a budget of memory.
    ///
    /// # Errors
    /// The errors of [`PathPattern::regex`], and [`PatternError::RegexesTooLarge`].
    pub fn regex_within(text: &str, budget: &mut RegexBudget) -> Result<Self, PatternError> {
        let kind = PathKind::Regex(PathRegex::compile(text, budget)?);
        Ok(Self { kind })
    }

    /// Returns true if `path`, in the form of [`canonical_path`](crate::path::canonical_path),
    /// matches.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match &self.kind {
            PathKind::Exact(text) => **text == *path,
            PathKind::Prefix(text) => has_prefix(path, text),
            PathKind::Regex(regex) => regex.is_match(path),
        }
    }

    /// The text of the condition; normalized for paths.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.kind {
            PathKind::Exact(text) | PathKind::Prefix(text) => text,
            PathKind::Regex(regex) => regex.as_str(),
        }
    }

    /// The text of each group of a regex in `path`, the whole match first; `None` if it does not
    /// match, and for other patterns.
    #[must_use]
    pub fn captures<'p>(&self, path: &'p str) -> Option<Vec<Option<&'p str>>> {
        match &self.kind {
            PathKind::Regex(regex) => regex.captures(path),
            PathKind::Exact(_) | PathKind::Prefix(_) => None,
        }
    }

    /// The index of the group of a regex with this number or name; 0 is the whole match.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<usize> {
        match &self.kind {
            PathKind::Regex(regex) => regex.group(name),
            PathKind::Exact(_) | PathKind::Prefix(_) => None,
        }
    }

    /// The setting of the condition: `path`, `path-prefix` or `path-regex`.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        match &self.kind {
            PathKind::Exact(_) => "path",
            PathKind::Prefix(_) => "path-prefix",
            PathKind::Regex(_) => "path-regex",
        }
    }

    /// Returns true if every path that matches `other` certainly matches this pattern too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (_, PathKind::Exact(text)) => self.matches(text),
            (PathKind::Prefix(wide), PathKind::Prefix(narrow)) => has_prefix(narrow, wide),
            (_, PathKind::Regex(_)) if self.covers_all() => true,
            _ => self == other,
        }
    }

    /// Returns true if every path matches: `path-prefix "/"`. The `*` of `OPTIONS *` is not a path.
    pub(crate) fn covers_all(&self) -> bool {
        matches!(&self.kind, PathKind::Prefix(text) if **text == *"/")
    }

    /// The path or prefix; `None` for a regex.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            PathKind::Exact(text) | PathKind::Prefix(text) => Some(text),
            PathKind::Regex(_) => None,
        }
    }

    /// Rank, greater than any less specific pattern's; 0 is reserved for no pattern.
    pub(crate) fn specificity(&self) -> u32 {
        match &self.kind {
            PathKind::Exact(_) => u32::MAX,
            PathKind::Regex(_) => REGEX_SPECIFICITY,
            PathKind::Prefix(text) => narrow(text.len()).min(REGEX_SPECIFICITY - 1),
        }
    }

    pub(crate) fn kind(&self) -> &PathKind {
        &self.kind
    }
}

/// The syntax tree of a regex, parsed as by [`PathPattern::regex`].
pub(crate) fn parse_regex(text: &str) -> Option<Hir> {
    let mut parser = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .nest_limit(REGEX_NEST_LIMIT)
        .build();
    parser.parse(text).ok()
}

fn has_prefix(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
}

/// Normalizes the path of a condition. An encoded separator is no error here, because a listener
/// may forward such paths.
fn canonical(text: &str) -> Result<Box<str>, PatternError> {
    if text.contains(['?', '#']) {
        return Err(PatternError::PathEnd);
    }
    if !text.starts_with('/') {
        return Err(PathError::NotAbsolute.into());
    }
    match forgiving_path(text) {
        (path, None | Some(PathError::EncodedSlash | PathError::Backslash)) => Ok(path.into()),
        (_, Some(fault)) => Err(fault.into()),
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.setting() == other.setting() && self.as_str() == other.as_str()
    }
}

impl Eq for PathPattern {}

impl Hash for PathPattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.setting().hash(state);
        self.as_str().hash(state);
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.setting(), self.as_str())
    }
}
