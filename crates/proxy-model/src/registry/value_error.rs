//! Values as written, and the errors of decoding them.

use std::fmt;

/// A value as written, before its kind is known.
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

/// The reason why a value is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// The type is wrong.
    Type {
        /// Description of the valid values.
        expected: String,
        /// Description of the value's type.
        found: &'static str,
    },
    /// The value is outside the range.
    Range {
        /// Minimum, as written.
        least: String,
        /// Maximum, as written.
        greatest: String,
    },
    /// The word is unknown.
    Word {
        /// All valid words.
        known: Vec<&'static str>,
    },
    /// The text does not have the required form.
    Form {
        /// Description of the form.
        what: &'static str,
        /// The reason why the text does not have it.
        reason: String,
    },
}

impl Raw<'_> {
    /// Description of the value's type, as in "a number".
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
        }
    }
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
