//! A `query-param` condition: a parameter is present, or has a value.

use crate::pattern_error::PatternError;
use std::fmt;

/// A condition on a query parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueryCondition {
    name: Box<str>,
    value: Option<Box<str>>,
}

impl QueryCondition {
    /// Parses `name` (the parameter is present) or `name=value` (it has this value once).
    ///
    /// # Errors
    /// [`PatternError::QueryName`] if the name is empty.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        match text.split_once('=') {
            Some((name, value)) => Self::equals(name, value),
            None => Self::present(text),
        }
    }

    /// The parameter `name` is present, with or without a value.
    ///
    /// # Errors
    /// [`PatternError::QueryName`] when the name is empty.
    pub fn present(name: &str) -> Result<Self, PatternError> {
        if name.is_empty() {
            return Err(PatternError::QueryName);
        }
        let name = name.into();
        Ok(Self { name, value: None })
    }

    /// The parameter `name` has exactly `value` at least once. Both are unescaped: the request's
    /// escapes, and `+` for a space, are decoded before the comparison.
    ///
    /// # Errors
    /// [`PatternError::QueryName`] when the name is empty.
    pub fn equals(name: &str, value: &str) -> Result<Self, PatternError> {
        let value = Some(value.into());
        Ok(Self {
            value,
            ..Self::present(name)?
        })
    }

    /// Returns true if the condition holds for a request with this query.
    #[must_use]
    pub fn holds(&self, query: &str) -> bool {
        pairs(query).any(|(name, value)| {
            let wanted = self.value.as_deref();
            decoded(name).eq(self.name.bytes())
                && wanted.is_none_or(|wanted| decoded(value).eq(wanted.bytes()))
        })
    }

    /// The parameter's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The required value; `None` for any.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Returns true if this holds for every request for which `other` holds.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.name == other.name && (self.value.is_none() || self.value == other.value)
    }
}

/// The named parameters of a query, still encoded.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(|(name, _)| !name.is_empty())
}

/// The decoded bytes of `text`; a broken escape is kept literally.
pub(crate) fn decoded(text: &str) -> impl Iterator<Item = u8> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let [byte, tail @ ..] = rest else {
            return None;
        };
        rest = tail;
        match (byte, tail) {
            (b'+', _) => Some(b' '),
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let Some((high, low)) = digit(high).zip(digit(low)) else {
                    return Some(b'%');
                };
                rest = after;
                u8::try_from(high * 16 + low).ok()
            }
            _ => Some(*byte),
        }
    })
}

impl fmt::Display for QueryCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => f.write_str(&self.name),
            Some(value) => write!(f, "{}={value}", self.name),
        }
    }
}
