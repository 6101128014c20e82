//! Parser for functions and constants in Rust files: names, attributes and lines.

pub(super) mod twins;

use super::source::Source;
use super::tree::File;
use std::ops::Range;

/// Keywords before an item's name.
const KEYWORDS: &[&str] = &["fn ", "const ", "static ", "macro_rules! "];
/// Attributes of test functions.
const TEST_ATTRIBUTES: &[&str] = &["#[test]", "#[tokio::test", "#[rstest", "#[test_case"];

/// A function, a constant, a static or a macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: String,
    /// Lines from 0, including attributes and documentation.
    pub(super) lines: Range<usize>,
    pub(super) is_test: bool,
}

/// Returns all items of a file in order, including nested ones.
pub(super) fn items(source: &Source) -> Vec<Item> {
    let code = &source.code;
    code.iter()
        .enumerate()
        .filter_map(|(index, line)| {
            let name = name_of(line)?.to_owned();
            let first = first_line(source, index);
            let attributes = code.get(first..index).unwrap_or_default();
            let is_test = attributes.iter().any(|line| marks_a_test(line));
            Some(Item {
                name,
                lines: first..end_line(code, index),
                is_test,
            })
        })
        .collect()
}

/// Returns the item's text without comments.
pub(super) fn text(file: &File, source: &Source, item: &Item) -> String {
    let lines = file.text.lines().zip(&source.comments);
    let wanted = lines.skip(item.lines.start).take(item.lines.len());
    wanted
        .map(|(line, comment)| line.strip_suffix(comment.as_str()).unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns true if `word` occurs as a whole name. Hyphens are part of names.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let in_name =
        |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text
            .get(at + word.len()..)
            .and_then(|text| text.chars().next());
        !in_name(before) && !in_name(after)
    })
}

fn marks_a_test(line: &str) -> bool {
    let line = line.trim_start();
    TEST_ATTRIBUTES.iter().any(|mark| line.starts_with(mark))
}

fn name_of(line: &str) -> Option<&str> {
    let (before, rest) = KEYWORDS.iter().find_map(|word| line.split_once(word))?;
    // `const fn` is already found as `fn`. Neither keyword matches in bounds such as `impl Fn`.
    let in_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '*');
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = rest
        .get(..end?)
        .filter(|name| !name.is_empty() && *name != "fn");
    name.filter(|_| !in_name)
}

/// Returns the first line of the attributes and comments above an item.
fn first_line(source: &Source, index: usize) -> usize {
    let mut first = index;
    while let Some(above) = first.checked_sub(1) {
        let code = source.code.get(above).map_or("", |line| line.trim());
        let comment = source.comments.get(above).map_or("", String::as_str);
        let belongs = code.starts_with("#[") || (code.is_empty() && comment.starts_with("///"));
        if !belongs {
            break;
        }
        first = above;
    }
    first
}

/// Returns the line after the item's closing brace or semicolon.
fn end_line(code: &[String], index: usize) -> usize {
    let mut depth = 0_i32;
    for (at, line) in code.iter().enumerate().skip(index) {
        let mut over = false;
        for c in line.chars() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => {
                    depth -= 1;
                    over = depth <= 0 && c == '}';
                }
                ';' => over = depth == 0,
                _ => continue,
            }
            if over {
                return at + 1;
            }
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Tree;

    const TEXT: &str = "//! A.\nconst LIMIT: &str = \"a {\";\n\n/// Does.\n#[test]\nfn one() {\n    \
                        let a = [1; 2]; // why\n    two(a, \"}\");\n}\n\npub(crate) async fn \
                        two(\n    x: [u8; 2],\n) {\n}\n";

    fn found() -> (Tree, Vec<Item>) {
        let tree = Tree::from_files(&[("a.rs", TEXT)]);
        let found = tree.rust().flat_map(|(_, source)| items(source)).collect();
        (tree, found)
    }

    #[test]
    fn items_take_their_lines_and_only_marked_functions_are_tests() {
        let found_items: Vec<_> = found()
            .1
            .into_iter()
            .map(|item| (item.name, item.lines, item.is_test))
            .collect();
        assert_eq!(
            found_items,
            [
                ("LIMIT".to_owned(), 1..2, false),
                ("one".to_owned(), 3..9, true),
                ("two".to_owned(), 10..14, false),
            ]
        );
    }

    #[test]
    fn text_keeps_literals_and_leaves_comments_out() {
        let (tree, found) = found();
        let (file, source) = tree.rust().next().unwrap();
        let text = text(file, source, &found[1]);
        assert!(text.contains("two(a, \"}\");") && !text.contains("why"));
    }

    #[test]
    fn a_hyphen_belongs_to_a_word() {
        assert!(has_word("a { max-idle 2 }", "max-idle"));
        assert!(!has_word("a { max-idle-connections 2 }", "max-idle"));
    }
}
