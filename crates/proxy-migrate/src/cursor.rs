//! A position in a file, with its line number.

use crate::migrated::{Place, SyntaxError};
use crate::source::Source;
use std::iter::Peekable;
use std::str::Chars;

/// Iterator over the characters of a file.
pub(crate) struct Cursor<'t> {
    file: &'t str,
    chars: Peekable<Chars<'t>>,
    line: u32,
}

impl<'t> Cursor<'t> {
    /// Starts at the beginning of `source`.
    pub(crate) fn new(source: &'t Source) -> Self {
        Self {
            file: &source.name,
            chars: source.text.chars().peekable(),
            line: 1,
        }
    }

    /// The next character, without consuming it.
    pub(crate) fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    /// Consumes the next character; `None` at the end.
    pub(crate) fn bump(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        self.line += u32::from(c == '\n');
        Some(c)
    }

    /// Consumes the next character if it is one of `wanted`.
    pub(crate) fn bump_if(&mut self, wanted: &[char]) -> Option<char> {
        let next = self.peek().filter(|c| wanted.contains(c))?;
        self.bump();
        Some(next)
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            file: self.file.to_owned(),
            line: self.line,
        }
    }

    pub(crate) fn error(&self, message: &str) -> SyntaxError {
        SyntaxError {
            place: self.place(),
            message: message.to_owned(),
        }
    }
}
