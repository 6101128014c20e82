//! One case of the check.

use crate::settings::Settings;

/// The result of a case: a note for the reader, or the agent's mistake.
pub(crate) type Outcome = Result<Option<String>, String>;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) run: fn(&Settings) -> Outcome,
}
