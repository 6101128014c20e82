//! One diagnostic as miette reads it.

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::Severity;
use crate::report::rendering::source_text::{SourceText, is_unsafe};
use crate::report::rendering::source_texts::SourceTexts;
use miette::{LabeledSpan, SourceCode};
use proxy_model::Place;
use std::fmt;

/// Bytes between two places of one line that are shown together.
const MAX_BYTES_APART: u32 = 80;

/// A diagnostic with its text; places in other files, or far along the same line, follow as
/// separate entries.
#[derive(Debug)]
pub(super) struct Entry<'r> {
    /// `error[unknown-setting]`; `None` for the continuation of a diagnostic in another file.
    code: Option<String>,
    severity: miette::Severity,
    message: String,
    help: Option<String>,
    labels: Vec<LabeledSpan>,
    source: Option<&'r SourceText<'r>>,
    elsewhere: Vec<Self>,
}

impl<'r> Entry<'r> {
    pub(super) fn new(diagnostic: &Diagnostic, texts: &'r SourceTexts<'r>) -> Self {
        let Diagnostic {
            code,
            message,
            place,
            label,
            related,
            help,
        } = diagnostic;
        let severity = diagnostic.severity();
        let mut entry = Self {
            code: Some(format!("{}[{code}]", severity.name())),
            help: help.as_deref().map(plain),
            ..Self::at(*place, label, plain(message), texts)
        };
        entry.severity = match severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        };
        for (other, label) in related {
            if is_shown_with(*place, *other) {
                entry.labels.extend(labeled(*other, label, texts));
            } else {
                let message = plain(label);
                entry.elsewhere.push(Self::at(*other, "", message, texts));
            }
        }
        entry
    }

    fn at(place: Place, label: &str, message: String, texts: &'r SourceTexts<'r>) -> Self {
        let source = texts.get(place.file);
        let mut entry = Self {
            code: None,
            severity: miette::Severity::Advice,
            message,
            help: None,
            labels: Vec::new(),
            source: None,
            elsewhere: Vec::new(),
        };
        // The file as a whole, or a setting that is not written in it.
        if place.line == 0 {
            let name = source.map_or("", SourceText::name);
            if !name.is_empty() {
                entry.message = format!("{name}: {}", entry.message);
            }
            if !label.is_empty() {
                entry.message = format!("{} ({})", entry.message, plain(label));
            }
            return entry;
        }
        entry.source = source;
        let span = source.and_then(|source| source.shown(place.offset, place.len));
        let label = (!label.is_empty()).then(|| plain(label));
        entry
            .labels
            .extend(span.map(|span| LabeledSpan::new_primary_with_span(label, span)));
        entry
    }
}

/// Returns true if two places fit in one snippet.
fn is_shown_with(place: Place, other: Place) -> bool {
    let near = place.offset.abs_diff(other.offset) <= MAX_BYTES_APART;
    place.file == other.file
        && place.line > 0
        && other.line > 0
        && (place.line != other.line || near)
}

fn labeled(place: Place, label: &str, texts: &SourceTexts<'_>) -> Option<LabeledSpan> {
    let span = texts.get(place.file)?.shown(place.offset, place.len)?;
    Some(LabeledSpan::new_with_span(Some(plain(label)), span))
}

/// Text that may include content of a file, with terminal control characters escaped.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Entry<'_> {}

impl miette::Diagnostic for Entry<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let code = self.code.as_ref()?;
        Some(Box::new(code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.help.as_ref()?;
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        let source = self.source?;
        Some(source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.labels.is_empty() {
            return None;
        }
        Some(Box::new(self.labels.iter().cloned()))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        if self.elsewhere.is_empty() {
            return None;
        }
        let elsewhere = self.elsewhere.iter();
        Some(Box::new(
            elsewhere.map(|entry| -> &dyn miette::Diagnostic { entry }),
        ))
    }
}
