//! Names of listeners, routes, upstreams and agents, and the references to them.

use super::block::Block;
use super::decoder::Decoder;
use super::suggest::nearest;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::{Spec, Text, Unset};
use proxy_model::{Place, Setting};
use std::collections::HashMap;

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
    /// Records the names of `blocks` and reports duplicates.
    pub(super) fn of(d: &mut Decoder<'t, '_>, noun: &'static str, blocks: &[Block<'t>]) -> Self {
        let mut by_name: HashMap<&'t str, (u32, Place)> = HashMap::new();
        for (index, block) in (0..).zip(blocks) {
            let Some((name, place)) = block.title(d) else {
                continue;
            };
            if let Some((_, first)) = by_name.get(name) {
                let message = format!("there are two {noun}s called \"{name}\"");
                let fault = Diagnostic::new(DiagnosticCode::DuplicateName, place, message);
                d.push(fault.label("again here").related(*first, "first here"));
            } else {
                by_name.insert(name, (index, place));
            }
        }
        Self { noun, by_name }
    }

    /// The position of the block called `name`, or a fault with the nearest known name.
    fn find(&self, name: &Setting<String>) -> Result<Setting<u32>, Box<Diagnostic>> {
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
        // Sorted, so that of equally near names the same one is suggested each time.
        let mut known: Vec<&str> = self.by_name.keys().copied().collect();
        known.sort_unstable();
        Err(Box::new(match nearest(name, known.iter().copied()) {
            Some(near) => fault.label(format!("did you mean \"{near}\"?")),
            None if known.is_empty() => fault.help(format!("no {} is defined at all", self.noun)),
            None => fault.label("not defined"),
        }))
    }
}

/// The kind of block that a reference names.
#[derive(Clone, Copy)]
pub(super) enum Among {
    Listeners,
    Routes,
    Upstreams,
    Agents,
}

impl<'t> Decoder<'t, '_> {
    /// The position of the block that `name` refers to; reports an undefined name.
    pub(super) fn resolve_name(
        &mut self,
        among: Among,
        name: &Setting<String>,
    ) -> Option<Setting<u32>> {
        let defined = match among {
            Among::Listeners => &self.names.listeners,
            Among::Routes => &self.names.routes,
            Among::Upstreams => &self.names.upstreams,
            Among::Agents => &self.names.agents,
        };
        match defined.find(name) {
            Ok(index) => Some(index),
            Err(fault) => {
                self.push(*fault);
                None
            }
        }
    }

    /// Reads a setting that names a block, as that block's position.
    pub(super) fn reference(
        &mut self,
        block: &Block<'t>,
        spec: &Spec<Text<String>, Unset>,
        among: Among,
    ) -> Option<Setting<u32>> {
        let name = block.optional(self, spec)?;
        self.resolve_name(among, &name)
    }
}
