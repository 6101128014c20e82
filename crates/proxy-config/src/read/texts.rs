//! The text of all files of a configuration.

use super::lines::Lines;
use crate::diagnostic::Diagnostic;
use crate::diagnostics::Diagnostics;
use crate::kdl::{Node, Span};
use proxy_model::{FileId, Place, Sources};

#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) sources: Sources,
    /// Indexed by file id.
    pub(crate) lines: Vec<Lines>,
    /// The top-level nodes of all files; an included file's nodes replace its `include`.
    pub(crate) nodes: Vec<(FileId, Node)>,
    pub(crate) faults: Diagnostics,
    /// A file or the value of a variable is missing: blocks may lack their counterparts.
    pub(crate) has_gaps: bool,
    /// Warnings about aliases among the nodes, and about text that looks like a variable.
    pub(crate) warnings: Vec<Diagnostic>,
    /// The files of the bundle; `None` for a node's own configuration.
    pub(crate) bundle: Option<BundleFiles>,
}

/// Files of a bundle, as part of a configuration's files.
#[derive(Clone, Debug)]
pub(crate) struct BundleFiles {
    /// The folder with the bundle, as written in the names of its files; empty for files in memory.
    pub(crate) folder: String,
    /// The node's own file is part of the configuration.
    pub(crate) is_on_node: bool,
}

impl Texts {
    pub(crate) fn place(&self, file: FileId, span: Span) -> Place {
        let index = usize::try_from(file.0).unwrap_or(usize::MAX);
        match (self.lines.get(index), self.sources.file(file)) {
            (Some(lines), Some(source)) => lines.place(file, &source.text, span),
            _ => Place {
                file,
                ..Place::default()
            },
        }
    }
}

impl BundleFiles {
    /// `path` relative to the bundle's folder, without dot segments; `None` for a path outside it.
    pub(crate) fn relative(&self, path: &str) -> Option<String> {
        let below = match &*self.folder {
            "" => path,
            folder => path.strip_prefix(folder)?.strip_prefix('/')?,
        };
        if below.starts_with('/') {
            return None;
        }
        let mut parts = Vec::new();
        for part in below.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }
}
