//! One row of the registry, typed so that range and default have one place only.

use super::kind::{Kind, Shape, Shaped};
use super::value_error::{Raw, ValueError};

/// A setting: its name, its kind, what holds when it is absent, and who enforces it.
///
/// `D` is one of [`Required`], [`Unset`], [`Many`], or the default itself.
#[derive(Clone, Copy, Debug)]
pub struct Spec<K, D> {
    /// Where it stands: the names of its blocks and its own, joined by dots.
    pub path: &'static str,
    /// What may be written.
    pub kind: K,
    /// What holds when nothing is written.
    pub presence: D,
    /// What it means, for operators.
    pub doc: &'static str,
    /// Whether it has its effect yet.
    pub status: Status,
    /// Other blocks in which the same name is understood.
    pub also: &'static [&'static str],
    /// Other names for it in the same block.
    pub aliases: &'static [&'static str],
    /// What to write instead, when it should not be written any more.
    pub deprecated: Option<&'static str>,
}

/// Whether a setting has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has; this crate gives it, this test proves it.
    Enforced {
        /// The crate where the value takes effect.
        by: &'static str,
        /// The test that fails when it does not.
        test: &'static str,
    },
    /// It has not; a file that has it is refused.
    NotYet {
        /// The piece of work that will bring it.
        issue: &'static str,
    },
}

/// Must be written.
#[derive(Clone, Copy, Debug)]
pub struct Required;

/// May be left out; then there is no value.
#[derive(Clone, Copy, Debug)]
pub struct Unset {
    /// What holds then, for the reference.
    pub means: &'static str,
}

/// May be written any number of times.
#[derive(Clone, Copy, Debug)]
pub struct Many;

/// What a row says when nobody cares for its type: for the reference, the schema and the tests.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingSpec {
    /// Where it stands.
    pub path: &'static str,
    /// What may be written.
    pub shape: Shape,
    /// What holds when nothing is written.
    pub presence: Presence,
    /// What it means.
    pub doc: String,
    /// Whether it has its effect yet.
    pub status: Status,
    /// Other blocks in which the same name is understood.
    pub also: &'static [&'static str],
    /// Other names for it in the same block.
    pub aliases: Vec<String>,
    /// What to write instead.
    pub deprecated: Option<&'static str>,
    /// The release that first had it.
    pub since: &'static str,
}

/// What holds when nothing is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing: it must be written.
    Required,
    /// No value, which means this.
    Unset(&'static str),
    /// An empty list.
    Many,
    /// This value, as one would write it.
    Default(String),
}

/// The ways a row can speak of what holds when nothing is written.
pub trait Absent<K> {
    /// The same without its type, for a setting called `name`.
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

impl<K> Absent<K> for Many {
    fn presence(&self, _kind: &K, _name: &str) -> Presence {
        Presence::Many
    }
}

/// A default value.
#[derive(Clone, Copy, Debug)]
pub struct Given<V>(pub V);

impl<K: Kind> Absent<K> for Given<K::Given> {
    fn presence(&self, kind: &K, name: &str) -> Presence {
        Presence::Default(kind.show(name, self.0))
    }
}

const FIRST_VERSION: &str = "0.1";
const NOT_ENFORCED: Status = Status::NotYet { issue: "" };

/// Starts a row; [`Spec::or`], [`Spec::optional`] and [`Spec::many`] say what else than
/// [`Required`] it is.
pub(super) const fn row<K: Copy>(path: &'static str, kind: K) -> Spec<K, Required> {
    Spec {
        path,
        kind,
        presence: Required,
        doc: "",
        status: NOT_ENFORCED,
        also: &[],
        aliases: &[],
        deprecated: None,
    }
}

impl<K: Kind> Spec<K, Required> {
    pub(super) const fn or(self, default: K::Given) -> Spec<K, Given<K::Given>> {
        self.when_absent(Given(default))
    }
}

impl<K: Copy> Spec<K, Required> {
    pub(super) const fn optional(self, means: &'static str) -> Spec<K, Unset> {
        self.when_absent(Unset { means })
    }

    pub(super) const fn many(self) -> Spec<K, Many> {
        self.when_absent(Many)
    }

    const fn when_absent<D: Copy>(self, presence: D) -> Spec<K, D> {
        Spec {
            path: self.path,
            kind: self.kind,
            presence,
            doc: self.doc,
            status: self.status,
            also: self.also,
            aliases: self.aliases,
            deprecated: self.deprecated,
        }
    }
}

impl<K: Copy, D: Copy> Spec<K, D> {
    pub(super) const fn enforced(mut self, by: &'static str, test: &'static str) -> Self {
        self.status = Status::Enforced { by, test };
        self
    }

    pub(super) const fn not_yet(mut self, issue: &'static str) -> Self {
        self.status = Status::NotYet { issue };
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

    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}

impl<K, D> Spec<K, D> {
    /// Its own name: the last part of the path.
    pub fn name(&self) -> &'static str {
        name_of(self.path)
    }
}

impl<K: Kind, D> Spec<K, D> {
    /// Reads a value that was written under `name`, which may be an alias.
    ///
    /// # Errors
    ///
    /// When the value is not one of the kind's.
    pub fn read(&self, name: &str, raw: Raw<'_>) -> Result<K::Value, ValueError> {
        self.kind.read(name, raw)
    }
}

impl<K: Kind> Spec<K, Given<K::Given>> {
    /// The value that holds when nothing is written.
    pub fn default(&self) -> K::Value {
        self.kind.give(self.presence.0)
    }
}

impl<K: Shaped, D: Absent<K>> Spec<K, D> {
    pub(super) fn describe(&self) -> SettingSpec {
        let Self {
            path,
            kind,
            presence,
            doc,
            status,
            also,
            aliases,
            deprecated,
        } = self;
        let own_aliases = aliases.iter().map(|alias| (*alias).to_owned());
        SettingSpec {
            path,
            shape: kind.shape(),
            presence: presence.presence(kind, name_of(path)),
            doc: doc.trim().replace("\n ", "\n"),
            status: *status,
            also,
            aliases: own_aliases.chain(kind.alias(name_of(path))).collect(),
            deprecated: *deprecated,
            since: FIRST_VERSION,
        }
    }
}

impl SettingSpec {
    /// Its own name: the last part of the path.
    pub fn name(&self) -> &'static str {
        name_of(self.path)
    }

    /// The block it stands in; empty at the top of a file.
    pub fn block(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(block, _)| block)
    }

    /// The piece of work that will give it its effect, when a file that has it is refused until
    /// then.
    pub fn not_yet(&self) -> Option<&'static str> {
        match self.status {
            Status::Enforced { .. } => None,
            Status::NotYet { issue } => Some(issue),
        }
    }
}

fn name_of(path: &'static str) -> &'static str {
    path.rsplit_once('.').map_or(path, |(_, name)| name)
}
