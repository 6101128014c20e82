//! Collects the invalid fields of a request, so that all are reported at once.

use crate::access::refusal::{InvalidField, Refusal};

/// Invalid fields, in the order of the checks.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<InvalidField>);

impl Faults {
    /// Records the field unless `is_good`.
    pub(crate) fn check(&mut self, is_good: bool, field: &'static str, reason: &'static str) {
        if !is_good {
            self.0.push(InvalidField { field, reason });
        }
    }

    /// Returns the parsed value; on failure records the fault and returns `None`. Parsers return no
    /// other refusal.
    pub(crate) fn record<T>(&mut self, parsed: Result<T, Refusal>) -> Option<T> {
        match parsed {
            Ok(value) => return Some(value),
            Err(Refusal::Invalid { field, reason }) => self.0.push(InvalidField { field, reason }),
            Err(Refusal::InvalidFields(fields)) => self.0.extend(fields),
            Err(_) => {}
        }
        None
    }

    /// Returns the value, or a refusal with all recorded fields.
    pub(crate) fn finish<T>(self, parsed: Option<T>) -> Result<T, Refusal> {
        let Self(fields) = self;
        match (parsed, fields.as_slice()) {
            (Some(value), []) => Ok(value),
            (_, [InvalidField { field, reason }]) => Err(Refusal::invalid(field, reason)),
            _ => Err(Refusal::InvalidFields(fields)),
        }
    }
}
