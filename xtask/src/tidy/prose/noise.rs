//! Check: no banners, notes, emoji, or code that only silences a check.

use crate::tidy::items::has_word;
use crate::tidy::source::Source;
use crate::tidy::tree::{File, Tree};
use crate::tidy::violation::Violation;

/// Forbidden code and its replacement.
struct Rule {
    code: &'static str,
    tests_only: bool,
    instead: &'static str,
}

const RULES: &[Rule] = &[
    rule("#[allow", "use #[expect(…, reason = \"…\")]"),
    rule("#![allow", "use #![expect(…, reason = \"…\")]"),
    rule("#[ignore", "mend or delete the test"),
    rule("#[should_panic", "assert on the error"),
    rule("todo!", "write it or leave it out"),
    rule("unimplemented!", "write it or leave it out"),
    rule("unsafe", "write it safely"),
    Rule {
        code: "sleep",
        tests_only: true,
        instead: "wait for the event, with a deadline",
    },
];

const NOTES: &[&str] = &["TODO", "FIXME", "XXX"];
const COMMENT_MARKS: &[&str] = &["//!", "///", "//", "/*", "<!--", "#"];
const BANNER: &[char] = &['=', '─', '━', '*', '-', '#', '~', '/'];
const BANNER_LENGTH: usize = 4;

/// Extensions of checked files, with the marker of comments.
const TEXTS: &[(&str, &str)] = &[
    ("rs", "//"),
    ("kdl", "//"),
    ("toml", "#"),
    ("sh", "#"),
    ("yml", "#"),
    ("md", "<!--"),
];

pub(in crate::tidy) fn violations(tree: &Tree) -> Vec<Violation> {
    let mut faults = Vec::new();
    for file in &tree.files {
        // Fixtures may contain any input.
        let Some((_, mark)) = TEXTS.iter().find(|(end, _)| *end == file.extension()) else {
            continue;
        };
        if file.path.starts_with("fixtures/") || file.path.contains("/fixtures/") {
            continue;
        }
        faults.extend(emoji(file));
        if let Some(source) = &file.source {
            faults.extend(code(file, source));
            faults.extend(comments(
                &file.path,
                source.comments.iter().map(String::as_str),
            ));
        } else {
            let only_comments = file.text.lines().map(|line| {
                let line = line.trim_start();
                if line.starts_with(mark) { line } else { "" }
            });
            faults.extend(comments(&file.path, only_comments));
        }
    }
    faults
}

const fn rule(code: &'static str, instead: &'static str) -> Rule {
    Rule {
        code,
        tests_only: false,
        instead,
    }
}

fn code(file: &File, source: &Source) -> Vec<Violation> {
    let mut faults = Vec::new();
    for (index, line) in source.code.iter().enumerate() {
        let in_tests = file.is_test() || index >= source.tests_start;
        let broken = RULES
            .iter()
            .filter(|rule| (in_tests || !rule.tests_only) && has_word(line, rule.code));
        faults.extend(broken.map(|rule| {
            let what = format!("`{}`: {}", rule.code, rule.instead);
            Violation::on_line(&file.path, index, what)
        }));
    }
    faults
}

fn comments<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<Violation> {
    let mut faults = Vec::new();
    for (index, line) in lines.enumerate() {
        let notes = NOTES.iter().filter(|note| has_word(line, note));
        faults.extend(notes.map(|note| {
            let what = format!("`{note}` in a comment: do it, or write an issue");
            Violation::on_line(path, index, what)
        }));
        if is_banner(line) {
            faults.push(Violation::on_line(
                path,
                index,
                "a banner: structure is files and functions",
            ));
        }
    }
    faults
}

/// Returns true if the comment begins or ends with a row of one drawing character.
fn is_banner(comment: &str) -> bool {
    let slashes = comment
        .chars()
        .take_while(|c| matches!(c, '/' | '#'))
        .count();
    if slashes > BANNER_LENGTH {
        return true;
    }
    let text = COMMENT_MARKS
        .iter()
        .find_map(|mark| comment.strip_prefix(mark))
        .unwrap_or(comment)
        .trim();
    let runs = |mut chars: Box<dyn Iterator<Item = char> + '_>| {
        let first = chars.next().filter(|c| BANNER.contains(c));
        first.is_some_and(|first| chars.take_while(|c| *c == first).count() + 1 >= BANNER_LENGTH)
    };
    runs(Box::new(text.chars())) || runs(Box::new(text.chars().rev()))
}

