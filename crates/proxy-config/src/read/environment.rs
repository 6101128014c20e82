//! Environment variables in values: `{$NAME}`, and `{$NAME:default}`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'t> {
    Literal(&'t str),
    Variable {
        name: &'t str,
        default: Option<&'t str>,
    },
}

pub(crate) fn has_variable(text: &str) -> bool {
    text.contains("{$") && parts(text).any(|part| matches!(part, Part::Variable { .. }))
}

/// The first part of `text` in the form of a variable with a `-` or a `.` in its name, such as
/// `{$API-KEY}`.
pub(super) fn misspelt_variable(text: &str) -> Option<&str> {
    let mut starts = text.match_indices("{$").map(|(at, _)| at);
    starts.find_map(|at| {
        let rest = text.get(at..)?;
        let inner = rest.get(2..rest.find('}')?)?;
        let name = inner.split(':').next().unwrap_or_default();
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let is_misspelt = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(is_name_byte)
            && name.contains(['-', '.']);
        is_misspelt.then(|| rest.get(..inner.len() + 3))?
    })
}

/// Replaces each variable in `text` by its value from `get`, or by its default.
///
/// # Errors
/// The names of variables that have neither a value nor a default.
pub(super) fn expand(
    text: &str,
    get: impl Fn(&str) -> Option<String>,
) -> Result<String, Vec<String>> {
    let mut expanded = String::new();
    let mut missing = Vec::new();
    for part in parts(text) {
        let (name, default) = match part {
            Part::Literal(text) => {
                expanded.push_str(text);
                continue;
            }
            Part::Variable { name, default } => (name, default),
        };
        match (get(name), default) {
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => missing.push(name.to_owned()),
        }
    }
    if missing.is_empty() {
        Ok(expanded)
    } else {
        Err(missing)
    }
}

fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((variable, after)) = variable(rest) {
            rest = after;
            return Some(variable);
        }
        let next = rest.match_indices("{$").map(|(at, _)| at);
        let end = next
            .filter(|at| 0 < *at)
            .find(|at| rest.get(*at..).and_then(variable).is_some());
        let (literal, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(Part::Literal(literal))
    })
}

/// The variable at the beginning of `text`, and the text after it. Other text in braces is literal.
fn variable(text: &str) -> Option<(Part<'_>, &str)> {
    let (inner, after) = text.strip_prefix("{$")?.split_once('}')?;
    let (name, default) = match inner.split_once(':') {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let mut bytes = name.bytes();
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_name = bytes.next().is_some_and(is_first)
        && bytes.all(|byte| byte.is_ascii_digit() || is_first(byte));
    is_name.then_some((Part::Variable { name, default }, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(name: &str) -> Option<String> {
        (name == "PORT").then(|| "8080".to_owned())
    }

    #[test]
    fn variables_are_replaced_and_other_text_stays() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{$PORT}", "8080"),
            ("127.0.0.1:{$PORT}", "127.0.0.1:8080"),
            ("{$PORT}{$PORT}/{$PORT:1}", "80808080/8080"),
            ("{$OTHER:a:b}!", "a:b!"),
            ("{$OTHER:}", ""),
            ("a{$}b{$1}{$PORT", "a{$}b{$1}{$PORT"),
            ("{{$PORT}}", "{8080}"),
            ("${PORT} {PORT}", "${PORT} {PORT}"),
        ] {
            assert_eq!(expand(text, get).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_name_that_no_variable_has_is_found() {
        for (text, found) in [
            ("Bearer {$API-KEY}", Some("{$API-KEY}")),
            ("{$A}{$my.var:x}", Some("{$my.var:x}")),
            ("{$A}{$1}{$}{$-a}{$A B}{$A-", None),
            ("{A-B} {$A:b-c}", None),
        ] {
            assert_eq!(misspelt_variable(text), found, "{text}");
        }
    }

    #[test]
    fn each_missing_variable_is_named() {
        let missing = expand("{$A}{$PORT}{$_b1}{$C:c}", get);
        assert_eq!(missing, Err(vec!["A".to_owned(), "_b1".to_owned()]));
    }
}
