//! Nodes, their entries and their blocks. [KDL 2.0 §3.1–3.8]

use super::recover::skip_node;
use super::scan::Scanner;
use super::syntax_error::{SyntaxError, SyntaxErrorKind};
use super::tree::{Dialect, Entry, Name, Node, Span, Value};

/// Maximum depth of nested blocks.
pub(crate) const MAX_DEPTH: usize = 32;
/// Maximum number of nodes, arguments and properties of a configuration; each takes about a hundred
/// bytes.
pub(crate) const MAX_ITEMS: usize = 2_000_000;
/// Maximum number of errors recorded for one file; reading stops there.
const MAX_FAULTS: usize = 1_000;

/// The result of parsing a text.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) nodes: Vec<Node>,
    /// Syntax errors, in the order of the text. If there are any, nodes are missing.
    pub(crate) faults: Vec<SyntaxError>,
    /// Depth of nodes and values commented out by `/-`; 0 if there are none.
    pub(crate) disabled_depth: usize,
    /// Number of nodes, arguments and properties.
    pub(crate) items: usize,
}

pub(crate) fn parse(text: &str, dialect: Dialect) -> Parsed {
    parse_within(text, dialect, MAX_ITEMS)
}

/// Reads `text` as `dialect`, if it has at most so many nodes, arguments and properties.
pub(crate) fn parse_within(text: &str, dialect: Dialect, max_items: usize) -> Parsed {
    run(text, dialect, max_items, None).0
}

/// Reads `text` as KDL 1, and returns each name and value with its place, in the order of the text,
/// including those commented out by `/-`.
pub(crate) fn parse_with_words(text: &str) -> (Parsed, Words) {
    run(text, Dialect::V1, MAX_ITEMS, Some(Vec::new()))
}

type Words = Vec<(Span, Value)>;

fn run(text: &str, dialect: Dialect, max_items: usize, words: Option<Words>) -> (Parsed, Words) {
    let mut parser = Parser {
        scanner: Scanner {
            text,
            at: 0,
            dialect,
            words,
        },
        open: Vec::new(),
        suspect: None,
        faults: Vec::new(),
        shaken: false,
        max_items,
        items: 0,
        disabled: 0,
        disabled_depth: 0,
        given_up: false,
    };
    parser.scanner.eat("\u{feff}");
    let nodes = parser.nodes();
    let mut faults = parser.faults;
    faults.sort_by_key(|fault| fault.span.start());
    (
        Parsed {
            nodes,
            faults,
            disabled_depth: parser.disabled_depth,
            items: parser.items,
        },
        parser.scanner.words.unwrap_or_default(),
    )
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    /// Opening braces without a closing brace yet.
    open: Vec<OpenBrace>,
    /// The first brace with a closing brace that is indented less than the line of the opening one.
    suspect: Option<Span>,
    faults: Vec<SyntaxError>,
    /// A text was left unclosed: braces after it may have been read as text.
    shaken: bool,
    max_items: usize,
    /// Number of nodes, arguments and properties read.
    items: usize,
    /// Nodes and values commented out by `/-` that are being read.
    disabled: usize,
    /// Maximum value that `disabled` has reached.
    disabled_depth: usize,
    given_up: bool,
}

#[derive(Clone, Copy)]
struct OpenBrace {
    span: Span,
    indent: usize,
}

type Read<T> = Result<T, SyntaxError>;

