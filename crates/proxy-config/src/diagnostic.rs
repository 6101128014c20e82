//! A diagnostic: an error or a warning about a configuration.

use crate::diagnostic_code::{DiagnosticCode, Severity};
use proxy_model::Place;

/// An error or a warning about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable name of the kind; also decides on the severity.
    pub code: DiagnosticCode,
    /// Description in one sentence.
    pub message: String,
    /// Underlined part of the text.
    pub place: Place,
    /// Text at the underline; may be empty.
    pub label: String,
    /// Related places, each with its relation.
    pub related: Vec<(Place, String)>,
    /// Advice to correct the configuration.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without label, related places and help.
    pub fn new(code: DiagnosticCode, place: Place, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            place,
            label: String::new(),
            related: Vec::new(),
            help: None,
        }
    }

    /// Sets the text at the underline.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a related place.
    #[must_use]
    pub fn related(mut self, place: Place, label: impl Into<String>) -> Self {
        self.related.push((place, label.into()));
        self
    }

    /// Sets the advice on how to correct it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Severity: errors prevent the configuration from being used.
    pub const fn severity(&self) -> Severity {
        self.code.severity()
    }
}
