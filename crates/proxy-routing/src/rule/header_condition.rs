//! A `header` condition: a field is present, or has a value.

use crate::pattern_error::PatternError;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;

/// A condition on a header field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeaderCondition {
    name: HeaderName,
    value: Option<HeaderValue>,
}

impl HeaderCondition {
    /// Parses `X-A` (the field is present) or `X-A: value` (one of its lines has this value).
    ///
    /// # Errors
    /// [`PatternError::HeaderName`] or [`PatternError::HeaderValue`].
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        match text.split_once(':') {
            Some((name, value)) => Self::equals(name, value),
            None => Self::present(text),
        }
    }

    /// The field `name` is present, with any value.
    ///
    /// # Errors
    /// [`PatternError::HeaderName`] if `name` is not a field name.
    pub fn present(name: &str) -> Result<Self, PatternError> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| PatternError::HeaderName)?;
        Ok(Self { name, value: None })
    }

    /// A condition that holds if one line of the field `name` equals `value`, case included. White
    /// space around either is ignored; a list such as `a, b` is one value.
    ///
    /// # Errors
    /// [`PatternError::HeaderName`] or [`PatternError::HeaderValue`].
    pub fn equals(name: &str, value: &str) -> Result<Self, PatternError> {
        let present = Self::present(name.trim_matches([' ', '\t']))?;
        let value = HeaderValue::from_str(value.trim_matches([' ', '\t']))
            .map_err(|_| PatternError::HeaderValue)?;
        Ok(Self {
            value: Some(value),
            ..present
        })
    }

    /// Returns true if the condition holds for a request with these fields.
    #[must_use]
    pub fn holds(&self, headers: &HeaderMap) -> bool {
        match &self.value {
            None => headers.contains_key(&self.name),
            Some(value) => headers.get_all(&self.name).iter().any(|line| line == value),
        }
    }

    /// The field's name.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The required value; `None` for any.
    #[must_use]
    pub fn value(&self) -> Option<&HeaderValue> {
        self.value.as_ref()
    }

    /// Marks the required value as a secret that is not displayed.
    pub fn hide_value(&mut self) {
        if let Some(value) = &mut self.value {
            value.set_sensitive(true);
        }
    }

    /// Returns true if this holds for every request for which `other` holds.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.name == other.name && (self.value.is_none() || self.value == other.value)
    }
}

impl fmt::Display for HeaderCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => write!(f, "{}", self.name),
            Some(value) => write!(
                f,
                "{}: {}",
                self.name,
                String::from_utf8_lossy(value.as_bytes())
            ),
        }
    }
}
