//! Counts words that hide the meaning: people words, and sentences beginning with "What", in
//! comments, and constants without a noun.

use crate::tidy::tree::Tree;

/// Words for people. A machine, a task or a peer has a noun of its own.
const PEOPLE_WORDS: &[&str] = &[
    "who",
    "whom",
    "whose",
    "whoever",
    "whomever",
    "nobody",
    "somebody",
    "someone",
    "everybody",
    "everyone",
    "anybody",
    "anyone",
    "others",
];
/// Beginnings of sentences with a clause instead of a noun.
const CLAUSES: &[&str] = &["What ", "Whatever "];
/// Words that name neither a quantity nor a unit.
const BARE_NAMES: &[&str] = &[
    "ALWAYS", "BIG", "BRIEF", "ENOUGH", "EVERY", "FEW", "FEWEST", "GREAT", "GREATEST", "HARDLY",
    "LARGE", "LARGEST", "LEAST", "LESS", "LITTLE", "LONG", "LONGEST", "LOOK", "MANY", "MORE",
    "MOST", "MUCH", "NEAR", "NEVER", "OFTEN", "REST", "ROOM", "SHORT", "SHORTEST", "SMALL",
    "SMALLEST", "SOME", "SOON", "WHILE",
];

/// Occurrences of such words in all Rust files.
#[derive(Debug, Default)]
pub(in crate::tidy) struct Words {
    comment_lines: usize,
    /// File and line of people words, from 1.
    people: Vec<String>,
    /// File and line of such sentences, from 1.
    clauses: Vec<String>,
    /// File, line and name of constants.
    constants: Vec<String>,
}

impl Words {
    /// Counts the words in all Rust files.
    pub(in crate::tidy) fn count(tree: &Tree) -> Self {
        let mut words = Self::default();
        for (file, source) in tree.rust() {
            for (index, comment) in source.comments.iter().enumerate() {
                words.comment_lines += usize::from(!comment.is_empty());
                let place = || format!("{}:{}", file.path, index + 1);
                words
                    .people
                    .extend(people(comment).map(|word| format!("{} {word}", place())));
                words.clauses.extend((0..clauses(comment)).map(|_| place()));
            }
            for (index, line) in source.code.iter().enumerate() {
                let name = constant(line).filter(|name| is_bare(name));
                let place = name.map(|name| format!("{}:{} {name}", file.path, index + 1));
                words.constants.extend(place);
            }
        }
        words
    }

    /// People words per thousand comment lines.
    pub(in crate::tidy) fn people_per_mille(&self) -> usize {
        (self.people.len() * 1_000).div_ceil(self.comment_lines.max(1))
    }

    /// Sentences that begin with a clause, per thousand comment lines.
    pub(in crate::tidy) fn clauses_per_mille(&self) -> usize {
        (self.clauses.len() * 1_000).div_ceil(self.comment_lines.max(1))
    }

    pub(in crate::tidy) fn bare_constants(&self) -> usize {
        self.constants.len()
    }

    pub(in crate::tidy) fn people(&self) -> &[String] {
        &self.people
    }

    pub(in crate::tidy) fn clauses(&self) -> &[String] {
        &self.clauses
    }

    pub(in crate::tidy) fn constants(&self) -> &[String] {
        &self.constants
    }
}

fn people(comment: &str) -> impl Iterator<Item = String> {
    let words = comment.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words = words.map(str::to_lowercase);
    words.filter(|word| PEOPLE_WORDS.contains(&word.as_str()))
}

/// Counts sentences in a comment line that begin with a clause.
fn clauses(comment: &str) -> usize {
    let text = comment.trim_start_matches(['/', '!', ' ']);
    let sentences = std::iter::once(text).chain(text.split(". ").skip(1));
    let opens = |sentence: &&str| CLAUSES.iter().any(|word| sentence.starts_with(word));
    sentences.filter(opens).count()
}

/// Returns the name of the constant or static that a line declares.
fn constant(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.split_once("pub ").map_or(line, |(_, rest)| rest);
    let line = line
        .split_once(") ")
        .filter(|_| line.starts_with("pub("))
        .map_or(line, |(_, rest)| rest);
    let rest = line
        .strip_prefix("const ")
        .or_else(|| line.strip_prefix("static "))?;
    Some(rest.split_once(':')?.0.trim())
}

/// Returns true if all parts of a name are bare words.
fn is_bare(name: &str) -> bool {
    name.split('_').all(|word| BARE_NAMES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_words_are_counted_in_comments_only() {
        let text = "//! Who comes next, and whose turn it is.\n/// A peer.\nlet who = \"nobody\"; \
                    // whoever\n// unwhole\n";
        let words = Words::count(&Tree::from_files(&[("a.rs", text)]));
        assert_eq!(
            words.people(),
            ["a.rs:1 who", "a.rs:1 whose", "a.rs:3 whoever"]
        );
        assert_eq!(words.people_per_mille(), 750);
    }

    #[test]
    fn sentences_that_open_with_a_clause_are_counted() {
        let text = "//! What it is. Whatever it does.\n/// Says what it is.\nlet a = \"What now\"; \
                    // What a\n";
        let words = Words::count(&Tree::from_files(&[("a.rs", text)]));
        assert_eq!(words.clauses(), ["a.rs:1", "a.rs:1", "a.rs:3"]);
        assert_eq!(words.clauses_per_mille(), 1_000);
    }

    #[test]
    fn a_constant_says_its_noun_or_its_unit() {
        let text = "const LONG: u8 = 1;\npub const MOST_BYTES: u8 = 2;\n    pub(super) const \
                    NEAR_ENOUGH: u8 = 3;\nstatic REST: u8 = 4;\nfn most() {}\n";
        let words = Words::count(&Tree::from_files(&[("a.rs", text)]));
        assert_eq!(
            words.constants(),
            ["a.rs:1 LONG", "a.rs:3 NEAR_ENOUGH", "a.rs:4 REST"]
        );
    }

    #[test]
    fn nothing_has_no_people_words() {
        assert_eq!(Words::count(&Tree::from_files(&[])).people_per_mille(), 0);
    }
}
