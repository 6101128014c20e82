//! A value as it was written, and why it will not do.

use std::fmt;

/// A value as it was written, before anyone knows what it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw<'a> {
    /// Text, quoted or bare.
    Text(&'a str),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction or an exponent.
    Decimal(f64),
    /// `#true` or `#false`.
    Flag(bool),
    /// `#null`.
    Null,
}

/// Why a value will not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// It is of another type.
    Type {
        /// What should stand there.
        expected: String,
        /// What stands there.
        found: &'static str,
    },
    /// It is outside the range.
    Range {
        /// Least value, as one would write it.
        least: String,
        /// Greatest value, as one would write it.
        greatest: String,
    },
    /// It is none of the words.
    Word {
        /// All of them.
        known: Vec<&'static str>,
    },
    /// It is text of another form.
    Form {
        /// What should stand there.
        what: &'static str,
        /// What is wrong with what does.
        reason: String,
    },
    /// It is a word that has no meaning yet.
    NotYet {
        /// The piece of work that will bring it.
        issue: &'static str,
    },
}

impl Raw<'_> {
    /// What it is, in words.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Decimal(_) => "a number with a fraction",
            Self::Flag(_) => "a boolean",
            Self::Null => "null",
        }
    }

    pub(super) fn is_not(self, expected: impl Into<String>) -> ValueError {
        ValueError::Type {
            expected: expected.into(),
            found: self.noun(),
        }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::Range { least, greatest } => {
                write!(f, "must be at least {least} and at most {greatest}")
            }
            Self::Word { known } => write!(f, "must be one of {}", quoted(known)),
            Self::Form { what, reason } => write!(f, "is not {what}: {reason}"),
            Self::NotYet { issue } => write!(f, "comes with the work on `{issue}`"),
        }
    }
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
