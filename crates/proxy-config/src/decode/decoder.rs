//! State shared by the decoders of all blocks: the texts, and the faults found.

use super::known::NameIndex;
use super::names::Names;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::diagnostics::Diagnostics;
use crate::files::Files;
use crate::kdl::{Node, Span};
use crate::read::{Texts, relative_to};
use proxy_model::{FileId, Place, Sources};
use proxy_routing::RegexBudget;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) struct Decoder<'t, 'f> {
    texts: &'t Texts,
    files: Files<'f>,
    pub(super) known: NameIndex,
    pub(super) names: Names<'t>,
    /// Budget of the regexes of all routes.
    pub(super) regexes: RegexBudget,
    faults: Diagnostics,
}

impl<'t, 'f> Decoder<'t, 'f> {
    pub(crate) fn new(texts: &'t Texts, files: Files<'f>) -> Self {
        Self {
            texts,
            files,
            known: NameIndex::new(),
            names: Names::default(),
            regexes: RegexBudget::default(),
            faults: Diagnostics::default(),
        }
    }

    pub(crate) fn into_faults(self) -> Diagnostics {
        self.faults
    }

    /// Returns true if the blocks belong to a bundle.
    pub(super) fn is_bundle(&self) -> bool {
        self.texts.bundle.is_some()
    }

    /// Returns true if parts of the configuration are missing, and reported already.
    pub(super) fn has_gaps(&self) -> bool {
        self.texts.has_gaps
    }

    pub(super) fn sources(&self) -> &Sources {
        &self.texts.sources
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (FileId, &'t Node)> + use<'t> {
        self.texts.nodes.iter().map(|(file, node)| (*file, node))
    }

    pub(super) fn place(&self, file: FileId, span: Span) -> Place {
        self.texts.place(file, span)
    }

    /// Returns true if the bound on faults is reached, so that further ones are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.faults.is_full()
    }

    pub(super) fn drop_one(&mut self) {
        self.faults.drop_one();
    }

    pub(crate) fn push(&mut self, fault: Diagnostic) {
        self.faults.push(fault);
    }

    pub(super) fn fault(&mut self, code: DiagnosticCode, place: Place, message: impl Into<String>) {
        self.push(Diagnostic::new(code, place, message));
    }

    pub(super) fn text_at(&self, place: Place) -> String {
        let file = self.sources().file(place.file);
        let start = usize::try_from(place.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(place.len).unwrap_or(usize::MAX));
        let text = file.and_then(|file| file.text.get(start..end));
        text.unwrap_or_default().to_owned()
    }

    /// `path` resolved against the folder of the file that contains `place`.
    pub(super) fn resolve(&self, place: Place, path: &str) -> PathBuf {
        relative_to(self.sources().name(place.file), path).into()
    }

    /// Reads at most `limit` bytes of a file that a setting names. Empty for a file outside of its
    /// bundle, which is reported separately, and for one that the files in memory do not have.
    pub(super) fn read_file(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        self.read_present_file(path, limit)
            .map(Option::unwrap_or_default)
    }

    /// Like [`Self::read_file`]; `None` for a file that is not checked: outside the bundle, or
    /// named by a configuration in memory.
    pub(super) fn read_present_file(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let name = path.to_string_lossy();
        let bundle = self.texts.bundle.as_ref();
        if bundle.is_some_and(|bundle| bundle.relative(&name).is_none()) {
            return Ok(None);
        }
        match self.files.read(&name, limit) {
            Err(_) if !self.files.lacks(path) && matches!(self.files, Files::Memory(_)) => Ok(None),
            read => read.map(Some),
        }
    }

    pub(super) fn lacks(&self, path: &Path) -> bool {
        self.files.lacks(path)
    }

    pub(super) fn is_no_folder(&self, path: &Path) -> bool {
        self.files.is_no_folder(path)
    }
}
