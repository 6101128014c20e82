//! One case of the check.

use crate::settings::Settings;

/// What a case found: a note for the reader, or what the agent did wrong.
pub(crate) type Outcome = Result<Option<String>, String>;

/// A case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) run: fn(&Settings) -> Outcome,
}
