//! Migration of text: KDL 1 to KDL 2, deprecated settings to their successors. All other text is
//! preserved, comments and spaces included.

use crate::diagnostics::Diagnostics;
use crate::kdl::{self, Dialect, Name, Node, Parsed, Span, Value};
use crate::lines::Lines;
use crate::read::{forbidden_fault, syntax_error};
use crate::report::Report;
use proxy_model::{FileId, Sources, registry};

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The new text, KDL 2.
    pub text: String,
    /// What was changed, and what could not be, each with its line.
    pub notes: Vec<String>,
}

/// Migrates the text of one file; `name` stands for it in messages. Its includes are not migrated.
///
/// # Errors
///
/// The syntax errors of a text that is neither KDL 2 nor KDL 1.
pub fn migrate(text: &str, name: &str) -> Result<Migrated, Report> {
    let read = kdl::parse(text, Dialect::V2);
    let mut migration = Migration::new(text);
    let nodes = if read.faults.is_empty() {
        read.nodes
    } else {
        let (Parsed { nodes, faults }, words) = kdl::parse_with_words(text);
        if !faults.is_empty() {
            return Err(refused(text, name));
        }
        migration.respell(&words);
        nodes
    };
    migration.replace_deprecated(&nodes);
    let migrated = migration.finish();
    // A text that cannot be parsed again is never returned.
    if kdl::parse(&migrated.text, Dialect::V2).faults.is_empty() {
        return Ok(migrated);
    }
    Err(refused(&migrated.text, name))
}

pub(crate) fn refused(text: &str, name: &str) -> Report {
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let lines = Lines::new(text);
    let place = |span| lines.place(file, text, span);
    let mut faults = Diagnostics::default();
    match kdl::forbidden(text) {
        Some(span) => faults.push(forbidden_fault(text, span, place(span))),
        None => {
            for fault in kdl::read(text).err().into_iter().flatten() {
                let place = place(fault.span);
                faults.push(syntax_error(fault, place));
            }
        }
    }
    faults.into_report(sources)
}

struct Migration<'t> {
    text: &'t str,
    lines: Lines,
    /// Replacements of ranges of the text. None overlap.
    edits: Vec<(Span, String)>,
    notes: Vec<(u32, String)>,
}

