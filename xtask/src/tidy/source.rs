//! Separates the code and comments of a Rust file. The contents of string literals belong to
//! neither.

/// Lines of a Rust file.
#[derive(Debug)]
pub(super) struct Source {
    /// Code of each line, without the contents of literals.
    pub(super) code: Vec<String>,
    /// Comments of each line, with their slashes.
    pub(super) comments: Vec<String>,
    /// Number of lines before the tests at the end.
    pub(super) tests_start: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let mut code = vec![String::new()];
        let mut comments = vec![String::new()];
        let mut rest = text;
        while !rest.is_empty() {
            let (kind, length) = token(rest);
            let (piece, remainder) = rest.split_at(length);
            for (index, line) in piece.split('\n').enumerate() {
                if index > 0 {
                    code.push(String::new());
                    comments.push(String::new());
                }
                let into = match kind {
                    Kind::Code => code.last_mut(),
                    Kind::Comment => comments.last_mut(),
                    Kind::Literal => None,
                };
                if let Some(into) = into {
                    into.push_str(line);
                }
            }
            rest = remainder;
        }
        if text.ends_with('\n') {
            code.pop();
            comments.pop();
        }
        let tests_start = tests_start(&code);
        Self {
            code,
            comments,
            tests_start,
        }
    }
}

fn tests_start(code: &[String]) -> usize {
    let opens = |line: &String| {
        let line = line.trim();
        line.starts_with("mod ") && line.ends_with('{')
    };
    code.windows(2)
        .position(|pair| match pair {
            [first, second] => first.trim() == "#[cfg(test)]" && opens(second),
            _ => false,
        })
        .unwrap_or(code.len())
}

/// Returns the first token, and its length in bytes, which is never 0.
fn token(text: &str) -> (Kind, usize) {
    if text.starts_with("//") {
        return (Kind::Comment, text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return (Kind::Comment, block_comment(text));
    }
    if text.starts_with('"') {
        return (Kind::Literal, quoted(text, '"'));
    }
    if text.starts_with('\'') {
        return character_or_lifetime(text);
    }
    let word = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let Some((name, after)) = text.split_at_checked(word).filter(|_| word > 0) else {
        return (Kind::Code, text.chars().next().map_or(1, char::len_utf8));
    };
    match name {
        "r" | "br" | "cr" => {
            raw(after).map_or((Kind::Code, word), |rest| (Kind::Literal, word + rest))
        }
        "b" | "c" if after.starts_with('"') => (Kind::Literal, word + quoted(after, '"')),
        _ => (Kind::Code, word),
    }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of a literal, including its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !escaped && c == quote {
            return at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    text.len()
}

fn character_or_lifetime(text: &str) -> (Kind, usize) {
    let mut inside = text.chars().skip(1);
    let (first, second) = (inside.next(), inside.next());
    if first == Some('\\') || second == Some('\'') {
        return (Kind::Literal, quoted(text, '\''));
    }
    (Kind::Code, 1)
}

/// Returns the length of a raw string, from its first `#` or quote; `None` if the text is not a raw
/// string.
fn raw(text: &str) -> Option<usize> {
    let hashes = text.find(|c| c != '#')?;
    let inside = text.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).unwrap_or(inside.len());
    Some((hashes + 1 + length + end.len()).min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_code_of_a_line_part() {
        let source = Source::parse("let a = 1; // one\n/* two\nthree */ let b;\n");

        assert_eq!(source.code, ["let a = 1; ", "", " let b;"]);
        assert_eq!(source.comments, ["// one", "/* two", "three */"]);
    }

    #[test]
    fn text_in_literals_is_neither() {
        let source = Source::parse(
            "f(\"// no \\\" comment\", r#\"/* \" */\"#, b\"x\", '\"', '\\'', 'a: loop {});\n",
        );

        assert_eq!(source.code, ["f(, , , , , 'a: loop {});"]);
        assert_eq!(source.comments, [""]);
    }

    #[test]
    fn raw_names_and_lifetimes_are_code() {
        let source = Source::parse("fn r#type<'a>(b: &'a str) {}");

        assert_eq!(source.code, ["fn r#type<'a>(b: &'a str) {}"]);
    }

    #[test]
    fn block_comments_nest() {
        let source = Source::parse("/* a /* b */ c */ d");

        assert_eq!(source.code, [" d"]);
    }

    #[test]
    fn tests_begin_at_their_module_and_not_at_a_single_function() {
        let text = "fn a() {}\n#[cfg(test)]\nfn b() {}\n#[cfg(test)]\nmod tests {\n}\n";

        assert_eq!(Source::parse(text).tests_start, 3);
        assert_eq!(Source::parse("fn a() {}\n").tests_start, 1);
    }
}
