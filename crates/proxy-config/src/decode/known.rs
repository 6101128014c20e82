//! The names that each block accepts.

use proxy_model::registry::{self, SettingSpec};
use std::collections::HashMap;

/// The registry, indexed by block and name.
#[derive(Debug)]
pub(crate) struct NameIndex {
    blocks: HashMap<&'static str, Vec<KnownName>>,
}

/// A name that a block accepts.
#[derive(Clone, Debug)]
pub(crate) struct KnownName {
    pub(crate) name: Box<str>,
    /// The name in the reference, not an alias.
    pub(crate) is_main: bool,
    pub(crate) meaning: NamedSetting,
}

/// The setting that a name refers to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedSetting {
    pub(crate) path: &'static str,
    pub(crate) deprecated: Option<&'static str>,
}

impl NameIndex {
    pub(crate) fn new() -> Self {
        let mut blocks: HashMap<_, Vec<KnownName>> = HashMap::new();
        for spec in registry::all() {
            for block in std::iter::once(&spec.block()).chain(spec.also) {
                blocks.entry(*block).or_default().extend(names_of(&spec));
            }
        }
        Self { blocks }
    }

    /// The setting that `name` refers to in `block`.
    pub(crate) fn find(&self, block: &str, name: &str) -> Option<NamedSetting> {
        let known = self.names(block).iter().find(|known| *known.name == *name);
        known.map(|known| known.meaning)
    }

    /// All names that `block` accepts, aliases included.
    pub(crate) fn names(&self, block: &str) -> &[KnownName] {
        self.blocks.get(block).map_or(&[], Vec::as_slice)
    }

    /// Blocks that accept `name`.
    pub(crate) fn elsewhere(&self, name: &str) -> Vec<&'static str> {
        let has = |names: &[KnownName]| names.iter().any(|known| *known.name == *name);
        let blocks = self.blocks.iter().filter(|(_, names)| has(names));
        let mut blocks: Vec<_> = blocks.map(|(block, _)| *block).collect();
        blocks.sort_unstable();
        blocks
    }
}

fn names_of(spec: &SettingSpec) -> Vec<KnownName> {
    let meaning = NamedSetting {
        path: spec.path,
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
