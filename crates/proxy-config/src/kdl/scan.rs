//! The scanner: spaces, comments and line ends.

use super::chars::{is_newline, is_space};
use super::syntax_error::{SyntaxError, SyntaxErrorKind};
use super::tree::{Dialect, Span, Value};

/// A position in the text, moving forward.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) dialect: Dialect,
    /// The names and values read; `None` unless requested.
    pub(super) words: Option<Vec<(Span, Value)>>,
}

impl<'t> Scanner<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn slice(&self, span: Span) -> &'t str {
        self.text.get(span.start()..span.end()).unwrap_or_default()
    }

    pub(super) fn since(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn is_at(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let there = self.is_at(text);
        if there {
            self.at += text.len();
        }
        there
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn skip_while(&mut self, mut keep: impl FnMut(char) -> bool) -> Span {
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        self.since(start)
    }

    pub(super) fn eat_newline(&mut self) -> bool {
        self.eat("\r\n") || self.peek().is_some_and(is_newline) && self.bump().is_some()
    }

    /// Skips separators within a node: spaces, `/* */`, and a `\` that continues the node on the
    /// next line. Returns whether there was any.
    pub(super) fn node_space(&mut self) -> Result<bool, SyntaxError> {
        let start = self.at;
        loop {
            self.skip_while(is_space);
            if self.is_at("/*") {
                self.block_comment()?;
            } else if self.is_at("\\") {
                self.line_continuation()?;
            } else {
                return Ok(self.at > start);
            }
        }
    }

    /// Skips separators between nodes.
    pub(super) fn line_space(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.node_space()?;
            if !self.line_comment() && !self.eat_newline() {
                return Ok(());
            }
        }
    }

    /// Skips `// …`, up to the end of the line.
    pub(super) fn line_comment(&mut self) -> bool {
        let there = self.is_at("//");
        if there {
            self.skip_while(|c| !is_newline(c));
        }
        there
    }

    fn line_continuation(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        self.eat("\\");
        loop {
            self.skip_while(is_space);
            if !self.is_at("/*") {
                break;
            }
            self.block_comment()?;
        }
        if self.line_comment() | self.eat_newline() || self.rest().is_empty() {
            self.eat_newline_after_comment();
            return Ok(());
        }
        let span = Span::new(start, start + 1);
        Err(SyntaxError::new(
            span,
            "a `\\` is only allowed at the end of a line",
        ))
    }

    fn eat_newline_after_comment(&mut self) {
        let before = self.text.get(..self.at).unwrap_or_default();
        if !before.ends_with(is_newline) {
            self.eat_newline();
        }
    }

    fn block_comment(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            if self.eat("/*") {
                depth += 1;
            } else if self.eat("*/") {
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
            } else if self.bump().is_none() {
                let span = Span::new(start, start + 2);
                return Err(SyntaxError::new(span, "this comment is never closed")
                    .label("opened here")
                    .help("comments nest: each `/*` needs a `*/`")
                    .kind(SyntaxErrorKind::OpenText));
            }
        }
    }
}
