//! Which names are known in which block.

use proxy_model::registry::{self, SettingSpec};
use std::collections::HashMap;

/// The registry, by block and name.
#[derive(Debug)]
pub(crate) struct Known {
    blocks: HashMap<&'static str, Vec<KnownName>>,
}

/// A name that is understood in a block.
#[derive(Clone, Debug)]
pub(crate) struct KnownName {
    pub(crate) name: Box<str>,
    /// Whether it is the name that the reference uses.
    pub(crate) is_main: bool,
    pub(crate) meaning: Meaning,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) path: &'static str,
    /// The piece of work that will give it its effect, if it has none yet.
    pub(crate) not_yet: Option<&'static str>,
    pub(crate) deprecated: Option<&'static str>,
}

impl Known {
    pub(crate) fn new() -> Self {
        let mut blocks: HashMap<_, Vec<KnownName>> = HashMap::new();
        for spec in registry::all() {
            for block in std::iter::once(&spec.block()).chain(spec.also) {
                blocks.entry(*block).or_default().extend(names_of(&spec));
            }
        }
        Self { blocks }
    }

    /// What `name` stands for in `block`.
    pub(crate) fn find(&self, block: &str, name: &str) -> Option<Meaning> {
        let known = self.names(block).iter().find(|known| *known.name == *name);
        known.map(|known| known.meaning)
    }

    /// Everything that may stand in `block`.
    pub(crate) fn names(&self, block: &str) -> &[KnownName] {
        self.blocks.get(block).map_or(&[], Vec::as_slice)
    }

    /// Blocks in which `name` is understood.
    pub(crate) fn elsewhere(&self, name: &str) -> Vec<&'static str> {
        let has = |names: &[KnownName]| names.iter().any(|known| *known.name == *name);
        let blocks = self.blocks.iter().filter(|(_, names)| has(names));
        let mut blocks: Vec<_> = blocks.map(|(block, _)| *block).collect();
        blocks.sort_unstable();
        blocks
    }
}

fn names_of(spec: &SettingSpec) -> Vec<KnownName> {
    let meaning = Meaning {
        path: spec.path,
        not_yet: spec.not_yet(),
        deprecated: spec.deprecated,
    };
    let name = |name: &str, is_main| KnownName {
        name: name.into(),
        is_main,
        meaning,
    };
    let aliases = spec.aliases.iter().map(|alias| name(alias, false));
    std::iter::once(name(spec.name(), true))
        .chain(aliases)
        .collect()
}
