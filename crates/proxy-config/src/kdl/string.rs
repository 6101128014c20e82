//! Text: bare, quoted and raw. [KDL 2.0 §3.9–3.13]

use super::chars::{is_bare_char, is_newline, is_space};
use super::multiline;
use super::scan::Scanner;
use super::syntax_error::{SyntaxError, SyntaxErrorKind};
use super::tree::{Dialect, Span};

impl Scanner<'_> {
    /// Reads quoted text. The scanner is at the `"`.
    pub(super) fn quoted(&mut self) -> Result<Box<str>, SyntaxError> {
        if self.dialect == Dialect::V2 && self.is_at("\"\"\"") {
            return multiline::read(self, 0);
        }
        let start = self.at;
        self.eat("\"");
        let mut text = String::new();
        loop {
            let plain = self.skip_while(|c| c != '"' && c != '\\' && !is_newline(c));
            text.push_str(self.slice(plain));
            match self.peek() {
                Some('"') => {
                    self.bump();
                    return Ok(text.into());
                }
                Some('\\') => text.extend(self.escape()?),
                Some(_) if self.dialect == Dialect::V1 => text.extend(self.bump()),
                Some(_) | None => return Err(self.unclosed(start)),
            }
        }
    }

    /// Reads text between `#"` and `"#`, or `r#"` and `"#` in KDL 1, with any number of `#`.
    pub(super) fn raw(&mut self) -> Result<Box<str>, SyntaxError> {
        let start = self.at;
        self.eat("r");
        let hashes = self.skip_while(|c| c == '#');
        let hashes = hashes.end() - hashes.start();
        if self.dialect == Dialect::V2 && self.is_at("\"\"\"") {
            return multiline::read(self, hashes);
        }
        self.eat("\"");
        let close = format!("\"{}", "#".repeat(hashes));
        let length = self.rest().find(&close);
        let body = length.and_then(|length| self.rest().get(..length));
        let on_one_line = |body: &&str| self.dialect == Dialect::V1 || !body.contains(is_newline);
        let Some(body) = body.filter(on_one_line) else {
            return Err(self.unclosed(start));
        };
        self.at += body.len() + close.len();
        Ok(body.into())
    }

    /// Reads one escape, at its `\`; `None` for an unknown one.
    fn escape(&mut self) -> Result<Option<char>, SyntaxError> {
        let start = self.at;
        self.eat("\\");
        let c = match self.bump() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('\\') => '\\',
            Some('"') => '"',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('s') if self.dialect == Dialect::V2 => ' ',
            Some('/') if self.dialect == Dialect::V1 => '/',
            Some('u') => return self.unicode_escape(start).map(Some),
            Some(c) if self.dialect == Dialect::V2 && (is_space(c) || is_newline(c)) => {
                self.skip_while(|c| is_space(c) || is_newline(c));
                return Ok(None);
            }
            Some(_) | None => return Err(self.bad_escape(start)),
        };
        Ok(Some(c))
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, SyntaxError> {
        let braced = self.eat("{");
        let digits = self.skip_while(|c| c.is_ascii_hexdigit());
        let digits = self.slice(digits);
        let closed = braced && self.eat("}");
        let code = u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| closed && digits.len() <= 6);
        code.and_then(char::from_u32)
            .ok_or_else(|| self.bad_escape(start))
    }

    fn bad_escape(&self, start: usize) -> SyntaxError {
        let known = match self.dialect {
            Dialect::V1 => r#"\n \r \t \\ \/ \" \b \f \u{…}"#,
            Dialect::V2 => r#"\n \r \t \\ \" \b \f \s \u{…}"#,
        };
        let span = self.since(start);
        SyntaxError::new(span, format!("`{}` is not an escape", self.slice(span))).help(format!(
            "known are {known}; for a regular expression, raw text keeps every `\\`: #\"\\d+\"#"
        ))
    }

    /// The error for text without its closing quote on the line or in the file.
    fn unclosed(&mut self, start: usize) -> SyntaxError {
        self.at = start;
        let span = self.skip_while(|c| !is_newline(c));
        let message = "this text is not closed on its line";
        let fault = SyntaxError::new(span, message)
            .label("opened here")
            .kind(SyntaxErrorKind::OpenText);
        match self.dialect {
            Dialect::V1 => fault,
            Dialect::V2 => {
                fault.help("write text of several lines between `\"\"\"`, each on a separate line")
            }
        }
    }

    /// Reads bare text, which may be a number or a keyword.
    pub(super) fn bare(&mut self) -> Span {
        let dialect = self.dialect;
        self.skip_while(|c| is_bare_char(c, dialect))
    }
}

/// Returns true if `text` needs no quotes.
pub(crate) fn is_bare(text: &str, dialect: Dialect) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let undotted = unsigned.strip_prefix('.').unwrap_or(unsigned);
    !text.is_empty()
        && text.chars().all(|c| is_bare_char(c, dialect))
        && !undotted.starts_with(|c: char| c.is_ascii_digit())
        && !is_keyword(text, dialect)
}

pub(super) fn is_keyword(text: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::V1 => matches!(text, "true" | "false" | "null"),
        Dialect::V2 => matches!(text, "true" | "false" | "null" | "inf" | "-inf" | "nan"),
    }
}

/// `text` in quotes, for either version.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if is_newline(c) || super::chars::is_forbidden(c) => {
                quoted.extend(c.escape_unicode());
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
