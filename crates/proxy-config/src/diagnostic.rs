//! One thing that is wrong with a configuration, or doubtful.

use crate::diagnostic_code::{DiagnosticCode, Severity};
use proxy_model::Place;

/// One thing that is wrong with a configuration, or doubtful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which kind of thing.
    pub code: DiagnosticCode,
    /// The thing itself, in one sentence.
    pub message: String,
    /// Where; this is underlined.
    pub place: Place,
    /// Said beside the underlined text; may be empty.
    pub label: String,
    /// Other places that belong to it, and why.
    pub related: Vec<(Place, String)>,
    /// A way to mend it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A fault without label, related places and help.
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

    /// Says something beside the underlined text.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Shows another place that belongs to it.
    #[must_use]
    pub fn related(mut self, place: Place, label: impl Into<String>) -> Self {
        self.related.push((place, label.into()));
        self
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether a configuration can be used in spite of it.
    pub const fn severity(&self) -> Severity {
        self.code.severity()
    }
}
