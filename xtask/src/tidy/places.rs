//! Check: files and functions that documents name for a step or task exist.

use super::items::{self, has_word};
use super::source::Source;
use super::tree::{File, Tree};
use super::violation::Violation;

/// A document with entries that must name a place in the code.
struct Document {
    path: &'static str,
    /// Heading above the entries; empty if they are in the whole document.
    heading: &'static str,
    /// Returns true if an entry begins at a line.
    is_entry: fn(&str) -> bool,
    /// Minimum number of entries.
    min_entries: usize,
}

const DOCUMENTS: &[Document] = &[
    Document {
        path: "docs/life-of-a-request.md",
        heading: "",
        is_entry: begins_with_number,
        min_entries: 9,
    },
    Document {
        path: "CONTRIBUTING.md",
        heading: "## Where to find it",
        is_entry: is_table_row,
        min_entries: 20,
    },
];
/// Text between the path of a file and the name of an item in it.
const SEPARATOR: &str = ".rs::";
/// Keywords before a type's name.
const TYPE_KEYWORDS: &[&str] = &["struct", "enum", "trait", "type"];

/// Returns missing places, entries without a place, and documents with too few entries.
pub(super) fn violations(tree: &Tree) -> Vec<Violation> {
    let documents = DOCUMENTS.iter();
    documents
        .filter_map(|document| Some((document, tree.file(document.path)?)))
        .flat_map(|(document, page)| document_violations(tree, document, page))
        .collect()
}

fn document_violations(tree: &Tree, document: &Document, page: &File) -> Vec<Violation> {
    let on_line = |index, what| Violation::on_line(&page.path, index, what);
    let mut violations = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let missing = places(line).filter_map(|place| fault(tree, place));
        violations.extend(missing.map(|what| on_line(index, what)));
    }
    let entries = entries(document, &page.text);
    let unplaced = entries
        .iter()
        .filter(|(_, text)| places(text).next().is_none());
    violations.extend(unplaced.map(|(index, _)| {
        let what = "names no place, such as `crates/a/src/b.rs::c`".to_owned();
        on_line(*index, what)
    }));
    if entries.len() < document.min_entries {
        let what = format!(
            "has {} places, and at least {} are wanted",
            entries.len(),
            document.min_entries
        );
        violations.push(Violation::whole(&page.path, what));
    }
    violations
}

/// Returns the entries of a document: the index of the first line, and the text until the next
/// entry or blank line.
fn entries(document: &Document, text: &str) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    let mut is_counted = document.heading.is_empty();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("## ") {
            is_counted = document.heading.is_empty() || line == document.heading;
        }
        let is_entry = is_counted && (document.is_entry)(line);
        is_open = is_entry || (is_open && !line.is_empty());
        if is_entry {
            entries.push((index, line.to_owned()));
        } else if let Some((_, entry)) = entries.last_mut().filter(|_| is_open) {
            entry.push('\n');
            entry.push_str(line);
        }
    }
    entries
}

/// Finds the places in a text, as `path/file.rs::item` in backticks.
fn places(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter_map(|span| {
        let (path, item) = span.split_once(SEPARATOR)?;
        // Includes the extension, which is part of the separator.
        let path = span.get(..path.len() + ".rs".len())?;
        Some((path, item))
    })
}

/// Returns the reason why a place does not exist.
fn fault(tree: &Tree, (path, item): (&str, &str)) -> Option<String> {
    let Some(source) = tree.file(path).and_then(|file| file.source.as_ref()) else {
        return Some(format!("names a file that does not exist: {path}"));
    };
    let is_there = items::items(source).iter().any(|one| one.name == item);
    (!is_there && !declares_type(source, item)).then(|| format!("{path} has no item `{item}`"))
}

fn declares_type(source: &Source, name: &str) -> bool {
    source.code.iter().any(|line| {
        let keywords = TYPE_KEYWORDS.iter();
        let mut declarations = keywords.map(|keyword| format!("{keyword} {name}"));
        declarations.any(|declaration| has_word(line, &declaration))
    })
}

fn begins_with_number(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0
        && line
            .get(digits..)
            .is_some_and(|rest| rest.starts_with(". "))
}

/// Returns true for a table row, except the heading and the line below it.
fn is_table_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| task")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    const CODE: (&str, &str) = (
        "crates/a/src/b.rs",
        "//! B.\npub(crate) struct Worker;\nasync fn accept() {}\n",
    );

    fn found(document: &str, text: &str) -> Vec<String> {
        rendered(&violations(&Tree::from_files(&[CODE, (document, text)])))
    }

    fn steps(count: usize) -> String {
        let step = |number| format!("{number}. **Step.** In\n   `crates/a/src/b.rs::accept`.\n");
        (1..=count).map(step).collect::<Vec<_>>().concat()
    }

    #[test]
    fn places_that_exist_are_not_faults() {
        let text = steps(8) + "9. **Type.** `crates/a/src/b.rs::Worker` and `b.rs`.\n";
        assert_eq!(found("docs/life-of-a-request.md", &text), [""; 0]);
    }

    #[test]
    fn a_place_names_an_existing_file_and_an_item_of_it() {
        let text = steps(9) + "`crates/a/src/c.rs::run`\n`crates/a/src/b.rs::run`\n";
        let page = "docs/life-of-a-request.md";
        assert_eq!(
            found(page, &text),
            [
                "docs/life-of-a-request.md:19: names a file that does not exist: crates/a/src/c.rs",
                "docs/life-of-a-request.md:20: crates/a/src/b.rs has no item `run`",
            ]
        );
    }

    #[test]
    fn each_step_names_a_place() {
        let text = steps(9) + "10. **Bare.** Nothing.\n";
        assert_eq!(
            found("docs/life-of-a-request.md", &text),
            ["docs/life-of-a-request.md:19: names no place, such as `crates/a/src/b.rs::c`"]
        );
    }

    #[test]
    fn twenty_tasks_are_listed_under_their_heading() {
        let row = "| the keep-alive timer | `crates/a/src/b.rs::accept` |\n";
        let table = format!("## Where to find it\n\n| task | place |\n|---|---|\n{row}");
        let elsewhere = "\n## More\n\n| a | b |\n";
        assert_eq!(
            found("CONTRIBUTING.md", &(table.clone() + elsewhere)),
            ["CONTRIBUTING.md: has 1 places, and at least 20 are wanted"]
        );
        let full = table + &row.repeat(19) + elsewhere;
        assert_eq!(found("CONTRIBUTING.md", &full), [""; 0]);
    }
}
