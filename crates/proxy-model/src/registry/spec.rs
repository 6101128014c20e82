//! A row of the registry, typed so that range and default are stated once.

use super::kind::{Kind, Shape, Shaped};
use super::value_error::{Raw, ValueError};

/// A setting: its name, kind, default, and the crate that enforces it.
///
/// `D` is one of [`Required`], [`Unset`], [`Repeatable`], or the default itself.
#[derive(Clone, Copy, Debug)]
pub struct Spec<K, D> {
    /// The names of its blocks and its own, joined by dots.
    pub path: &'static str,
    /// The values it accepts.
    pub kind: K,
    /// Its default, or whether it may be absent.
    pub presence: D,
    /// Its meaning, for operators.
    pub doc: &'static str,
    /// The proof of its effect.
    pub proof: Proof,
    /// Other blocks that accept the same name.
    pub also: &'static [&'static str],
    /// Other names in the same block.
    pub aliases: &'static [&'static str],
    /// The replacement of a deprecated setting.
    pub deprecated: Option<&'static str>,
    /// The part of the machine that its value refers to; `None` for values without one.
    pub machine: Option<MachinePart>,
}

/// A part of the machine that the value of a setting names. A bundle of the control plane reaches only
/// the parts that the node's own file allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachinePart {
    /// A file that the process reads or writes.
    File,
    /// A folder with files that clients can read.
    Folder,
    /// A Unix socket that the process connects to or binds.
    Socket,
    /// An address that the process binds.
    LocalAddress,
    /// An address or a host that the process connects to.
    PeerAddress,
}

/// The proof that a setting has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The crate that enforces it.
    pub by: &'static str,
    /// The test that fails if it is not enforced.
    pub test: &'static str,
}

/// The setting must be written.
#[derive(Clone, Copy, Debug)]
pub struct Required;

/// The setting is optional and has no default value.
#[derive(Clone, Copy, Debug)]
pub struct Unset {
    /// The meaning of its absence, for the reference.
    pub means: &'static str,
}

/// The setting may be repeated.
#[derive(Clone, Copy, Debug)]
pub struct Repeatable;

/// A row without its Rust type: for the reference, the schema and the tests.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingSpec {
    /// The names of its blocks and its own, joined by dots.
    pub path: &'static str,
    /// The values it accepts.
    pub shape: Shape,
    /// Its default, or whether it may be absent.
    pub presence: Presence,
    /// Its meaning, for operators.
    pub doc: String,
    /// The proof of its effect.
    pub proof: Proof,
    /// Other blocks that accept the same name.
    pub also: &'static [&'static str],
    /// Other names in the same block.
    pub aliases: Vec<String>,
    /// The replacement of a deprecated setting.
    pub deprecated: Option<&'static str>,
    /// The part of the machine that its value names.
    pub machine: Option<MachinePart>,
    /// The first release that has it.
    pub since: &'static str,
}

/// The default of a setting, or whether it may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must be written.
    Required,
    /// No value, with this meaning.
    Unset(&'static str),
    /// It is an empty list.
    Repeatable,
    /// This default, as written.
    Default(String),
}

/// A typed form of [`Presence`].
pub trait Absent<K> {
    /// The untyped form, for a setting called `name`.
    fn presence(&self, kind: &K, name: &str) -> Presence;
}

impl<K> Absent<K> for Required {
    fn presence(&self, _kind: &K, _name: &str) -> Presence {
        Presence::Required
    }
}

impl<K> Absent<K> for Unset {
    fn presence(&self, _kind: &K, _name: &str) -> Presence {
        Presence::Unset(self.means)
    }
}

impl<K> Absent<K> for Repeatable {
    fn presence(&self, _kind: &K, _name: &str) -> Presence {
        Presence::Repeatable
    }
}

/// A default value.
#[derive(Clone, Copy, Debug)]
pub struct DefaultValue<V>(pub V);

impl<K: Kind> Absent<K> for DefaultValue<K::DefaultValue> {
    fn presence(&self, kind: &K, name: &str) -> Presence {
        Presence::Default(kind.show(name, self.0))
    }
}

