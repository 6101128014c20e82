//! Parser for `haproxy.cfg`: sections with lines of words.

use crate::migrated::{Place, SyntaxError};
use crate::site::Site;
use crate::source::Source;
use crate::work;
use std::collections::HashMap;

/// A section with its lines.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) lines: Vec<Line>,
    pub(super) place: Place,
    /// Set for a section in `mode tcp`, which has conditions on server names.
    is_relayed: bool,
    /// Positions of the lines of each access list, by its name.
    lists: HashMap<String, Vec<usize>>,
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) words: Vec<String>,
    pub(super) place: Place,
}

impl Line {
    /// A word by its position; empty if there is none.
    pub(super) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// The line with single spaces between words.
    pub(super) fn text(&self) -> String {
        self.words.join(" ")
    }

    /// Notes that the line was not migrated.
    pub(super) fn note(&self, site: &mut Site, advice: &str) {
        site.note(&self.place, &self.text(), advice);
    }

    /// The word after the word `name`.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let index = self.words.iter().position(|word| word == name)?;
        self.words.get(index + 1).map(String::as_str)
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }
}

impl Section {
    pub(super) fn lines<'s>(&'s self, first: &'s str) -> impl Iterator<Item = &'s Line> {
        self.lines.iter().filter(move |line| line.word(0) == first)
    }

    /// The section for `mode tcp`, with conditions on server names.
    pub(super) fn relayed(&self) -> Self {
        Self {
            is_relayed: true,
            ..self.clone()
        }
    }

    pub(super) const fn is_relayed(&self) -> bool {
        self.is_relayed
    }

    /// Lines of an access list.
    pub(super) fn list(&self, name: &str) -> impl Iterator<Item = &Line> {
        work::step();
        let positions = self.lists.get(name).map_or(&[][..], Vec::as_slice);
        positions.iter().filter_map(|at| self.lines.get(*at))
    }
}

const SECTIONS: &[&str] = &[
    "backend",
    "cache",
    "crt-store",
    "defaults",
    "frontend",
    "global",
    "http-errors",
    "listen",
    "mailers",
    "peers",
    "program",
    "resolvers",
    "ring",
    "userlist",
];

pub(super) fn parse(source: &Source) -> Result<Vec<Section>, SyntaxError> {
    let mut sections: Vec<Section> = Vec::new();
    for (line, text) in (1..).zip(source.text.lines()) {
        let place = Place {
            file: source.name.clone(),
            line,
        };
        let words = words(text);
        let Some(first) = words.first() else {
            continue;
        };
        if SECTIONS.contains(&&**first) {
            sections.push(Section {
                kind: first.clone(),
                name: words.get(1).cloned().unwrap_or_default(),
                lines: Vec::new(),
                place,
                is_relayed: false,
                lists: HashMap::new(),
            });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(SyntaxError {
                place,
                message: "a section comes first: `global`, `defaults`, `frontend`".to_owned(),
            });
        };
        if let ("acl", Some(name)) = (first.as_str(), words.get(1)) {
            let positions = section.lists.entry(name.clone()).or_default();
            positions.push(section.lines.len());
        }
        section.lines.push(Line { words, place });
    }
    Ok(sections)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                let word = word.get_or_insert_default();
                match chars.clone().next() {
                    Some(escaped @ (' ' | '\\' | '#' | '"' | '\'')) => {
                        chars.next();
                        word.push(escaped);
                    }
                    // The backslash is part of an expression.
                    _ => word.push('\\'),
                }
            }
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) => break,
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_escaped_and_end_at_a_comment() {
        assert_eq!(
            words("  a \"b c\" d\\ e 'f #' # g"),
            ["a", "b c", "d e", "f #"]
        );
        assert_eq!(words("# only"), [""; 0]);
        assert_eq!(
            words(r"path_reg ^/a\.php$ /\1 \#"),
            ["path_reg", r"^/a\.php$", r"/\1", "#"]
        );
    }
}
