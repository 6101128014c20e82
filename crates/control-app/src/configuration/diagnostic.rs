//! A fault or a warning, as stored and as shown by pages.

use proxy_model::{Place, Sources};
use serde::{Deserialize, Serialize};

/// A fault of a configuration, or a warning about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The kind, such as `unknown-setting`.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// The fault, in one sentence.
    pub message: String,
    /// Name of the file in the bundle.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
    /// In bytes.
    pub length: u32,
    /// Label of the underlined text; may be empty.
    pub label: String,
    /// A suggested fix.
    pub help: Option<String>,
}

impl Diagnostic {
    /// The diagnostic `found` in one of the `sources`.
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