const FIRST_VERSION: &str = "0.1";
/// The proof of an unfinished row; a test of this crate finds it.
const NO_PROOF: Proof = Proof { by: "", test: "" };

/// Begins a row, as [`Required`]; [`Spec::or`], [`Spec::optional`] and [`Spec::many`] change that.
pub(super) const fn row<K: Copy>(path: &'static str, kind: K) -> Spec<K, Required> {
    Spec {
        path,
        kind,
        presence: Required,
        doc: "",
        proof: NO_PROOF,
        also: &[],
        aliases: &[],
        deprecated: None,
        machine: None,
    }
}

impl<K: Kind> Spec<K, Required> {
    pub(super) const fn or(
        self,
        default: K::DefaultValue,
    ) -> Spec<K, DefaultValue<K::DefaultValue>> {
        self.when_absent(DefaultValue(default))
    }
}

impl<K: Copy> Spec<K, Required> {
    pub(super) const fn optional(self, means: &'static str) -> Spec<K, Unset> {
        self.when_absent(Unset { means })
    }

    pub(super) const fn many(self) -> Spec<K, Repeatable> {
        self.when_absent(Repeatable)
    }

    const fn when_absent<D: Copy>(self, presence: D) -> Spec<K, D> {
        Spec {
            path: self.path,
            kind: self.kind,
            presence,
            doc: self.doc,
            proof: self.proof,
            also: self.also,
            aliases: self.aliases,
            deprecated: self.deprecated,
            machine: self.machine,
        }
    }
}

impl<K: Copy, D: Copy> Spec<K, D> {
    pub(super) const fn enforced(mut self, by: &'static str, test: &'static str) -> Self {
        self.proof = Proof { by, test };
        self
    }

    pub(super) const fn also(mut self, blocks: &'static [&'static str]) -> Self {
        self.also = blocks;
        self
    }

    pub(super) const fn aliases(mut self, names: &'static [&'static str]) -> Self {
        self.aliases = names;
        self
    }

    pub(super) const fn deprecated(mut self, instead: &'static str) -> Self {
        self.deprecated = Some(instead);
        self
    }

    pub(super) const fn names(mut self, part: MachinePart) -> Self {
        self.machine = Some(part);
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}

impl<K, D> Spec<K, D> {
    /// The setting's own name: the last part of the path.
    pub fn name(&self) -> &'static str {
        name_of(self.path)
    }
}

impl<K: Kind, D> Spec<K, D> {
    /// Decodes a value written under `name`, which may be an alias.
    ///
    /// # Errors
    ///
    /// The value is not valid for the kind.
    pub fn read(&self, name: &str, raw: Raw<'_>) -> Result<K::Value, ValueError> {
        self.kind.read(name, raw)
    }
}

impl<K: Kind> Spec<K, DefaultValue<K::DefaultValue>> {
    /// The value of an absent setting.
    pub fn default(&self) -> K::Value {
        self.kind.default_value(self.presence.0)
    }
}

impl<K: Shaped, D: Absent<K>> Spec<K, D> {
    pub(super) fn describe(&self) -> SettingSpec {
        let Self {
            path,
            kind,
            presence,
            doc,
            proof,
            also,
            aliases,
            deprecated,
            machine,
        } = self;
        let own_aliases = aliases.iter().map(|alias| (*alias).to_owned());
        SettingSpec {
            path,
            shape: kind.shape(),
            presence: presence.presence(kind, name_of(path)),
            doc: doc.trim().replace("\n ", "\n"),
            proof: *proof,
            also,
            aliases: own_aliases.chain(kind.alias(name_of(path))).collect(),
            deprecated: *deprecated,
            machine: *machine,
            since: FIRST_VERSION,
        }
    }
}

impl SettingSpec {
    /// The setting's own name: the last part of the path.
    pub fn name(&self) -> &'static str {
        name_of(self.path)
    }

    /// The path of its block; empty at the top level.
    pub fn block(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(block, _)| block)
    }
}

fn name_of(path: &'static str) -> &'static str {
    path.rsplit_once('.').map_or(path, |(_, name)| name)
}
