//! A block being decoded: what is written in it, and what has been read of that.

use super::decoder::Decoder;
use super::field::{Field, Written};
use super::known::Meaning;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Node;
use proxy_model::{FileId, Place};
use std::cell::RefCell;

/// A block being decoded. Several nodes of one name make one block.
#[derive(Debug)]
pub(super) struct Block<'t> {
    pub(super) path: &'static str,
    pub(super) nodes: Vec<(FileId, &'t Node)>,
    /// What nobody has read yet.
    pub(super) fields: RefCell<Vec<Field<'t>>>,
    /// Whether a block around it is refused already, so that its settings need not be.
    pub(super) muted: bool,
    /// Names that unknown ones were perhaps meant to be; they are not called missing as well.
    pub(super) meant: Vec<&'static str>,
}

impl<'t> Block<'t> {
    /// Opens the block called `path` that is written as `nodes`. Unknown names are faulted here,
    /// and so are settings that have no effect yet: this is the one place where that is looked at.
    pub(super) fn open(
        d: &mut Decoder<'t, '_>,
        path: &'static str,
        nodes: Vec<(FileId, &'t Node)>,
        muted: bool,
    ) -> Self {
        let mut block = Self {
            path,
            nodes,
            fields: RefCell::default(),
            muted,
            meant: Vec::new(),
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

    /// A block that nobody wrote.
    pub(super) fn empty() -> Self {
        Self {
            path: "",
            nodes: Vec::new(),
            fields: RefCell::default(),
            muted: false,
            meant: Vec::new(),
        }
    }

    /// The top of all files.
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
            // What is only counted need not be written.
            if d.is_full() {
                d.drop_one();
                return None;
            }
            let fault = self.unknown(d, field.name(), place);
            d.push(fault);
            return None;
        };
        let Meaning {
            path,
            not_yet,
            deprecated,
        } = known;
        let name = field.name();
        if let Some(issue) = not_yet.filter(|_| !self.muted) {
            let fault = not_yet_fault(&format!("`{name}`"), issue, place);
            d.push(fault);
        }
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

/// The fault of a setting, or a word, that has no effect yet.
pub(super) fn not_yet_fault(what: &str, issue: &str, place: Place) -> Diagnostic {
    let message = format!("{what} is not implemented yet");
    let fault = Diagnostic::new(DiagnosticCode::NotImplementedYet, place, message);
    fault.label("has no effect yet").help(format!(
        "it comes with the work on `{issue}`; leave it out until then"
    ))
}
