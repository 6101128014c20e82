//! The texts of all files of a report.

use crate::report::rendering::source_text::SourceText;
use proxy_model::{FileId, Sources};

/// The text of every file of a report, safe for a terminal.
pub(super) struct SourceTexts<'r>(Vec<SourceText<'r>>);

impl<'r> SourceTexts<'r> {
    pub(super) fn new(sources: &'r Sources) -> Self {
        let ids = (0..).map(FileId);
        let files = ids.map_while(|id| sources.file(id));
        Self(files.map(SourceText::new).collect())
    }

    pub(super) fn get(&self, file: FileId) -> Option<&SourceText<'r>> {
        self.0.get(usize::try_from(file.0).ok()?)
    }
}
