//! Values, names and type annotations.

use super::chars::is_newline;
use super::number;
use super::scan::Scanner;
use super::string::{is_bare, is_keyword};
use super::syntax_error::{SyntaxError, SyntaxErrorKind};
use super::tree::{Dialect, Name, Span, Value};

type Read<T> = Result<T, SyntaxError>;

/// The expected kind of a piece of text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedText {
    Name,
    Value,
}

impl ExpectedText {
    const fn name(self) -> &'static str {
        match self {
            Self::Name => "a name",
            Self::Value => "a value",
        }
    }
}

impl Scanner<'_> {
    pub(super) fn node_name(&mut self) -> Read<Name> {
        let (value, span) = self.text_or_value(ExpectedText::Name)?;
        match value {
            Value::Text(text) => Ok(Name { text, span }),
            Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::Null => {
                Err(SyntaxError::new(span, "a node begins with a name").label("not a name"))
            }
        }
    }

    pub(super) fn value(&mut self) -> Read<(Value, Span)> {
        self.text_or_value(ExpectedText::Value)
    }

    fn text_or_value(&mut self, wanted: ExpectedText) -> Read<(Value, Span)> {
        let start = self.at;
        let value = match self.peek() {
            Some('"') => Value::Text(self.quoted()?),
            Some('#') => self.hash(wanted)?,
            Some('r') if self.is_raw_v1() => Value::Text(self.raw()?),
            Some(_) | None => {
                let span = self.bare();
                self.bare_value(span, wanted)?
            }
        };
        let span = self.since(start);
        if let Some(words) = &mut self.words {
            words.push((span, value.clone()));
        }
        Ok((value, span))
    }

    fn is_raw_v1(&self) -> bool {
        let rest = self.rest().trim_start_matches('r');
        let is_raw = rest.trim_start_matches('#').starts_with('"');
        self.dialect == Dialect::V1 && is_raw && self.rest().len() == rest.len() + 1
    }

    /// Reads a value that begins with `#`: raw text or a keyword.
    fn hash(&mut self, wanted: ExpectedText) -> Read<Value> {
        let start = self.at;
        let rest = self.rest();
        let is_raw = rest.trim_start_matches('#').starts_with('"');
        if self.dialect == Dialect::V2 && is_raw {
            return self.raw().map(Value::Text);
        }
        self.bump();
        let word = self.bare();
        if wanted == ExpectedText::Name || self.slice(word).is_empty() {
            self.skip_while(|c| !is_newline(c));
            let span = self.since(start);
            return Err(SyntaxError::new(span, "a comment begins with `//`")
                .label("not with `#`")
                .help("write `//` in place of `#`; `/*` and `*/` enclose longer ones"));
        }
        let value = match self.slice(word) {
            "true" => Value::Flag(true),
            "false" => Value::Flag(false),
            "null" => Value::Null,
            "inf" => Value::Decimal(f64::INFINITY),
            "-inf" => Value::Decimal(f64::NEG_INFINITY),
            "nan" => Value::Decimal(f64::NAN),
            _ => {
                let span = self.since(start);
                let message = format!("`{}` is not a keyword", self.slice(span));
                return Err(SyntaxError::new(span, message)
                    .help("known are `#true`, `#false` and `#null`; quote other text with `#`"));
            }
        };
        if self.dialect == Dialect::V1 {
            let span = self.since(start);
            let message = format!(
                "`{}` is KDL 2, but the file is read as KDL 1",
                self.slice(span)
            );
            return Err(SyntaxError::new(span, message).kind(SyntaxErrorKind::OtherDialect));
        }
        Ok(value)
    }

    fn bare_value(&mut self, span: Span, what: ExpectedText) -> Read<Value> {
        let text = self.slice(span);
        if text.is_empty() {
            return Err(self.unexpected(what.name()));
        }
        let dialect = self.dialect;
        match (dialect, text) {
            (Dialect::V1, "true") => return Ok(Value::Flag(true)),
            (Dialect::V1, "false") => return Ok(Value::Flag(false)),
            (Dialect::V1, "null") => return Ok(Value::Null),
            (Dialect::V2, "r") if self.is_at("\"") || self.is_at("#") => {
                let span = span.to(Span::new(span.end(), span.end() + 1));
                return Err(
                    SyntaxError::new(span, "raw text is written #\"…\"# in KDL 2")
                        .kind(SyntaxErrorKind::OtherDialect),
                );
            }
            (Dialect::V2, word) if is_keyword(word, dialect) => {
                let message = format!("`{word}` is written `#{word}` in KDL 2");
                return Err(SyntaxError::new(span, message)
                    .label(format!("write `#{word}`"))
                    .help("a file is KDL 1 or KDL 2 throughout; quotes make it text")
                    .kind(SyntaxErrorKind::OtherDialect));
            }
            _ => {}
        }
        if is_bare(text, dialect) {
            return self.bare_text(text, span, what);
        }
        number::read(text).ok_or_else(|| {
            let message = format!("`{text}` is not a number");
            SyntaxError::new(span, message).help("quote text that begins with a digit")
        })
    }

    /// Bare text is a name; as a value it is an error in KDL 1.
    fn bare_text(&self, text: &str, span: Span, what: ExpectedText) -> Read<Value> {
        let is_name = what == ExpectedText::Name || self.is_at("=");
        if self.dialect == Dialect::V1 && !is_name {
            let message = format!("quote the text: \"{text}\"");
            return Err(SyntaxError::new(span, message).kind(SyntaxErrorKind::OtherDialect));
        }
        Ok(Value::Text(text.into()))
    }

    /// Reads a type annotation, `(name)`, if there is one.
    pub(super) fn annotation(&mut self) -> Read<Option<Span>> {
        let start = self.at;
        if !self.eat("(") {
            return Ok(None);
        }
        self.node_space()?;
        self.node_name()?;
        self.node_space()?;
        if !self.eat(")") {
            return Err(self.unexpected("`)`"));
        }
        let span = self.since(start);
        self.node_space()?;
        Ok(Some(span))
    }

    /// The message for a `/` outside of quotes.
    fn quotes_wanted(&self) -> String {
        let end = |c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}' | '"');
        let before = self.text.get(..self.at).unwrap_or_default();
        let start = before.rfind(end).map_or(0, |at| {
            at + before
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or(1, char::len_utf8)
        });
        let rest = self.text.get(start..).unwrap_or_default();
        let word = rest.split(end).next().unwrap_or_default();
        format!("quote text that contains a `/`: `\"{word}\"`")
    }

    pub(super) fn unexpected(&self, wanted: &str) -> SyntaxError {
        let at = self.at;
        let (found, length) = match self.peek() {
            None => ("the end of the file".to_owned(), 0),
            Some(c) if is_newline(c) => ("the end of the line".to_owned(), 0),
            Some(c) => (format!("`{c}`"), c.len_utf8()),
        };
        let message = format!("expected {wanted}, found {found}");
        let fault = SyntaxError::new(Span::new(at, at + length), message);
        if self.is_at("=") {
            return fault.help("a setting is written `name value`, without `=`");
        }
        if self.is_at("/") {
            return fault.help(self.quotes_wanted());
        }
        fault
    }
}
