//! The names of listeners, routes, upstreams and agents, each with its position.

use super::suggest::nearest;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::{Place, Setting};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// All named blocks, by kind.
#[derive(Debug, Default)]
pub(crate) struct Names<'t> {
    pub(super) listeners: Defined<'t>,
    pub(super) routes: Defined<'t>,
    pub(super) upstreams: Defined<'t>,
    pub(super) agents: Defined<'t>,
}

/// Named blocks of one kind, with the position and the place of each.
#[derive(Debug, Default)]
pub(crate) struct Defined<'t> {
    /// The kind, as in "route".
    noun: &'static str,
    by_name: HashMap<&'t str, (u32, Place)>,
}

impl<'t> Defined<'t> {
    /// No names yet; `noun` is the kind of block, as in "route".
    pub(super) fn new(noun: &'static str) -> Self {
        Self {
            noun,
            by_name: HashMap::new(),
        }
    }

    /// Records that the block at `index` is called `name`; a duplicate is reported and not
    /// recorded.
    pub(super) fn insert(
        &mut self,
        name: &'t str,
        index: u32,
        place: Place,
    ) -> Result<(), Box<Diagnostic>> {
        match self.by_name.entry(name) {
            Entry::Vacant(free) => {
                free.insert((index, place));
                Ok(())
            }
            Entry::Occupied(taken) => {
                let (_, first) = *taken.get();
                let message = format!("there are two {}s called \"{name}\"", self.noun);
                let fault = Diagnostic::new(DiagnosticCode::DuplicateName, place, message);
                Err(Box::new(
                    fault.label("again here").related(first, "first here"),
                ))
            }
        }
    }

    /// The position of the block called `name`, or a fault with the nearest known name.
    pub(super) fn find(&self, name: &Setting<String>) -> Result<Setting<u32>, Box<Diagnostic>> {
        let Setting {
            value: name,
            origin,
        } = name;
        if let Some((index, _)) = self.by_name.get(name.as_str()) {
            return Ok(Setting {
                value: *index,
                origin: *origin,
            });
        }
        let place = Setting {
            value: (),
            origin: *origin,
        }
        .place()
        .unwrap_or_default();
        let message = format!("there is no {} called \"{name}\"", self.noun);
        let fault = Diagnostic::new(DiagnosticCode::UndefinedName, place, message);
        // Sorted, so that the suggestion among equally near names is deterministic.
        let mut known: Vec<&str> = self.by_name.keys().copied().collect();
        known.sort_unstable();
        Err(Box::new(match nearest(name, known.iter().copied()) {
            Some(near) => fault.label(format!("did you mean \"{near}\"?")),
            None if known.is_empty() => fault.help(format!("no {} is defined at all", self.noun)),
            None => fault.label("not defined"),
        }))
    }
}
