//! Rendering of a report as text: miette does the layout, this module the content.

mod entry;
mod source_text;
mod source_texts;

use crate::diagnostic::Diagnostic;
use entry::Entry;
use miette::{GraphicalReportHandler, GraphicalTheme, ReportHandler, ThemeCharacters, ThemeStyles};
use proxy_model::Sources;
use source_texts::SourceTexts;
use std::fmt;

/// Columns at which messages and help texts wrap if the output is not a terminal: in effect never.
const UNBROKEN_COLUMNS: usize = 100_000;

/// Diagnostics with the handler for their layout, in order.
pub(crate) struct Rendering<'r> {
    pub(crate) sources: &'r Sources,
    pub(crate) shown: &'r [Diagnostic],
    /// Number of further diagnostics, which are only counted.
    pub(crate) omitted: usize,
    pub(crate) handler: &'r dyn ReportHandler,
}

impl fmt::Display for Rendering<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = SourceTexts::new(self.sources);
        for (index, diagnostic) in self.shown.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            self.handler.debug(&Entry::new(diagnostic, &texts), f)?;
        }
        match self.omitted {
            0 => Ok(()),
            omitted => writeln!(f, "\nand {omitted} more"),
        }
    }
}

/// ASCII, without colours and without added line breaks: for logs, files and pipes.
pub(crate) fn plain_handler() -> GraphicalReportHandler {
    let theme = GraphicalTheme {
        characters: ThemeCharacters::ascii(),
        styles: ThemeStyles::none(),
    };
    GraphicalReportHandler::new_themed(theme)
        .with_width(UNBROKEN_COLUMNS)
        .with_links(false)
}
