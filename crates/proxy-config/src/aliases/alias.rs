//! An alias, and the conversion of its values.

use crate::kdl::Value;
use std::collections::HashMap;

/// A setting of the system that this one follows.
#[derive(Clone, Copy)]
pub(crate) struct Alias {
    pub(crate) anchor: Anchor,
    /// Path below the anchor, names joined with `.`; `|` separates names of one segment.
    pub(crate) from: &'static str,
    pub(crate) change: Change,
    /// Difference in meaning, or a replacement of the setting; may be empty.
    pub(crate) remark: &'static str,
}

/// The block that an alias and its replacement are both in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Top,
    Listener,
    Route,
    Upstream,
    Agent,
}

/// The treatment of an alias.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// Moves the setting to these paths below the anchor; a path with a leading `.` is relative to
    /// the alias's block.
    Moved(&'static [&'static str], Convert),
    /// The setting needs a second one, which has this value where it is not written.
    Completed(&'static str, &'static str),
    /// A block that holds only aliases; it is removed with the last of them.
    Group,
    /// Several settings in other blocks, which these words name.
    Spread(&'static str),
    /// There is no such setting here.
    Missing,
}

/// Converts the entries of an alias to our setting's.
pub(crate) type Convert = fn(&Written<'_>) -> Converted;

/// An argument, or a property if it has a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: Option<Box<str>>,
    pub(crate) value: Value,
}

/// An alias as written.
pub(crate) struct Written<'a> {
    pub(crate) arguments: &'a [Argument],
    pub(crate) has_block: bool,
    /// The entries of the settings at a path below the anchor.
    pub(crate) stated: &'a dyn Fn(&str) -> Vec<Vec<Argument>>,
    /// The `failure-mode` of each agent, by its name.
    pub(crate) failure_modes: &'a HashMap<String, String>,
}

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Converted {
    /// The entries are kept as written.
    Same,
    /// The setting is written as here already; it is not an alias.
    Ours,
    Arguments(Vec<Argument>),
    /// The setting states our fixed behaviour.
    Implied,
    /// The value has no counterpart; the text describes a workaround.
    Refused(&'static str),
}

impl Argument {
    pub(crate) fn plain(value: Value) -> Self {
        Self { name: None, value }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::plain(Value::Text(text.into()))
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::Null => None,
        }
    }
}

impl Written<'_> {
    /// The only argument; `None` if there are none or several.
    pub(crate) fn value(&self) -> Option<&Value> {
        match self.arguments {
            [Argument { name: None, value }] => Some(value),
            _ => None,
        }
    }

    /// The only argument as a word in lower case with `_` for `-`.
    pub(crate) fn word(&self) -> Option<String> {
        match self.arguments {
            [argument @ Argument { name: None, .. }] => {
                let text = argument.as_text()?;
                Some(text.to_lowercase().replace('-', "_"))
            }
            _ => None,
        }
    }

    /// The only argument as a switch, also as the text `"true"` or `"false"`.
    pub(crate) fn flag(&self) -> Option<bool> {
        match self.value()? {
            Value::Flag(flag) => Some(*flag),
            Value::Text(text) => text.parse().ok(),
            Value::Integer(_) | Value::Decimal(_) | Value::Null => None,
        }
    }

    /// Returns true if a setting exists at a path below the anchor.
    pub(crate) fn has(&self, path: &str) -> bool {
        !(self.stated)(path).is_empty()
    }
}

impl Anchor {
    /// The names of the blocks around it.
    pub(crate) const fn path(self) -> &'static [&'static str] {
        match self {
            Self::Top => &[],
            Self::Listener => &["listeners", "listener"],
            Self::Route => &["routes", "route"],
            Self::Upstream => &["upstreams", "upstream"],
            Self::Agent => &["agents", "agent"],
        }
    }
}

impl Alias {
    /// The settings with the blocks around them, one for each name: `listeners > listener > tls >
    /// cert-path`.
    pub(crate) fn places(&self) -> Vec<String> {
        let around = self.anchor.path().iter().copied();
        let mut places = vec![around.collect::<Vec<_>>().join(" > ")];
        for segment in self.from.split('.') {
            let names = segment.split('|');
            places = names
                .flat_map(|name| places.iter().map(move |place| below(place, name)))
                .collect();
        }
        places
    }

    /// Our setting with its enclosing blocks; `None` if there is none.
    pub(crate) fn target(&self) -> Option<String> {
        match self.change {
            Change::Moved(paths, _) => {
                let paths = paths.iter().map(|path| self.resolved(path));
                let paths: Vec<String> = paths.map(|path| nested(&path)).collect();
                (!paths.is_empty()).then(|| paths.join(" and "))
            }
            Change::Completed(setting, value) => Some(format!("`{setting} \"{value}\"`")),
            Change::Spread(settings) => Some(settings.to_owned()),
            Change::Group | Change::Missing => None,
        }
    }

    /// A path of `Moved` below the anchor.
    pub(crate) fn resolved(&self, path: &str) -> String {
        let Some(rest) = path.strip_prefix('.') else {
            return path.to_owned();
        };
        match self.from.rsplit_once('.') {
            Some((block, _)) => format!("{}.{rest}", first_names(block)),
            None => rest.to_owned(),
        }
    }
}

/// A path with the first name of each segment.
fn first_names(path: &str) -> String {
    let segments = path.split('.');
    let first = segments.map(|segment| segment.split('|').next().unwrap_or_default());
    first.collect::<Vec<_>>().join(".")
}

fn below(place: &str, name: &str) -> String {
    if place.is_empty() {
        name.to_owned()
    } else {
        format!("{place} > {name}")
    }
}

/// A path as nested blocks: `` `limits { max-total-connections }` ``.
pub(crate) fn nested(path: &str) -> String {
    let depth = path.matches('.').count();
    format!("`{}{}`", path.replace('.', " { "), " }".repeat(depth))
}
