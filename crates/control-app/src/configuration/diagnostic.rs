//! Diagnostics of a configuration, as stored and displayed.

use proxy_model::{Place, Sources};
use serde::{Deserialize, Serialize};

/// An error in a configuration, or a warning about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Stable code, such as `unknown-setting`.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// One sentence about the fault.
    pub message: String,
    /// Name of the file in the bundle.
    pub file: String,
    /// Line of the place, from 1.
    pub line: u32,
    /// Column of the place in characters, from 1.
    pub column: u32,
    /// Length of the underlined text in bytes.
    pub length: u32,
    /// Label below the underlined text; may be empty.
    pub label: String,
    /// Suggested fix, if there is one.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Converts `found`, with its place in `sources`.
    pub(super) fn in_sources(found: &proxy_config::Diagnostic, sources: &Sources) -> Self {
        let Place {
            file,
            offset: _,
            len,
            line,
            column,
        } = found.place;
        Self {
            code: found.code.name().to_owned(),
            severity: found.severity().name().to_owned(),
            message: found.message.clone(),
            file: sources.name(file).to_owned(),
            line,
            column,
            length: len,
            label: found.label.clone(),
            help: found.help.clone(),
        }
    }
}
