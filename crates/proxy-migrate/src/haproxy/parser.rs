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
    /// Words of the header after the name, such as `from NAME`.
    pub(super) rest: Vec<String>,
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

    /// The line without its condition.
    pub(super) fn action(&self) -> Self {
        let is_action = |word: &&String| *word != "if" && *word != "unless";
        Self {
            words: self.words.iter().take_while(is_action).cloned().collect(),
            place: self.place.clone(),
        }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }
}

impl Section {
    /// A section without lines. In `defaults from NAME` the name is left out.
    pub(super) fn new(words: &[String], place: Place) -> Self {
        let (kind, words) = words
            .split_first()
            .map_or(("", words), |(kind, rest)| (kind.as_str(), rest));
        let has_name = !(kind == "defaults" && words.len() == 2 && is_from(words));
        let (name, rest) = match words.split_first().filter(|_| has_name) {
            Some((name, rest)) => (name.as_str(), rest),
            None => ("", words),
        };
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            lines: Vec::new(),
            place,
            rest: rest.to_vec(),
            is_relayed: false,
            lists: HashMap::new(),
        }
    }

    /// Adds a line, and its access list if it defines one.
    pub(super) fn push(&mut self, line: Line) {
        if line.word(0) == "acl" && line.words.len() > 1 {
            let positions = self.lists.entry(line.word(1).to_owned()).or_default();
            positions.push(self.lines.len());
        }
        self.lines.push(line);
    }

    /// Name of the `defaults` section that the header selects by `from`.
    pub(super) fn base(&self) -> Option<&str> {
        self.rest
            .get(1)
            .map(String::as_str)
            .filter(|_| is_from(&self.rest))
    }

    /// Header of the section.
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.kind, self.name).trim_end().to_owned()
    }

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
            sections.push(Section::new(&words, place));
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(SyntaxError {
                place,
                message: "a section comes first: `global`, `defaults`, `frontend`".to_owned(),
            });
        };
        section.push(Line { words, place });
    }
    Ok(sections)
}

fn is_from(words: &[String]) -> bool {
    words.first().is_some_and(|word| word == "from")
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
