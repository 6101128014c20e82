//! YAML and TOML documents as a common tree with line numbers.

mod toml;
mod value;
mod yaml;

pub(super) use value::{Entry, Value};

use crate::migrated::{Place, SyntaxError};
use crate::source::Source;

/// Parses a file: TOML if its name or first line indicates it, otherwise YAML.
pub(super) fn parse(source: &Source) -> Result<Value, SyntaxError> {
    for (line, text) in (1..).zip(source.text.lines()) {
        if text.contains("{{") && !text.trim_start().starts_with('#') {
            return Err(SyntaxError {
                place: Place {
                    file: source.name.clone(),
                    line,
                },
                message: "templates are not filled in here: write the values out".to_owned(),
            });
        }
    }
    let name = source.name.to_ascii_lowercase();
    let is_toml = match name.rsplit_once('.') {
        Some((_, "toml")) => true,
        Some((_, "yml" | "yaml")) => false,
        _ => begins_as_toml(&source.text),
    };
    if is_toml {
        toml::parse(source)
    } else {
        yaml::parse(source)
    }
}

/// Returns true if the first line with content is a TOML table or assignment.
fn begins_as_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let assigned = line.find('=').unwrap_or(usize::MAX);
        line.starts_with('[') || assigned < line.find(':').unwrap_or(usize::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn read(name: &str, text: &str) -> Value {
        let source = Source {
            name: name.to_owned(),
            text: text.to_owned(),
        };
        parse(&source).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn both_notations_have_the_same_tree_with_lines() {
        let yaml = read(
            "a.yml",
            "http:\n  routers:\n    a:\n      rule: Host(`x`)\n",
        );
        let toml = read(
            "a.toml",
            "[http.routers]\n\n[http.routers.a]\nrule = \"Host(`x`)\"\n",
        );
        for tree in [yaml, toml] {
            let rule = tree.at(&["http", "Routers", "a", "rule"]).unwrap();
            assert_eq!(rule.text(), Some("Host(`x`)"));
            assert_eq!(rule.place().line, 4);
        }
    }

    #[test]
    fn parts_that_are_repeated_stand_for_themselves() {
        let text = "a: &a\n  x: 1\n  y: 2\nb:\n  <<: *a\n  y: 3\nc: [*a, *a]\n";
        let tree = read("a", text);
        assert_eq!(tree.at(&["b", "x"]).unwrap().text(), Some("1"));
        assert_eq!(tree.at(&["b", "y"]).unwrap().text(), Some("3"));
        assert_eq!(tree.get("c").unwrap().items().len(), 2);
    }

    #[test]
    fn a_text_that_multiplies_or_is_not_a_document_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let part = format!("*a{}, ", level - 1).repeat(10);
            _ = writeln!(bomb, "a{level}: &a{level} [{part}]");
        }
        for (text, expected) in [
            (bomb.as_str(), "200 000 values"),
            ("a: {b", "a.yml:"),
            ("a: 1\na: 2\n", "a.yml:2: `a` is there twice"),
            ("a: {{ env \"X\" }}", "a.yml:1: templates"),
            (&"[".repeat(100), "a.yml:"),
        ] {
            let source = Source {
                name: "a.yml".to_owned(),
                text: text.to_owned(),
            };
            let error = parse(&source).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