fn emoji(file: &File) -> Vec<Violation> {
    file.text
        .lines()
        .enumerate()
        .filter(|(index, line)| !is_test_data(file, *index) && line.chars().any(is_emoji))
        .map(|(index, _)| Violation::on_line(&file.path, index, "an emoji: use words"))
        .collect()
}

/// Returns true if the line is test code without a comment, so that an emoji is test data.
fn is_test_data(file: &File, index: usize) -> bool {
    file.source.as_ref().is_some_and(|source| {
        let in_tests = file.is_test() || index >= source.tests_start;
        in_tests && source.comments.get(index).is_none_or(String::is_empty)
    })
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27bf}' | '\u{2b50}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    fn found(path: &str, text: &str) -> Vec<String> {
        rendered(&violations(&Tree::from_files(&[(path, text)])))
    }

    #[test]
    fn silencers_and_stubs_are_noise_wherever_they_stand() {
        let text = "//! A.\n#[allow(dead_code)]\nfn a() {\n    todo!()\n}\n";
        assert_eq!(
            found("a/src/a.rs", text),
            [
                "a/src/a.rs:2: `#[allow`: use #[expect(…, reason = \"…\")]",
                "a/src/a.rs:4: `todo!`: write it or leave it out",
            ]
        );
    }

    #[test]
    fn sleeping_is_noise_in_tests_only() {
        let code = "fn a() { sleep(b); }\n";
        let tested = format!("{code}#[cfg(test)]\nmod tests {{\n    {code}}}\n");

        let fault = "`sleep`: wait for the event, with a deadline";
        assert_eq!(
            found("a/src/a.rs", &tested),
            [format!("a/src/a.rs:4: {fault}")]
        );
        assert_eq!(
            found("a/tests/a.rs", code),
            [format!("a/tests/a.rs:1: {fault}")]
        );
    }

    #[test]
    fn words_in_strings_and_inside_names_are_not_noise() {
        let text = "let a = \"unsafe // TODO\";\n#![deny(unsafe_code)]\n// unsafe is forbidden\n";
        assert_eq!(found("a/src/a.rs", text), [""; 0]);
    }

    #[test]
    fn notes_and_banners_are_noise_in_every_kind_of_file() {
        let note = concat!("// TO", "DO: later\n// ---- x\n// Section =====\n");
        assert_eq!(
            found("a.rs", note),
            [
                concat!("a.rs:1: `TO", "DO` in a comment: do it, or write an issue"),
                "a.rs:2: a banner: structure is files and functions",
                "a.rs:3: a banner: structure is files and functions",
            ]
        );
        assert_eq!(
            found("a.toml", "# Words - and words\na = \"####\"\n########\n"),
            ["a.toml:3: a banner: structure is files and functions"]
        );
    }

    #[test]
    fn a_comment_with_a_table_or_a_list_is_not_a_banner() {
        assert_eq!(
            found("a.rs", "//! | a |\n//! |---|\n/// - one\n// a -- b\n"),
            [""; 0]
        );
    }

    #[test]
    fn emoji_are_noise_and_arrows_are_not() {
        assert_eq!(found("a.md", "a → b ─▶ c\n"), [""; 0]);
        assert_eq!(
            found("a.md", "done \u{1f680}\n"),
            ["a.md:1: an emoji: use words"]
        );
        assert_eq!(found("fixtures/a.kdl", "x \"\u{1f680}\"\n"), [""; 0]);
        let tests = "a(\"\u{1f680}\");\nb(); // \u{1f680}\n";
        assert_eq!(
            found("tests/a.rs", tests),
            ["tests/a.rs:2: an emoji: use words"]
        );
    }
}
