//! Regular expressions of other servers as those of this program, which have neither look-around nor back references.

use regex_syntax::Parser;

/// An expression of another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Converted {
    /// It matches the same paths.
    Same(String),
    /// It matches these paths and others: a part of it is left out.
    Wider(String),
}

/// Converts an expression. With `ignores_case` letters are compared without case.
pub(crate) fn converted(regex: &str, ignores_case: bool) -> Converted {
    let flag = if ignores_case { "(?i)" } else { "" };
    let is_valid = |regex: &str| Parser::new().parse(regex).is_ok();
    let same = format!("{flag}{regex}");
    if is_valid(&same) {
        return Converted::Same(same);
    }
    if let Some(same) = without_prefix(regex).filter(|it| is_valid(it)) {
        return Converted::Same(format!("{flag}{same}"));
    }
    let wider = format!("{flag}{}", without_groups(regex));
    if is_valid(&wider) {
        Converted::Wider(wider)
    } else {
        Converted::Wider("^/".to_owned())
    }
}

/// `A(?!word).*` as an expression for `A` that no `word` follows, where nothing but the rest of the path is behind it.
fn without_prefix(regex: &str) -> Option<String> {
    let (before, after) = regex.split_once("(?!")?;
    let (word, rest) = after.split_once(')')?;
    let word = word.replace('\\', "");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let has_any_rest = matches!(rest, "" | ".*" | ".*$" | "(.*)" | "(.*)$");
    let has_end = rest.ends_with('$') || rest.is_empty() || rest.ends_with('*');
    if word.is_empty() || !word.chars().all(is_plain) || !has_any_rest || !has_end {
        return None;
    }
    // From the last character: the end, another character, or this one and what follows it.
    let mut other = String::new();
    for c in word.chars().rev() {
        let c = if matches!(c, '.' | '-') {
            format!("\\{c}")
        } else {
            c.to_string()
        };
        other = if other.is_empty() {
            format!("(?:$|[^{c}])")
        } else {
            format!("(?:$|[^{c}]|{c}{other})")
        };
    }
    Some(format!("{before}{other}"))
}

/// The expression without groups that look around, and with anything for back references.
fn without_groups(regex: &str) -> String {
    let mut wider = String::new();
    let mut rest = regex;
    while let Some(c) = rest.chars().next() {
        let look = ["(?!", "(?=", "(?<!", "(?<="];
        if look.iter().any(|start| rest.starts_with(start)) {
            rest = behind_group(rest);
        } else if c == '\\' {
            let escaped = rest.chars().nth(1);
            if escaped.is_some_and(|digit| digit.is_ascii_digit()) {
                wider.push_str(".*");
            } else {
                wider.push(c);
                wider.extend(escaped);
            }
            let length = 1 + escaped.map_or(0, char::len_utf8);
            rest = rest.get(length..).unwrap_or_default();
        } else {
            wider.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    wider
}

/// The text behind the group that it begins with.
fn behind_group(text: &str) -> &str {
    let (mut depth, mut is_escaped) = (0_u32, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' => depth += 1,
            ')' if depth == 1 => return text.get(at + 1..).unwrap_or_default(),
            ')' => depth -= 1,
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_without_a_counterpart_are_left_out() {
        let same = |text: &str| Converted::Same(text.to_owned());
        let wider = |text: &str| Converted::Wider(text.to_owned());
        for (regex, expected) in [
            (r"\.php$", same(r"\.php$")),
            (r"^/(?!ab)(.*)$", same(r"^/(?:$|[^a]|a(?:$|[^b]))")),
            (r"/\.(?!a).*", same(r"/\.(?:$|[^a])")),
            (r"^/(?!(a|b)/)x", wider("^/x")),
            (r"^/(?!a|b)", wider("^/")),
            (r"^/(a)\1$", wider("^/(a).*$")),
            (r"^/a(?<!b)$", wider("^/a$")),
            (r"^/(", wider("^/")),
        ] {
            assert_eq!(converted(regex, false), expected, "{regex}");
        }
        assert_eq!(converted("a", true), same("(?i)a"));
    }
}
