//! Converts regular expressions of other servers: the proxy's have neither look-around nor back
//! references.

use regex_syntax::Parser;

/// A converted expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Converted {
    /// Matches the same paths.
    Same(String),
    /// Matches more paths, because a part was left out.
    Wider(String),
}

/// Converts an expression, case-insensitive if `ignores_case` is set.
pub(crate) fn converted(regex: &str, ignores_case: bool) -> Converted {
    let flag = if ignores_case { "(?i)" } else { "" };
    let is_valid = |regex: &str| Parser::new().parse(regex).is_ok();
    let same = format!("{flag}{regex}");
    if is_valid(&same) {
        return Converted::Same(same);
    }
    if let Some(same) = without_lookahead(regex).filter(|it| is_valid(it)) {
        return Converted::Same(format!("{flag}{same}"));
    }
    let wider = format!("{flag}{}", without_look_around(regex));
    if is_valid(&wider) {
        Converted::Wider(wider)
    } else {
        Converted::Wider("^/".to_owned())
    }
}

/// Replaces a negative lookahead at the start of the path, as in `^/(?!ab).*`, by an alternation of
/// all prefixes that differ from `ab`. `None` for other expressions.
fn without_lookahead(regex: &str) -> Option<String> {
    let (before, after) = regex.split_once("(?!")?;
    let (word, rest) = after.split_once(')')?;
    let word = word.replace('\\', "");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let has_any_rest = matches!(rest, "" | ".*" | ".*$" | "(.*)" | "(.*)$");
    if word.is_empty() || !word.chars().all(is_plain) || !has_any_rest {
        return None;
    }
    // Built from the last character backwards: the end, another character, or this one followed by
    // a difference.
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

/// Removes look-around groups, and replaces back references by `.*`.
fn without_look_around(regex: &str) -> String {
    let mut wider = String::new();
    let mut rest = regex;
    while let Some(c) = rest.chars().next() {
        let look = ["(?!", "(?=", "(?<!", "(?<="];
        if look.iter().any(|start| rest.starts_with(start)) {
            rest = after_group(rest);
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

/// Text after the group at the start.
fn after_group(text: &str) -> &str {
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
            (r"/\.(?!a)(.*)", same(r"/\.(?:$|[^a])")),
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
