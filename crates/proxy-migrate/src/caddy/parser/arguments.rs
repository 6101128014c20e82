//! Arguments of `import` in the lines of a snippet.

use std::ops::Range;

/// Words in place of a word of a snippet: several for `{args[:]}` and the like, which stand alone. A
/// placeholder without an argument stays.
pub(super) fn replaced(word: &str, values: &[String]) -> Vec<String> {
    let inner = word.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    if let Some(range) = inner.and_then(|it| range(it, values.len())) {
        let all = values.get(range).map(<[String]>::to_vec);
        return all.unwrap_or_else(|| vec![word.to_owned()]);
    }
    let mut text = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let argument = after.split_once('}').and_then(|(name, behind)| {
            let value = values.get(position(name)?)?;
            Some((value, behind))
        });
        if let Some((value, behind)) = argument {
            text.push_str(value);
            rest = behind;
        } else {
            text.push('{');
            rest = after;
        }
    }
    text.push_str(rest);
    vec![text]
}

/// Position of `args[0]` or `args.0`.
fn position(name: &str) -> Option<usize> {
    let rest = name.strip_prefix("args")?;
    let number = match rest.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None => rest.strip_prefix('.')?,
    };
    number.parse().ok()
}

/// Range of `args[:]`, `args[1:]`, `args[:2]` or `args[1:2]`; `None` for other names.
fn range(name: &str, count: usize) -> Option<Range<usize>> {
    let inner = name.strip_prefix("args[")?.strip_suffix(']')?;
    let (start, end) = inner.split_once(':')?;
    let number = |text: &str, default: usize| match text {
        "" => Some(default),
        text => text.parse().ok(),
    };
    Some(number(start, 0)?..number(end, count)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_arguments() {
        let values = ["/a".to_owned(), "/b".to_owned()];
        for (word, expected) in [
            ("{args[0]}", "/a"),
            ("{args.1}", "/b"),
            ("x{args[1]}/*", "x/b/*"),
            ("{args[0]}{args[1]}", "/a/b"),
            ("{args[:]}", "/a /b"),
            ("{args[1:]}", "/b"),
            ("{args[:1]}", "/a"),
            ("{args[2:]}", ""),
            ("{args[0:5]}", "{args[0:5]}"),
            ("{args[2]}", "{args[2]}"),
            ("{$A}{args[0]}", "{$A}/a"),
            ("{args[0]", "{args[0]"),
            ("{host}", "{host}"),
        ] {
            assert_eq!(replaced(word, &values).join(" "), expected, "{word}");
        }
    }
}