impl<'t> Migration<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            lines: Lines::new(text),
            edits: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn finish(self) -> Migrated {
        let Self {
            text,
            mut edits,
            mut notes,
            ..
        } = self;
        edits.sort_by_key(|(span, _)| (span.start(), span.end()));
        notes.sort();
        let mut new = String::with_capacity(text.len() + text.len() / 8);
        let mut at = 0;
        for (span, instead) in &edits {
            new.push_str(text.get(at..span.start()).unwrap_or_default());
            new.push_str(instead);
            at = span.end();
        }
        new.push_str(text.get(at..).unwrap_or_default());
        let notes = notes
            .into_iter()
            .map(|(line, note)| format!("line {line}: {note}"));
        Migrated {
            text: new,
            notes: notes.collect(),
        }
    }

    fn slice(&self, span: Span) -> &'t str {
        self.text.get(span.start()..span.end()).unwrap_or_default()
    }

    fn note(&mut self, span: Span, note: impl Into<String>) {
        let place = self.lines.place(FileId::default(), self.text, span);
        self.notes.push((place.line, note.into()));
    }

    /// Rewrites every name and value of KDL 1 in the syntax of KDL 2.
    fn respell(&mut self, words: &[(Span, Value)]) {
        self.note(Span::default(), "KDL 1 became KDL 2");
        let mut version = None;
        for (span, value) in words {
            let written = self.slice(*span);
            if let Some(instead) = respelt(written, value) {
                self.edits.push((*span, instead));
            } else if version == Some(*span) {
                self.edits.push((*span, "2".to_owned()));
            }
            // `/- kdl-version 1` declares a file's version.
            let follows = Span::new(span.end() + 1, span.end() + 2);
            let is_version = written == "kdl-version" && self.slice(follows) == "1";
            version = is_version.then_some(follows);
        }
    }

    fn replace_deprecated(&mut self, nodes: &[Node]) {
        let named = |name: &'static str| move |node: &&Node| *node.name.text == *name;
        let upstreams = nodes.iter().filter(named("upstreams"));
        let upstreams = upstreams.flat_map(|node| node.children.iter().flatten());
        for upstream in upstreams.filter(named("upstream")) {
            self.replace_timeout(upstream);
        }
        for include in nodes.iter().filter(named("include")) {
            self.note(include.head, "included files are migrated by themselves");
        }
    }

    /// `timeout-secs 30` of an upstream becomes `timeouts { request-secs 30 }`.
    fn replace_timeout(&mut self, upstream: &Node) {
        let children = || upstream.children.iter().flatten();
        let flat = |name: &str| successor(name).is_some();
        let block =
            children().find(|node| &*node.name.text == "timeouts" && node.children.is_some());
        let said = block.is_some_and(has_request) || children().any(|node| flat(&node.name.text));
        for entry in &upstream.entries {
            if let Some(name) = &entry.name
                && let Some(nested) = successor(&name.text)
            {
                if said {
                    let note = format!("`{}` is said in the block, too; keep one", name.text);
                    self.note(name.span, note);
                } else {
                    self.move_property(upstream, block, (name, entry.span, nested));
                }
            }
        }
        for node in children().filter(|node| flat(&node.name.text)) {
            let Some(nested) = successor(&node.name.text) else {
                continue;
            };
            match block {
                None => self.wrap(node, nested),
                Some(block) if has_request(block) => {
                    let note = format!("`{}` and `timeouts` both say it; keep one", node.name.text);
                    self.note(node.head, note);
                }
                Some(block) => self.move_into(block, node, nested),
            }
        }
    }

    /// `upstream "u" timeout-secs=7 { … }`: removes the property and writes its successor into the
    /// block, as the first node.
    fn move_property(
        &mut self,
        upstream: &Node,
        timeouts: Option<&Node>,
        (name, value, nested): (&Name, Span, &str),
    ) {
        let setting = format!("{nested} {}", self.slice(value));
        let before = self.text.get(..name.span.start()).unwrap_or_default();
        let start = before.trim_end_matches([' ', '\t']).len();
        self.edits
            .push((Span::new(start, value.end()), String::new()));
        match (timeouts, &upstream.children) {
            (Some(timeouts), _) => self.write_first(timeouts, &setting),
            (None, Some(_)) => self.write_first(upstream, &format!("timeouts {{ {setting} }}")),
            (None, None) => {
                let end = Span::new(upstream.head.end(), upstream.head.end());
                let block = format!(" {{ timeouts {{ {setting} }} }}");
                self.edits.push((end, block));
            }
        }
        let note = format!("`{}` became `timeouts {{ {nested} }}`", name.text);
        self.note(name.span, note);
    }

    fn wrap(&mut self, flat: &Node, nested: &str) {
        let end = Span::new(flat.head.end(), flat.head.end());
        self.edits
            .push((flat.name.span, format!("timeouts {{ {nested}")));
        self.edits.push((end, " }".to_owned()));
        let note = format!("`{}` became `timeouts {{ {nested} }}`", flat.name.text);
        self.note(flat.head, note);
    }

    fn move_into(&mut self, block: &Node, flat: &Node, nested: &str) {
        let values = Span::new(flat.name.span.end(), flat.head.end());
        let setting = format!("{nested}{}", self.slice(values));
        self.write_first(block, &setting);
        self.edits
            .push((self.with_its_line(flat.head), String::new()));
        let note = format!("`{}` moved into `timeouts`", flat.name.text);
        self.note(flat.head, note);
    }

    /// Inserts `setting` at the beginning of `block`.
    fn write_first(&mut self, block: &Node, setting: &str) {
        let open = block.block.start() + 1;
        let first = block.children.iter().flatten().next();
        let lead = first.map_or("", |first| self.slice(Span::new(open, first.head.start())));
        // A block on one line needs a `;`; one on several lines has a line end.
        let instead = match lead.rsplit_once('\n') {
            Some((_, indent)) if indent.trim().is_empty() => format!("\n{indent}{setting}"),
            _ if first.is_some() => format!(" {setting};"),
            _ => format!(" {setting} "),
        };
        self.edits.push((Span::new(open, open), instead));
    }

    /// A node, extended to its whole line if no other node is on it.
    fn with_its_line(&self, head: Span) -> Span {
        let before = self.text.get(..head.start()).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let after = self.text.get(head.end()..).unwrap_or_default();
        let newline = after.find('\n').map_or(after.len(), |newline| newline + 1);
        let (rest, _) = after.split_at(newline);
        if before.split_at(start).1.trim().is_empty() && rest.trim().is_empty() {
            return Span::new(start, head.end() + newline);
        }
        let Some(behind) = rest.trim_start().strip_prefix(';') else {
            return head;
        };
        let kept = behind.trim_start_matches(' ').len();
        Span::new(head.start(), head.end() + rest.len() - kept)
    }
}

fn has_request(timeouts: &Node) -> bool {
    let mut children = timeouts.children.iter().flatten();
    children.any(|node| matches!(&*node.name.text, "request-secs" | "request-ms"))
}

/// The setting of `timeouts` that succeeds a deprecated setting of an upstream.
fn successor(name: &str) -> Option<&'static str> {
    let deprecated = registry::upstreams::TIMEOUT;
    deprecated.deprecated?;
    match name {
        "timeout-secs" => Some("request-secs"),
        "timeout-ms" => Some("request-ms"),
        _ => None,
    }
}

/// A value of KDL 1 in the syntax of KDL 2; `None` if the two are the same.
fn respelt(written: &str, value: &Value) -> Option<String> {
    match value {
        Value::Flag(_) | Value::Null => Some(format!("#{written}")),
        Value::Integer(_) | Value::Decimal(_) => None,
        Value::Text(text) if written.starts_with('"') => {
            let differs = written.contains(kdl::is_newline) || written.contains("\\/");
            differs.then(|| kdl::quoted(text))
        }
        Value::Text(text) => {
            let Some(raw) = raw_of(written) else {
                return (!kdl::is_bare(text, Dialect::V2)).then(|| kdl::quoted(text));
            };
            let plain = !text.contains(kdl::is_newline) && !text.starts_with('"');
            let hashed = if raw.starts_with('"') {
                format!("#{raw}#")
            } else {
                raw.to_owned()
            };
            Some(if plain { hashed } else { kdl::quoted(text) })
        }
    }
}

/// The rest of raw text in KDL 1 behind its `r`.
fn raw_of(written: &str) -> Option<&str> {
    let raw = written.strip_prefix('r')?;
    raw.trim_start_matches('#').starts_with('"').then_some(raw)
}
