//! `defaults` sections, and which of them a section has.

use super::advice::advice;
use super::backend;
use super::checks;
use super::parser::{Line, Section};
use crate::migrated::{Place, SyntaxError};
use crate::site::Site;
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum number of lines of all `defaults` sections; those of a base count for each section that
/// is made from it.
const MAX_LINES: usize = 200_000;

/// The `defaults` sections of a file, up to a section.
pub(super) struct Defaults {
    /// The last one, for sections without `from`.
    last: Rc<Section>,
    named: HashMap<String, Rc<Section>>,
    lines: usize,
}

impl Defaults {
    pub(super) fn new() -> Self {
        let place = Place {
            file: String::new(),
            line: 1,
        };
        Self {
            last: Rc::new(Section::new(&[], place)),
            named: HashMap::new(),
            lines: 0,
        }
    }

    /// Adds a `defaults` section; one with `from` has the lines of its base before its own.
    ///
    /// # Errors
    ///
    /// All sections together have too many lines.
    pub(super) fn add(&mut self, site: &mut Site, section: &Section) -> Result<(), SyntaxError> {
        for line in &section.lines {
            note(site, line);
        }
        let mut whole = section.clone();
        if section.base().is_some() {
            whole = (*self.base(section)).clone();
            for line in &section.lines {
                whole.push(line.clone());
            }
        }
        self.lines = self.lines.saturating_add(whole.lines.len());
        if self.lines > MAX_LINES {
            return Err(SyntaxError {
                place: section.place.clone(),
                message: "`defaults` sections make more than 200 000 lines".to_owned(),
            });
        }
        self.last = Rc::new(whole);
        if !section.name.is_empty() {
            let known = Rc::clone(&self.last);
            self.named.insert(section.name.clone(), known);
        }
        Ok(())
    }

    /// The `defaults` of a section: those that it names by `from`, or else the last ones. An unknown
    /// name becomes a line that closes the section, because its rules are not known.
    pub(super) fn base(&self, section: &Section) -> Rc<Section> {
        let Some(name) = section.base() else {
            return Rc::clone(&self.last);
        };
        if let Some(known) = self.named.get(name) {
            return Rc::clone(known);
        }
        let mut unknown = Section::new(&[], section.place.clone());
        unknown.push(Line {
            words: vec!["from".to_owned(), name.to_owned()],
            place: section.place.clone(),
        });
        Rc::new(unknown)
    }
}

/// Notes a line that the conversion of sections ignores.
fn note(site: &mut Site, line: &Line) {
    match line.word(0) {
        "option" => backend::option(site, line),
        "maxconn" => line.note(site, "write `limits { max-total-connections … }`"),
        "acl" | "balance" | "compression" | "cookie" | "default-server" | "description"
        | "errorfile" | "http-request" | "http-response" | "http-reuse" | "id" | "log" | "mode"
        | "redirect" | "retries" | "retry-on" | "tcp-request" | "timeout" => {}
        _ if checks::is_check(line) => {}
        name => line.note(site, advice(name)),
    }
}
