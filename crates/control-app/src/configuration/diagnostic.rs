//! A fault or a warning, as the database keeps it and pages show it.

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
    /// The file.
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