impl Parser<'_> {
    fn nodes(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        while !self.given_up {
            match self.next_node(&mut nodes) {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => self.recover(fault),
            }
        }
        nodes
    }

    /// Reads the next node of this block; false at the block's end.
    fn next_node(&mut self, nodes: &mut Vec<Node>) -> Read<bool> {
        self.scanner.line_space()?;
        match self.scanner.peek() {
            None => return Ok(false),
            Some('}') if !self.open.is_empty() => return Ok(false),
            Some('}') => return Err(self.stray_brace()),
            Some(_) => {}
        }
        let skipped = self.slashdash()?;
        let node = self.node();
        self.disabled -= usize::from(skipped);
        let node = node?;
        nodes.extend((!skipped).then_some(node));
        Ok(true)
    }

    fn node(&mut self) -> Read<Node> {
        let annotation = self.scanner.annotation()?;
        let name = self.scanner.node_name()?;
        self.count(name.span)?;
        let mut node = Node {
            annotation,
            head: name.span,
            block: Span::default(),
            name,
            entries: Vec::new(),
            children: None,
        };
        let mut after_block = false;
        loop {
            let spaced = self.scanner.node_space()?;
            if self.given_up || self.ends_node() {
                break;
            }
            let skipped = self.slashdash()?;
            if self.scanner.is_at("{") {
                after_block = true;
                let start = self.scanner.at;
                let children = self.block()?;
                if !skipped {
                    only_block(&node, self.scanner.since(start))?;
                    node.children = Some(children);
                    node.block = self.scanner.since(start);
                }
            } else if spaced {
                let entry = self.entry()?;
                self.count(entry.span)?;
                if after_block {
                    return Err(behind_block(&entry));
                }
                if !skipped {
                    node.head = node.head.to(entry.span);
                    node.entries.push(entry);
                }
            } else {
                return Err(self.scanner.unexpected("a space before the next value"));
            }
            self.disabled -= usize::from(skipped);
        }
        Ok(node)
    }

    /// Counts the item at `span`. Items that are commented out count too.
    fn count(&mut self, span: Span) -> Read<()> {
        self.items += 1;
        if self.items <= self.max_items || self.given_up {
            return Ok(());
        }
        let message = format!("more than {MAX_ITEMS} names and values in all files");
        Err(SyntaxError::new(span, message).kind(SyntaxErrorKind::TooMany))
    }

    fn ends_node(&mut self) -> bool {
        let scanner = &mut self.scanner;
        scanner.line_comment()
            || scanner.eat(";")
            || scanner.eat_newline()
            || matches!(scanner.peek(), None | Some('}'))
    }

    fn block(&mut self) -> Read<Vec<Node>> {
        let start = self.scanner.at;
        self.scanner.eat("{");
        let span = self.scanner.since(start);
        if self.open.len() >= MAX_DEPTH {
            let message = format!("blocks are nested {} deep here", MAX_DEPTH + 1);
            let fault = SyntaxError::new(span, message).kind(SyntaxErrorKind::TooDeep);
            return Err(fault.label(format!("at most {MAX_DEPTH} are read")));
        }
        let indent = indent_of_line(self.scanner.text, start);
        self.open.push(OpenBrace { span, indent });
        let nodes = self.nodes();
        self.open.pop();
        self.close(OpenBrace { span, indent });
        Ok(nodes)
    }

    fn close(&mut self, brace: OpenBrace) {
        let start = self.scanner.at;
        if !self.scanner.eat("}") {
            // Only the outermost block is reported; the inner ones are consequences of it.
            if self.open.is_empty() && !self.shaken && !self.given_up {
                let span = self.suspect.unwrap_or(brace.span);
                let fault = SyntaxError::new(span, "this block is never closed");
                self.note(fault.label("opened here"));
            }
            return;
        }
        let line_start = line_start(self.scanner.text, start);
        let before = self.scanner.slice(Span::new(line_start, start));
        let leads_line = before.chars().all(char::is_whitespace);
        if leads_line && before.chars().count() < brace.indent {
            self.suspect.get_or_insert(brace.span);
        }
    }

    fn entry(&mut self) -> Read<Entry> {
        let annotation = self.scanner.annotation()?;
        let (value, span) = self.scanner.value()?;
        let after = self.scanner.at;
        self.scanner.node_space()?;
        if annotation.is_some() || !self.scanner.eat("=") {
            self.scanner.at = after;
            return Ok(Entry {
                name: None,
                annotation,
                value,
                span,
            });
        }
        let Value::Text(text) = value else {
            return Err(SyntaxError::new(span, "a property's name is text"));
        };
        self.scanner.node_space()?;
        let annotation = self.scanner.annotation()?;
        let name = Some(Name { text, span });
        let (value, span) = self.scanner.value()?;
        Ok(Entry {
            name,
            annotation,
            value,
            span,
        })
    }

    fn slashdash(&mut self) -> Read<bool> {
        let there = self.scanner.eat("/-");
        if there {
            self.scanner.line_space()?;
            self.disabled += 1;
            self.disabled_depth = self.disabled_depth.max(self.disabled);
        }
        Ok(there)
    }

    fn stray_brace(&mut self) -> SyntaxError {
        let start = self.scanner.at;
        self.scanner.eat("}");
        SyntaxError::new(self.scanner.since(start), "this `}` closes nothing")
            .label("no block is open")
            .kind(SyntaxErrorKind::StrayBrace)
    }

    fn recover(&mut self, fault: SyntaxError) {
        let is_stray = fault.kind == SyntaxErrorKind::StrayBrace;
        // Never before the error, so that the loop makes progress.
        self.scanner.at = self.scanner.at.max(fault.span.end());
        if !is_stray {
            skip_node(&mut self.scanner);
            // The `;` ends the broken node; alone it would be a second error.
            self.scanner.eat(";");
        }
        if !(is_stray && self.shaken) {
            self.note(fault);
        }
    }

    fn note(&mut self, fault: SyntaxError) {
        self.shaken |= fault.kind == SyntaxErrorKind::OpenText;
        self.given_up |= matches!(
            fault.kind,
            SyntaxErrorKind::TooDeep | SyntaxErrorKind::TooMany
        );
        self.faults.push(fault);
        self.given_up |= self.faults.len() >= MAX_FAULTS;
    }
}

fn only_block(node: &Node, block: Span) -> Read<()> {
    if node.children.is_none() {
        return Ok(());
    }
    let brace = Span::new(block.start(), block.start() + 1);
    Err(SyntaxError::new(brace, "a node has one block only").label("a second block"))
}

fn behind_block(entry: &Entry) -> SyntaxError {
    let span = entry.name.as_ref().map_or(entry.span, |name| name.span);
    let fault = SyntaxError::new(span, "write the value before the block, or on a new line");
    fault.help("begin another setting on a new line, or after `;`")
}

fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.rfind('\n').map_or(0, |newline| newline + 1)
}

fn indent_of_line(text: &str, at: usize) -> usize {
    let line = text.get(line_start(text, at)..).unwrap_or_default();
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).count()
}
