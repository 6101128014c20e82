//! Check: links in Markdown files to other files and to headings are valid.

use super::tree::{File, Tree};
use super::violation::Violation;

pub(super) fn violations(tree: &Tree) -> Vec<Violation> {
    let pages = tree.files.iter().filter(|file| file.extension() == "md");
    let mut faults = Vec::new();
    for page in pages {
        for (index, line) in prose(&page.text) {
            let broken = targets(&line).filter(|target| !leads_somewhere(tree, page, target));
            faults.extend(broken.map(|target| {
                Violation::on_line(
                    &page.path,
                    index,
                    format!("a link that leads nowhere: {target}"),
                )
            }));
        }
    }
    faults
}

/// Returns the lines outside of code blocks, without inline code.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((index, line.split('`').step_by(2).collect()));
        }
    }
    lines
}

fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
}

fn leads_somewhere(tree: &Tree, page: &File, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        page.path.clone()
    } else {
        relative_to(&page.path, path)
    };
    if heading.is_empty() {
        return exists(tree, &path);
    }
    tree.file(&path)
        .is_some_and(|file| has_heading(&file.text, heading))
}

/// Resolves `target` relative to the folder of the file `from`.
fn relative_to(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let inside = format!("{path}/");
    tree.files
        .iter()
        .any(|file| file.path == path || file.path.starts_with(&inside))
}

fn has_heading(text: &str, wanted: &str) -> bool {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line) == wanted)
}

/// Returns the anchor that code hosting sites generate for a heading.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn links_to_files_folders_headings_and_hosts_hold() {
        let tree = Tree::from_files(&[
            (
                "docs/a.md",
                "[b](b.md) [up](../README.md#the-crates-in-short) [d](./decisions) \
                 [h](https://example.com/x) [self](#a-b)\n## A: b\n",
            ),
            ("docs/b.md", ""),
            ("docs/decisions/1.md", ""),
            ("README.md", "# The crates, in short\n"),
        ]);
        assert_eq!(rendered(&violations(&tree)), [""; 0]);
    }

    #[test]
    fn links_to_nothing_are_faults_except_in_code() {
        let tree = Tree::from_files(&[(
            "docs/a.md",
            "see [b](b.md)\n```\n[c](c.md)\n```\n`[d](d.md)` [e](#e)\n",
        )]);
        assert_eq!(
            rendered(&violations(&tree)),
            [
                "docs/a.md:1: a link that leads nowhere: b.md",
                "docs/a.md:5: a link that leads nowhere: #e",
            ]
        );
    }
}
