//! A block during decoding: the fields written in it, and which of them have been read.

use super::decoder::Decoder;
use super::field::{Field, Written};
use super::known::NamedSetting;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Node;
use proxy_model::FileId;
use std::cell::RefCell;

/// A block during decoding. Several nodes of one name are merged into one block.
#[derive(Debug)]
pub(super) struct Block<'t> {
    pub(super) path: &'static str,
    pub(super) nodes: Vec<(FileId, &'t Node)>,
    /// Fields that no decoder has read yet.
    pub(super) fields: RefCell<Vec<Field<'t>>>,
    /// Settings that an unknown name probably misspells; they are not reported as missing.
    pub(super) suggested: Vec<&'static str>,
}

impl<'t> Block<'t> {
    /// Opens the block at `path`, written as `nodes`. Reports unknown names.
    pub(super) fn open(
        d: &mut Decoder<'t, '_>,
        path: &'static str,
        nodes: Vec<(FileId, &'t Node)>,
    ) -> Self {
        let mut block = Self {
            path,
            nodes,
            fields: RefCell::default(),
            suggested: Vec::new(),
        };
        let mut fields = Vec::new();
        for (file, node) in block.nodes.clone() {
            let properties = node.entries.iter().filter(|entry| entry.name.is_some());
            let children = node.children.iter().flatten();
            let written = properties
                .map(Written::Property)
                .chain(children.map(Written::Node));
            fields.extend(written.filter_map(|written| block.field(d, file, written)));
        }
        block.fields = RefCell::new(fields);
        block
    }

    /// A block that is absent from the text.
    pub(super) fn empty() -> Self {
        Self {
            path: "",
            nodes: Vec::new(),
            fields: RefCell::default(),
            suggested: Vec::new(),
        }
    }

    /// The top level of all files.
    pub(super) fn top(d: &mut Decoder<'t, '_>) -> Self {
        let mut block = Self::empty();
        let nodes: Vec<_> = d.nodes().collect();
        let fields = nodes
            .into_iter()
            .filter_map(|(file, node)| block.field(d, file, Written::Node(node)))
            .collect();
        block.fields = RefCell::new(fields);
        block
    }

    fn field(
        &mut self,
        d: &mut Decoder<'t, '_>,
        file: FileId,
        written: Written<'t>,
    ) -> Option<Field<'t>> {
        let field = Field {
            path: "",
            file,
            written,
        };
        let place = field.place(d);
        let Some(known) = d.known.find(self.path, field.name()) else {
            // A fault beyond the bound is only counted, so its text is not built.
            if d.is_full() {
                d.drop_one();
                return None;
            }
            let fault = self.unknown(d, field.name(), place);
            d.push(fault);
            return None;
        };
        let NamedSetting { path, deprecated } = known;
        let name = field.name();
        if let Some(instead) = deprecated {
            let message = format!("`{name}` is deprecated{}", self.within(d));
            let fault = Diagnostic::new(DiagnosticCode::DeprecatedSetting, place, message)
                .label(format!("write `{instead}`"))
                .help("`config migrate` rewrites it");
            d.push(fault);
        }
        Some(Field { path, ..field })
    }
}
