//! Wrong fields of one request, gathered until all of them are known.

use crate::access::refusal::{InvalidField, Refusal};

/// Wrong fields, in the order of their checks.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<InvalidField>);

impl Faults {
    /// Notes a field, unless it is good.
    pub(crate) fn check(&mut self, is_good: bool, field: &'static str, reason: &'static str) {
        if !is_good {
            self.0.push(InvalidField { field, reason });
        }
    }

    /// The value, or `None` and a note of the fault at its field. Parsers return no other refusals.
    pub(crate) fn keep<T>(&mut self, parsed: Result<T, Refusal>) -> Option<T> {
        match parsed {
            Ok(value) => return Some(value),
            Err(Refusal::Invalid { field, reason }) => self.0.push(InvalidField { field, reason }),
            Err(Refusal::InvalidFields(fields)) => self.0.extend(fields),
            Err(_) => {}
        }
        None
    }

    /// The parsed values, or all wrong fields.
    pub(crate) fn finish<T>(self, parsed: Option<T>) -> Result<T, Refusal> {
        let Self(fields) = self;
        match (parsed, fields.as_slice()) {
            (Some(value), []) => Ok(value),
            (_, [InvalidField { field, reason }]) => Err(Refusal::invalid(field, reason)),
            _ => Err(Refusal::InvalidFields(fields)),
        }
    }
}
