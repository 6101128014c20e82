//! References to routes, upstreams and agents by name.

use super::block::Block;
use super::decoder::Decoder;
use super::names::Defined;
use proxy_model::Setting;
use proxy_model::registry::{Spec, Text, Unset};

/// The kind of block that a reference names.
#[derive(Clone, Copy)]
pub(super) enum Among {
    Listeners,
    Routes,
    Upstreams,
    Agents,
}

impl<'t> Decoder<'t, '_> {
    /// The names of `blocks`, which are `noun`s; reports duplicates.
    pub(super) fn define(&mut self, noun: &'static str, blocks: &[Block<'t>]) -> Defined<'t> {
        let mut defined = Defined::new(noun);
        for (index, block) in (0..).zip(blocks) {
            let Some((name, place)) = block.title(self) else {
                continue;
            };
            if let Err(fault) = defined.insert(name, index, place) {
                self.push(*fault);
            }
        }
        defined
    }

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
