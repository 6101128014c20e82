//! Text between `"""`, less the indentation of its last line. [KDL 2.0 §3.12]

use super::chars::{is_newline, is_space};
use super::scan::Scanner;
use super::syntax_error::{SyntaxError, SyntaxErrorKind};
use super::tree::{Dialect, Span};

/// Reads multi-line text. The scanner is at the `"""`, after `hashes` of `#`; the text is raw if
/// there is one.
pub(super) fn read(scanner: &mut Scanner<'_>, hashes: usize) -> Result<Box<str>, SyntaxError> {
    let start = scanner.at;
    scanner.eat("\"\"\"");
    let opening = scanner.since(start);
    if !scanner.eat_newline() {
        let message = "text that begins with `\"\"\"` begins on the next line";
        return Err(SyntaxError::new(opening, message).kind(SyntaxErrorKind::OpenText));
    }
    let body = body(scanner, hashes).ok_or_else(|| {
        SyntaxError::new(opening, "this text is never closed")
            .label("opened here")
            .kind(SyntaxErrorKind::OpenText)
    })?;
    let span = Span::new(start, scanner.at);
    let joined = if hashes == 0 {
        join_lines(body)
    } else {
        body.to_owned()
    };
    let text = dedent(&joined).map_err(|message| SyntaxError::new(span, message))?;
    if hashes > 0 {
        return Ok(text.into());
    }
    resolve(&text, span)
}

/// The text before the closing quotes, which are consumed.
fn body<'t>(scanner: &mut Scanner<'t>, hashes: usize) -> Option<&'t str> {
    let close = format!("\"\"\"{}", "#".repeat(hashes));
    let start = scanner.at;
    loop {
        scanner.skip_while(|c| c != '"' && (hashes > 0 || c != '\\'));
        if scanner.is_at(&close) {
            let body = scanner.slice(scanner.since(start));
            scanner.eat(&close);
            return Some(body);
        }
        if scanner.bump()? == '\\' {
            scanner.bump()?;
        }
    }
}

/// Removes each `\` at the end of a line, together with all white space around that line end.
fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        joined.push_str(before);
        let blank = |c| is_space(c) || is_newline(c);
        rest = after.trim_start_matches(blank);
        if rest.len() == after.len() {
            joined.push('\\');
            let escaped = after.chars().next();
            joined.extend(escaped);
            rest = after
                .get(escaped.map_or(0, char::len_utf8)..)
                .unwrap_or_default();
        }
    }
    joined.push_str(rest);
    joined
}

/// Removes the last line's indentation from every line. Blank lines become empty.
fn dedent(text: &str) -> Result<String, &'static str> {
    let text = text.replace("\r\n", "\n");
    let mut lines: Vec<&str> = text.split(is_newline).collect();
    let indent = lines.pop().unwrap_or_default();
    if !indent.chars().all(is_space) {
        return Err("the closing `\"\"\"` must be on a separate line");
    }
    let cut = |line: &&str| match line.strip_prefix(indent) {
        Some(rest) if !line.chars().all(is_space) => Ok(rest.to_owned()),
        None if !line.chars().all(is_space) => {
            Err("every line must be indented at least as the closing `\"\"\"` is")
        }
        Some(_) | None => Ok(String::new()),
    };
    let lines: Result<Vec<String>, _> = lines.iter().map(cut).collect();
    Ok(lines?.join("\n"))
}

/// Resolves the remaining escapes, by reading the text as if it were in plain quotes.
fn resolve(text: &str, span: Span) -> Result<Box<str>, SyntaxError> {
    let mut resolved = String::with_capacity(text.len());
    for (index, part) in text.split('\n').enumerate() {
        if index > 0 {
            resolved.push('\n');
        }
        resolved.push_str(&resolve_line(part, span)?);
    }
    Ok(resolved.into())
}

fn resolve_line(line: &str, span: Span) -> Result<Box<str>, SyntaxError> {
    if !line.contains('\\') {
        return Ok(line.into());
    }
    let mut inside = String::with_capacity(line.len() + 2);
    let mut escaped = false;
    inside.push('"');
    for c in line.chars() {
        if c == '"' && !escaped {
            inside.push('\\');
        }
        escaped = c == '\\' && !escaped;
        inside.push(c);
    }
    inside.push('"');
    let mut scanner = Scanner {
        text: &inside,
        at: 0,
        dialect: Dialect::V2,
        words: None,
    };
    scanner
        .quoted()
        .map_err(|fault| SyntaxError { span, ..fault })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> Result<String, String> {
        let mut scanner = Scanner {
            text: source,
            at: 0,
            dialect: Dialect::V2,
            words: None,
        };
        let text = scanner.quoted().map_err(|fault| fault.message)?;
        assert!(scanner.rest().is_empty(), "{source}");
        Ok(text.into())
    }

    #[test]
    fn the_last_lines_indentation_is_taken_off_all() {
        let source = "\"\"\"\n    a\n      b\n\n  \n    \"c\\t\"\n    \"\"\"";
        assert_eq!(text(source).unwrap(), "a\n  b\n\n\n\"c\t\"");
        assert_eq!(text("\"\"\"\n\"\"\"").unwrap(), "");
        assert_eq!(
            text("\"\"\"\r\n  a \\\r\n    b\r\n  \"\"\"").unwrap(),
            "a b"
        );
    }

    #[test]
    fn malformed_multiline_texts_are_refused() {
        assert!(text("\"\"\"\n  a\n b\n  \"\"\"").is_err());
        assert!(text("\"\"\"\n  a\"\"\"").is_err());
        assert!(text("\"\"\" a\n\"\"\"").is_err());
        assert!(text("\"\"\"\n a").is_err());
    }
}
