//! A report as text for people: miette lays it out, this module says what is in it.

mod entry;
mod source_text;

use crate::report::Report;
use entry::Entry;
use miette::{GraphicalReportHandler, GraphicalTheme, ReportHandler, ThemeCharacters, ThemeStyles};
use proxy_model::{FileId, Sources};
use source_text::SourceText;
use std::fmt;

/// Columns before a message or a help text wraps where the output is no terminal: in effect none do.
const UNBROKEN_COLUMNS: usize = 100_000;

/// A report and the handler that lays its diagnostics out, one after the other.
pub(crate) struct Rendering<'r> {
    pub(crate) report: &'r Report,
    pub(crate) handler: &'r dyn ReportHandler,
}

impl fmt::Display for Rendering<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, handler } = self;
        let texts = SourceTexts::of(report.sources());
        for (index, diagnostic) in report.shown().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            handler.debug(&Entry::of(diagnostic, &texts), f)?;
        }
        match report.omitted() {
            0 => Ok(()),
            omitted => writeln!(f, "\nand {omitted} more"),
        }
    }
}

/// ASCII without colours and line breaks of its own: for logs, files and pipes.
pub(crate) fn plain_handler() -> GraphicalReportHandler {
    let theme = GraphicalTheme {
        characters: ThemeCharacters::ascii(),
        styles: ThemeStyles::none(),
    };
    GraphicalReportHandler::new_themed(theme)
        .with_width(UNBROKEN_COLUMNS)
        .with_links(false)
}

/// The text of every file of a report, safe for a terminal.
struct SourceTexts<'r>(Vec<SourceText<'r>>);

impl<'r> SourceTexts<'r> {
    fn of(sources: &'r Sources) -> Self {
        let ids = (0..).map(FileId);
        let files = ids.map_while(|id| sources.file(id));
        Self(files.map(SourceText::of).collect())
    }

    fn get(&self, file: FileId) -> Option<&SourceText<'r>> {
        self.0.get(usize::try_from(file.0).ok()?)
    }
}
