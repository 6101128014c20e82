//! A block being decoded: what is written in it, and what has been read of that.

use super::decoder::Decoder;
use super::field::{Field, Found, Written};
use super::known::Meaning;
use super::suggest::nearest;
use crate::kdl::{Entry, Node, Value};
use crate::{Fault, FaultCode};
use proxy_model::registry::{self, Spec};
use proxy_model::{FileId, Place, Setting};
use std::cell::RefCell;

/// Known names that a fault lists, at most.
const MAX_NAMES: usize = 12;

/// A block being decoded. Several nodes of one name make one block.
#[derive(Debug)]
pub(super) struct Block<'t> {
    pub(super) path: &'static str,
    nodes: Vec<(FileId, &'t Node)>,
    fields: RefCell<Vec<Field<'t>>>,
    /// Whether a block around it is refused already, so that its settings need not be.
    muted: bool,
    /// Names that unknown ones were perhaps meant to be; they are not called missing as well.
    meant: Vec<&'static str>,
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
            let fault = Fault::new(FaultCode::DeprecatedSetting, place, message)
                .label(format!("write `{instead}`"))
                .help("`config migrate` rewrites it");
            d.push(fault);
        }
        Some(Field { path, ..field })
    }

    fn unknown(&mut self, d: &Decoder<'_, '_>, name: &str, place: Place) -> Fault {
        let message = format!("unknown setting `{name}`{}", self.within(d));
        let fault = Fault::new(FaultCode::UnknownSetting, place, message);
        let known = d.known.names(self.path);
        if let Some(near) = nearest(name, known.iter().map(|known| &*known.name)) {
            let meant = known.iter().find(|known| *known.name == *near);
            self.meant.extend(meant.map(|known| known.meaning.path));
            return fault.label(format!("did you mean `{near}`?"));
        }
        let elsewhere = d.known.elsewhere(name);
        if let Some(block) = elsewhere.first().filter(|block| !block.is_empty()) {
            return fault.label(format!(
                "`{name}` belongs in `{}`",
                block.replace('.', " > ")
            ));
        }
        let main = known.iter().filter(|known| known.is_main);
        let names: Vec<String> = main.map(|known| format!("`{}`", known.name)).collect();
        if names.is_empty() {
            return fault.label("nothing is set here");
        }
        let rest = match names.len().saturating_sub(MAX_NAMES) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
        fault.help(format!("known here: {}{rest}", shown.join(", ")))
    }

    /// The block's own name and title, for messages: ` in route "api"`.
    pub(super) fn within(&self, d: &Decoder<'_, '_>) -> String {
        let name = self.path.rsplit('.').next().unwrap_or_default();
        match (name, self.title(d)) {
            ("", _) => " at the top of a file".to_owned(),
            (name, Some((title, _))) => format!(" in {name} \"{title}\""),
            (name, None) => format!(" in `{name}`"),
        }
    }

    /// The first argument, when it is text.
    pub(super) fn title(&self, d: &Decoder<'_, '_>) -> Option<(&'t str, Place)> {
        let (file, node) = self.nodes.first()?;
        let first = node.entries.iter().find(|entry| entry.name.is_none())?;
        match &first.value {
            Value::Text(text) => Some((text, d.place(*file, first.span))),
            Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::Null => None,
        }
    }

    /// Where the block begins.
    pub(super) fn place(&self, d: &Decoder<'_, '_>) -> Place {
        let first = self.nodes.first();
        first.map_or_else(Place::default, |(file, node)| d.place(*file, node.head))
    }

    pub(super) fn is_muted(&self) -> bool {
        self.muted
    }

    /// Whether anything is written under the name of `path`.
    pub(super) fn has(&self, path: &str) -> bool {
        self.fields.borrow().iter().any(|field| field.path == path)
    }

    /// Whether an unknown name was perhaps meant to be that of `path`.
    pub(super) fn was_meant(&self, path: &str) -> bool {
        self.meant.contains(&path)
    }

    /// Where the name of `path` is written, if it is.
    pub(super) fn place_of(&self, d: &Decoder<'_, '_>, path: &str) -> Option<Place> {
        let fields = self.fields.borrow();
        let field = fields.iter().find(|field| field.path == path);
        field.map(|field| field.place(d))
    }

    /// Takes everything written under the name of `path`.
    pub(super) fn take(&self, path: &str) -> Vec<Field<'t>> {
        self.take_if(|field| field.path == path)
    }

    fn take_if(&self, wanted: impl Fn(&Field<'t>) -> bool) -> Vec<Field<'t>> {
        // Most of what a block may have is not written, and asking for it must cost nothing.
        if !self.fields.borrow().iter().any(&wanted) {
            return Vec::new();
        }
        let fields = self.fields.take();
        let (taken, left) = fields.into_iter().partition(wanted);
        self.fields.replace(left);
        taken
    }

    /// The block `spec` within this one; all nodes of that name are one. Settings of it that
    /// stand out here, where that is understood, are in it as well.
    pub(super) fn inner<D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<registry::Block, D>,
    ) -> Option<Self> {
        let block = self.merged(d, spec)?;
        block.no_arguments(d);
        Some(block)
    }

    /// The same for a block that may have arguments, or is a setting with a block.
    pub(super) fn merged<K, D>(&self, d: &mut Decoder<'t, '_>, spec: &Spec<K, D>) -> Option<Self> {
        let fields = self.take(spec.path);
        let is_loose = |field: &Field<'_>| parent(field.path) == spec.path;
        if fields.is_empty() && !self.fields.borrow().iter().any(is_loose) {
            return None;
        }
        let nodes = fields
            .iter()
            .filter_map(|field| field.as_block(d))
            .collect();
        Some(self.gathered(d, spec, nodes))
    }

    /// The block `spec` of these nodes, with its settings that stand out here.
    pub(super) fn gathered<K, D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, D>,
        nodes: Vec<(FileId, &'t Node)>,
    ) -> Self {
        let block = Self::open(d, spec.path, nodes, self.muted || is_not_yet(spec));
        let loose = self.take_if(|field| parent(field.path) == spec.path);
        block.fields.borrow_mut().extend(loose);
        block
    }

    /// The blocks called `spec` within this one, each by itself.
    pub(super) fn each<D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<registry::Block, D>,
    ) -> Vec<Self> {
        let muted = self.muted || is_not_yet(spec);
        let fields = self.take(spec.path);
        let nodes: Vec<_> = fields
            .iter()
            .filter_map(|field| field.as_block(d))
            .collect();
        let blocks = nodes
            .into_iter()
            .map(|node| Self::open(d, spec.path, vec![node], muted));
        blocks.collect()
    }

    /// The only one of `fields`; every further one is faulted.
    pub(super) fn once(&self, d: &mut Decoder<'t, '_>, fields: &[Field<'t>]) -> Option<Field<'t>> {
        let (first, further) = fields.split_first()?;
        for field in further {
            let place = field.place(d);
            let message = format!("`{}` is set twice{}", field.name(), self.within(d));
            let fault = Fault::new(FaultCode::RepeatedSetting, place, message);
            d.push(
                fault
                    .label("again here")
                    .related(first.place(d), "first here"),
            );
        }
        Some(*first)
    }

    /// The block's arguments.
    pub(super) fn arguments(&self, d: &mut Decoder<'t, '_>) -> Vec<Found<'t>> {
        let mut found = Vec::new();
        for (file, node) in &self.nodes {
            let field = Field {
                path: self.path,
                file: *file,
                written: Written::Node(node),
            };
            let arguments = node.entries.iter().filter(|entry| entry.name.is_none());
            found.extend(arguments.filter_map(|entry: &Entry| field.value(d, entry)));
        }
        found
    }

    fn no_arguments(&self, d: &mut Decoder<'t, '_>) {
        for (_, place) in self.arguments(d) {
            let name = self.path.rsplit('.').next().unwrap_or_default();
            let message = format!("`{name}` takes no value");
            d.fault(FaultCode::UnexpectedValue, place, message);
        }
    }

    /// The block's name: its only argument, which is text.
    pub(super) fn name(&self, d: &mut Decoder<'t, '_>) -> Option<Setting<String>> {
        let noun = self.path.rsplit('.').next().unwrap_or_default();
        let arguments = self.arguments(d);
        for (_, place) in arguments.iter().skip(1) {
            d.fault(
                FaultCode::UnexpectedValue,
                *place,
                format!("`{noun}` has one name only"),
            );
        }
        match arguments.first() {
            Some((Value::Text(name), place)) if !name.trim().is_empty() => {
                Some(Setting::at(name.to_string(), *place))
            }
            Some((_, place)) => {
                d.fault(
                    FaultCode::WrongType,
                    *place,
                    format!("the name of a `{noun}` is text"),
                );
                None
            }
            None => {
                let place = self.place(d);
                let message = format!("this `{noun}` has no name");
                let fault = Fault::new(FaultCode::MissingValue, place, message);
                d.push(fault.help(format!("write `{noun} \"name\" {{ … }}`")));
                None
            }
        }
    }

    /// Faults whatever was written and nobody read; nothing may be swallowed.
    pub(super) fn close(self, d: &mut Decoder<'t, '_>) {
        for field in self.fields.borrow().iter() {
            let place = field.place(d);
            let message = format!("`{}` has no effect{}", field.name(), self.within(d));
            d.fault(FaultCode::Conflict, place, message);
        }
    }
}

/// The fault of a setting, or a word, that has no effect yet.
pub(super) fn not_yet_fault(what: &str, issue: &str, place: Place) -> Fault {
    let message = format!("{what} is not implemented yet");
    let fault = Fault::new(FaultCode::NotImplementedYet, place, message);
    fault
        .label("has no effect yet")
        .help(format!("it comes with `{issue}`; leave it out until then"))
}

fn is_not_yet<K, D>(spec: &Spec<K, D>) -> bool {
    matches!(spec.status, registry::Status::NotYet { .. })
}

fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}
