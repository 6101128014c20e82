//! Migration of text: KDL 1 to KDL 2, deprecated settings to their successors. The `kdl` crate's
//! document tree is edited, so that all other text stays as it is, comments and spaces included.

mod route_order;
mod timeouts;

use crate::aliases::{self, Mode};
use crate::diagnostics::Diagnostics;
use crate::kdl::document;
use crate::kdl::kdl2::Kdl2;
use crate::kdl::{self, Dialect, Node, Span};
use crate::read::foreign_format::ForeignFormat;
use crate::read::lines::Lines;
use crate::read::{forbidden_fault, foreign_format_fault, syntax_error};
use crate::report::Report;
use ::kdl::KdlNode;
use proxy_model::{FileId, Sources};

pub use route_order::route_order_notes;

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The new text, KDL 2.
    pub text: String,
    /// Changes, and settings that could not be migrated, each with its line.
    pub notes: Vec<String>,
}

/// Migrates the text of one file; `name` stands for it in messages. Its includes are not migrated.
///
/// # Errors
///
/// The syntax errors of a text that is neither KDL 2 nor KDL 1.
pub fn migrate(text: &str, name: &str) -> Result<Migrated, Report> {
    let Some(converted) = Kdl2::convert(text) else {
        return Err(refused(text, name));
    };
    let nodes = kdl::parse(&converted.text, Dialect::V2).nodes;
    let mut notes = Notes::new(&converted);
    if converted.is_converted {
        notes.push(0, "KDL 1 became KDL 2");
    }
    for include in named(&nodes, "include") {
        notes.push(
            include.head.start(),
            "included files are migrated by themselves",
        );
    }
    let deprecated = deprecated(&nodes);
    let mut root = aliases::root(nodes.clone());
    let found = aliases::replace(&mut root, Mode::Text);
    let has_aliases = !found.is_empty();
    let aliases = found.iter().map(|it| (it.at.start(), aliases::note(it)));
    let replaced = replace(&converted.text, &deprecated, has_aliases);
    let migrated = if let Some((migrated, replaced)) = replaced {
        notes.extend(replaced);
        notes.extend(aliases);
        migrated
    } else {
        notes.extend(deprecated.into_iter().map(by_hand));
        notes.extend(found.iter().map(|it| (it.at.start(), aliases::by_hand(it))));
        converted.text.to_string()
    };
    Ok(Migrated {
        text: migrated,
        notes: notes.finish(),
    })
}

/// The text with successors of the deprecated settings, and notes on the replacements. `None` if
/// the tree does not hold the whole text, or if the result could not be read.
fn replace(
    text: &str,
    deprecated: &[Deprecated<'_>],
    has_aliases: bool,
) -> Option<(String, Vec<(usize, String)>)> {
    if deprecated.is_empty() && !has_aliases {
        return Some((text.to_owned(), Vec::new()));
    }
    let mut document = document::parse(text)?;
    let replaced = timeouts::replace(&mut document);
    if has_aliases {
        let mut root = KdlNode::new("");
        root.set_children(document);
        drop(aliases::replace(&mut root, Mode::Text));
        document = root.children_mut().take()?;
    }
    let migrated = document.to_string();
    let is_valid = kdl::parse(&migrated, Dialect::V2).faults.is_empty();
    is_valid.then_some((migrated, replaced))
}

/// A deprecated setting of an upstream: its name, and its offset in the text.
type Deprecated<'n> = (&'n str, usize);

fn deprecated(nodes: &[Node]) -> Vec<Deprecated<'_>> {
    let upstreams = named(nodes, "upstreams").flat_map(|node| node.children.iter().flatten());
    let upstreams = upstreams.filter(|node| *node.name.text == *"upstream");
    let settings = upstreams.flat_map(|upstream| {
        let properties = upstream.entries.iter();
        let properties = properties.filter_map(|entry| entry.name.as_ref());
        let nodes = upstream.children.iter().flatten().map(|node| &node.name);
        properties.chain(nodes)
    });
    let settings = settings.filter(|name| timeouts::successor(&name.text).is_some());
    settings
        .map(|name| (&*name.text, name.span.start()))
        .collect()
}

fn named<'n>(nodes: &'n [Node], name: &'static str) -> impl Iterator<Item = &'n Node> {
    nodes.iter().filter(move |node| *node.name.text == *name)
}

fn by_hand((name, at): Deprecated<'_>) -> (usize, String) {
    let nested = timeouts::successor(name).unwrap_or_default();
    let note = format!("`{name}` is left; write `timeouts {{ {nested} }}` instead");
    (at, note)
}

/// The notes of a migration, each with its line in the given text.
struct Notes<'t> {
    converted: &'t Kdl2<'t>,
    lines: Lines,
    /// Lines, from 1, with their notes.
    found: Vec<(u32, String)>,
}

impl<'t> Notes<'t> {
    fn new(converted: &'t Kdl2<'t>) -> Self {
        Self {
            converted,
            lines: Lines::new(&converted.text),
            found: Vec::new(),
        }
    }

    /// Adds a note about what is at the byte `at` of the converted text.
    fn push(&mut self, at: usize, note: impl Into<String>) {
        let Self {
            converted, lines, ..
        } = self;
        let place = lines.place(FileId::default(), &converted.text, Span::new(at, at));
        let line = place.line + converted.joined_lines(at);
        self.found.push((line, note.into()));
    }

    fn extend(&mut self, notes: impl IntoIterator<Item = (usize, String)>) {
        for (at, note) in notes {
            self.push(at, note);
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.found.sort();
        let notes = self.found.into_iter();
        notes
            .map(|(line, note)| format!("line {line}: {note}"))
            .collect()
    }
}

/// The syntax errors of a text.
pub(crate) fn refused(text: &str, name: &str) -> Report {
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let lines = Lines::new(text);
    let place = |span| lines.place(file, text, span);
    let mut faults = Diagnostics::default();
    if let Some(span) = kdl::forbidden(text) {
        faults.push(forbidden_fault(text, span, place(span)));
    } else if let Some((format, line)) = ForeignFormat::detect(text) {
        let start = text.find(line).unwrap_or_default();
        let span = Span::new(start, start + line.len());
        faults.push(foreign_format_fault(format, place(span)));
    } else {
        let mut items_left = kdl::MAX_ITEMS;
        let read = kdl::read(text, &mut items_left);
        for fault in read.err().into_iter().flatten() {
            let place = place(fault.span);
            faults.push(syntax_error(fault, place));
        }
    }
    faults.into_report(sources)
}
