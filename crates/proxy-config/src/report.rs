//! The diagnostics of a configuration, together with its source text.

pub(crate) mod rendering;

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::Severity;
use crate::report::rendering::{Rendering, plain_handler};
use miette::ReportHandler;
use proxy_model::{Place, Sources};
use serde_json::{Value, json};
use std::fmt;

/// Maximum number of diagnostics that a report shows; the rest are counted.
const MAX_SHOWN: usize = 100;

/// Errors, warnings or both, in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Report {
    sources: Sources,
    faults: Vec<Diagnostic>,
    /// Number of diagnostics found and not kept.
    dropped: usize,
}

impl Report {
    /// A report on `sources`. Sorts the diagnostics by place.
    pub fn new(sources: Sources, mut faults: Vec<Diagnostic>) -> Self {
        faults.sort_by_key(|fault| fault.place);
        Self {
            sources,
            faults,
            dropped: 0,
        }
    }

    pub(crate) fn and_dropped(mut self, dropped: usize) -> Self {
        self.dropped = dropped;
        self
    }

    /// The diagnostics, in the order of the text.
    pub fn faults(&self) -> &[Diagnostic] {
        &self.faults
    }

    /// The number of diagnostics that were found and not kept.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// The files that the places refer to.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns true if there is neither an error nor a warning.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns true if there is an error, so that the configuration is refused.
    pub fn has_errors(&self) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.severity() == Severity::Error)
    }

    /// Inserts a diagnostic in the order of places.
    pub fn push(&mut self, fault: Diagnostic) {
        let at = self
            .faults
            .partition_point(|other| other.place <= fault.place);
        self.faults.insert(at, fault);
    }

    /// The report as `handler` lays it out, for a terminal or a screen reader.
    pub fn with_handler<'r>(&'r self, handler: &'r dyn ReportHandler) -> impl fmt::Display + 'r {
        let shown = self.faults.get(..MAX_SHOWN).unwrap_or(&self.faults);
        Rendering {
            sources: &self.sources,
            shown,
            omitted: self.omitted(),
            handler,
        }
    }

    /// Each diagnostic separately, as written by [`Display`](fmt::Display): one log entry each.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let one = |diagnostic: &Diagnostic| {
            Self::new(self.sources.clone(), vec![diagnostic.clone()]).to_string()
        };
        self.shown().map(one)
    }

    /// Each diagnostic in one line, without a drawing: for values in structured logs. Format: place
    /// as `file:line:column`, code, message, labels, help.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let omitted = self.omitted();
        let rest = (omitted > 0).then(|| format!("and {omitted} more"));
        self.shown().map(|one| self.line(one)).chain(rest)
    }

    fn line(&self, diagnostic: &Diagnostic) -> String {
        let Diagnostic {
            code,
            message,
            place,
            label,
            related,
            help,
        } = diagnostic;
        let label = if label.is_empty() {
            String::new()
        } else {
            format!(" ({label})")
        };
        let position = self.position(*place);
        let mut parts = vec![format!("{position}: {}: {message}{label}", code.name())];
        let related = related.iter();
        parts.extend(related.map(|(place, label)| format!("{}: {label}", self.position(*place))));
        parts.extend(help.clone());
        parts.join("; ").replace('\n', " ")
    }

    fn position(&self, place: Place) -> String {
        let Place { line, column, .. } = place;
        format!("{}:{line}:{column}", self.sources.name(place.file))
    }

    /// The report as JSON: `{faults: [{code, severity, message, file, line, column, length, label,
    /// help, related: […]}], omitted}`.
    pub fn to_json(&self) -> Value {
        let faults: Vec<Value> = self
            .shown()
            .map(|fault| self.fault_to_json(fault))
            .collect();
        json!({ "faults": faults, "omitted": self.omitted() })
    }

    fn fault_to_json(&self, fault: &Diagnostic) -> Value {
        let related = fault
            .related
            .iter()
            .map(|(place, label)| self.place_to_json(*place, label));
        let mut json = self.place_to_json(fault.place, &fault.label);
        if let Some(fields) = json.as_object_mut() {
            fields.insert("code".to_owned(), fault.code.name().into());
            fields.insert("severity".to_owned(), fault.severity().name().into());
            fields.insert("message".to_owned(), fault.message.clone().into());
            fields.insert("help".to_owned(), fault.help.clone().into());
            fields.insert("related".to_owned(), related.collect());
        }
        json
    }

    fn place_to_json(&self, place: Place, label: &str) -> Value {
        json!({
            "file": self.sources.name(place.file),
            "line": place.line,
            "column": place.column,
            "length": place.len,
            "label": label,
        })
    }

    fn shown(&self) -> impl Iterator<Item = &Diagnostic> {
        self.faults.iter().take(MAX_SHOWN)
    }

    fn omitted(&self) -> usize {
        self.faults.len().saturating_sub(MAX_SHOWN) + self.dropped
    }
}

/// In ASCII, without colours: for logs, files and pipes. [`Report::with_handler`] writes to
/// terminals.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_handler(&plain_handler()).fmt(f)
    }
}

impl std::error::Error for Report {}
