//! Replacement of the aliases in one block.

use super::alias::{Alias, Anchor, Argument, Change, Convert, Converted, Written};
use super::table;
use super::tree::Tree;
use crate::kdl::{Span, Value, quoted};
use std::collections::HashMap;

/// The purpose of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The tree is decoded next: a setting without a counterpart is removed, so that it is reported
    /// once.
    Load,
    /// The tree is written as text: a setting without a counterpart is kept.
    Text,
}

/// The parts of the file around the block that conversions need.
pub(super) struct Context {
    pub(super) mode: Mode,
    /// The `failure-mode` of each agent, by its name.
    pub(super) failure_modes: HashMap<String, String>,
}

pub(crate) struct Found {
    pub(crate) alias: &'static Alias,
    /// The alias's name as written.
    pub(crate) name: Box<str>,
    /// The place of the setting's name.
    pub(crate) at: Span,
    pub(crate) outcome: Outcome,
}

/// The treatment of an alias that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Replaced,
    /// The setting keeps its place, with these entries.
    Reworded(String),
    /// The setting states our fixed behaviour, or repeats the setting at our place.
    Removed,
    Completed,
    /// No counterpart exists; with an alternative.
    Refused(&'static str),
    /// The value has no counterpart; the entries as written, and an alternative.
    RefusedValue(String, &'static str),
}

/// The place of an alias in its anchor: indices of nodes, and the setting in the last of them.
struct Occurrence {
    within: Vec<usize>,
    leaf: Leaf,
}

enum Leaf {
    Child(usize),
    Property(Box<str>),
}

/// An edit of one occurrence.
enum Edit {
    /// Writes the setting at these paths, at least one; `None` keeps the entries as written.
    Move(Vec<&'static str>, Option<Vec<Argument>>),
    Remove,
    Keep,
}

/// Replaces the aliases of an anchor in one of its blocks.
pub(super) fn in_anchor<T: Tree>(
    node: &mut T,
    anchor: Anchor,
    context: &Context,
    found: &mut Vec<Found>,
) {
    if !may_have_aliases(node, anchor) {
        return;
    }
    for alias in table::rows(anchor) {
        match alias.change {
            Change::Moved(paths, convert) => {
                let convert = |written: &Written<'_>| moved(alias, paths, convert, written);
                edit(node, alias, context, &convert, found);
            }
            Change::Missing => {
                let refuse = |_: &Written<'_>| Some((Edit::Remove, Outcome::Refused(alias.remark)));
                edit(node, alias, context, &refuse, found);
            }
            Change::Completed(setting, value) => complete(node, alias, setting, value, found),
            Change::Group => dissolve(node, alias, context.mode, found),
            Change::Spread(_) => {}
        }
    }
}

/// Returns true if a name in the block is an alias's. Most files have no alias and cost only this
/// check.
fn may_have_aliases<T: Tree>(node: &T, anchor: Anchor) -> bool {
    if anchor == Anchor::Top {
        let mut names = node.children().iter().map(Tree::name);
        return names.any(table::begins_at_top);
    }
    let has_property = || {
        let mut names = node.arguments().into_iter().filter_map(|it| it.name);
        names.any(|name| table::is_last_name(anchor, &name))
    };
    let mut children = node.children().iter();
    children
        .any(|child| table::is_last_name(anchor, child.name()) || may_have_aliases(child, anchor))
        || has_property()
}

fn moved(
    alias: &Alias,
    paths: &'static [&'static str],
    convert: Convert,
    written: &Written<'_>,
) -> Option<(Edit, Outcome)> {
    let arguments = match convert(written) {
        Converted::Ours => return None,
        Converted::Implied => return Some((Edit::Remove, Outcome::Removed)),
        Converted::Refused(remedy) => {
            let entries = shown(written.arguments);
            return Some((Edit::Remove, Outcome::RefusedValue(entries, remedy)));
        }
        Converted::Same => None,
        Converted::Arguments(arguments) => Some(arguments),
    };
    let entries = arguments.as_deref().unwrap_or(written.arguments);
    let mut unstated = paths.to_vec();
    if !written.has_block {
        unstated.retain(|path| !is_stated(alias, path, entries, written));
    }
    if unstated.is_empty() {
        return Some((Edit::Remove, Outcome::Removed));
    }
    let is_in_place = paths.iter().any(|path| alias.resolved(path) == alias.from);
    let outcome = if is_in_place {
        Outcome::Reworded(shown(entries))
    } else {
        Outcome::Replaced
    };
    Some((Edit::Move(unstated, arguments), outcome))
}

/// Returns true if our setting at `path` has the same value: also without `policies`, which is
/// optional, and in milliseconds.
fn is_stated(alias: &Alias, path: &str, entries: &[Argument], written: &Written<'_>) -> bool {
    let path = alias.resolved(path);
    let has = |path: &str, entries: &[Argument]| {
        path != alias.from && (written.stated)(path).iter().any(|it| it == entries)
    };
    let ms = match entries {
        [
            Argument {
                name: None,
                value: Value::Integer(seconds),
            },
        ] => path.strip_suffix("-secs").zip(seconds.checked_mul(1_000)),
        _ => None,
    };
    has(&path, entries)
        || path
            .strip_prefix("policies.")
            .is_some_and(|path| has(path, entries))
        || ms.is_some_and(|(path, ms)| {
            let entries = [Argument::plain(Value::Integer(ms))];
            has(&format!("{path}-ms"), &entries)
        })
}

/// Entries as written, each after a space.
fn shown(arguments: &[Argument]) -> String {
    let shown = arguments.iter().map(|argument| {
        let value = match &argument.value {
            Value::Text(text) => quoted(text),
            Value::Integer(number) => number.to_string(),
            Value::Decimal(number) => format!("{number:?}"),
            Value::Flag(flag) => format!("#{flag}"),
            Value::Null => "#null".to_owned(),
        };
        match &argument.name {
            Some(name) => format!(" {name}={value}"),
            None => format!(" {value}"),
        }
    });
    shown.collect()
}

/// Decides about each occurrence of an alias, then edits them from the last to the first, so that
/// the remaining indices stay valid.
fn edit<T: Tree>(
    anchor: &mut T,
    alias: &'static Alias,
    context: &Context,
    decide: &dyn Fn(&Written<'_>) -> Option<(Edit, Outcome)>,
    found: &mut Vec<Found>,
) {
    let mut edits = Vec::new();
    for occurrence in occurrences(anchor, alias.from) {
        let Some(ReadOccurrence {
            arguments,
            has_block,
            name,
            at,
        }) = read(anchor, &occurrence)
        else {
            continue;
        };
        let written = Written {
            arguments: &arguments,
            has_block,
            stated: &|path| stated(anchor, path),
            failure_modes: &context.failure_modes,
        };
        let Some((edit, outcome)) = decide(&written) else {
            continue;
        };
        let is_refused = matches!(outcome, Outcome::Refused(_) | Outcome::RefusedValue(..));
        let edit = if is_refused && context.mode == Mode::Text {
            Edit::Keep
        } else {
            edit
        };
        edits.push((occurrence, edit));
        found.push(Found {
            alias,
            name,
            at,
            outcome,
        });
    }
    let mut elsewhere = Vec::new();
    for (occurrence, edit) in edits.into_iter().rev() {
        apply(anchor, alias, &occurrence, edit, &mut elsewhere);
    }
    for (path, node) in elsewhere.into_iter().rev() {
        insert_at(anchor, &path, node);
    }
}

fn apply<T: Tree>(
    anchor: &mut T,
    alias: &Alias,
    occurrence: &Occurrence,
    edit: Edit,
    elsewhere: &mut Vec<(String, T)>,
) {
    let Some(parent) = descend(anchor, &occurrence.within) else {
        return;
    };
    let (paths, arguments) = match edit {
        Edit::Keep => return,
        Edit::Remove => {
            drop(detach(parent, &occurrence.leaf));
            return;
        }
        Edit::Move(paths, arguments) => (paths, arguments),
    };
    let Some((first, others)) = paths.split_first() else {
        return;
    };
    let near = match &occurrence.leaf {
        Leaf::Child(index) => parent.children().get(*index).cloned(),
        Leaf::Property(_) => Some(parent.clone()),
    };
    let Some(near) = near else {
        return;
    };
    let entries = match (&arguments, &occurrence.leaf) {
        (Some(arguments), _) => arguments.clone(),
        (None, Leaf::Child(_)) => near.arguments(),
        (None, Leaf::Property(name)) => property(&near, name),
    };
    let is_in_place = match (first.strip_prefix('.'), &occurrence.leaf) {
        (Some(path), Leaf::Child(index)) => in_place(parent, *index, path, arguments.as_ref()),
        _ => false,
    };
    if !is_in_place && let Some(mut node) = detach(parent, &occurrence.leaf) {
        if let Some(arguments) = arguments {
            node.set_arguments(arguments);
        }
        elsewhere.push((alias.resolved(first), node));
    }
    for path in others {
        let path = alias.resolved(path);
        let name = path.rsplit('.').next().unwrap_or_default();
        let node = T::setting(name, entries.clone(), &near);
        elsewhere.push((path, node));
    }
}

/// Renames a node, or wraps it in blocks; `false` if a block of the name exists already.
fn in_place<T: Tree>(
    parent: &mut T,
    index: usize,
    path: &str,
    arguments: Option<&Vec<Argument>>,
) -> bool {
    let segments: Vec<&str> = path.split('.').collect();
    let Some((name, blocks)) = segments.split_last() else {
        return false;
    };
    let outer = blocks.first();
    if outer.is_some_and(|outer| parent.children().iter().any(|child| child.name() == *outer)) {
        return false;
    }
    let Some(node) = parent.child_mut(index) else {
        return false;
    };
    if node.name() != *name {
        node.set_name(name);
    }
    if let Some(arguments) = arguments {
        node.set_arguments(arguments.clone());
    }
    for block in blocks.iter().rev() {
        *node = node.clone().nest(block);
    }
    true
}

/// Writes a setting at a path below `node`.
pub(super) fn insert_at<T: Tree>(node: &mut T, path: &str, mut setting: T) {
    let Some((block, rest)) = path.split_once('.') else {
        setting.set_name(path);
        node.insert(setting);
        return;
    };
    let is_block = |child: &T| child.name() == block;
    if let Some(index) = node.children().iter().position(is_block) {
        if let Some(block) = node.child_mut(index) {
            insert_at(block, rest, setting);
        }
        return;
    }
    let mut segments = path.split('.').rev();
    setting.set_name(segments.next().unwrap_or_default());
    for block in segments {
        setting = setting.nest(block);
    }
    node.insert(setting);
}

fn complete<T: Tree>(
    anchor: &mut T,
    alias: &'static Alias,
    setting: &str,
    value: &str,
    found: &mut Vec<Found>,
) {
    if !stated(anchor, setting).is_empty() {
        return;
    }
    let Some(occurrence) = occurrences(anchor, alias.from).into_iter().next() else {
        return;
    };
    let Some(ReadOccurrence { name, at, .. }) = read(anchor, &occurrence) else {
        return;
    };
    let near = match &occurrence.leaf {
        Leaf::Child(index) => anchor.children().get(*index).cloned(),
        Leaf::Property(_) => Some(anchor.clone()),
    };
    if let Some(near) = near {
        anchor.insert(T::setting(setting, vec![Argument::text(value)], &near));
    }
    found.push(Found {
        alias,
        name,
        at,
        outcome: Outcome::Completed,
    });
}

/// Removes the blocks of a group: remaining settings in them are unknown.
fn dissolve<T: Tree>(anchor: &mut T, alias: &'static Alias, mode: Mode, found: &mut Vec<Found>) {
    for occurrence in occurrences(anchor, alias.from).into_iter().rev() {
        let Leaf::Child(index) = occurrence.leaf else {
            continue;
        };
        let Some(parent) = descend(anchor, &occurrence.within) else {
            continue;
        };
        let Some(group) = parent.children().get(index) else {
            continue;
        };
        let properties = group.arguments();
        let properties = properties.iter().filter_map(|it| it.name.as_deref());
        let properties = properties.map(|name| (name.into(), group.property_span(name)));
        let nodes = group.children().iter();
        let nodes = nodes.map(|child| (child.name().into(), child.span()));
        let mut left: Vec<(Box<str>, Span)> = properties.chain(nodes).collect();
        if left.is_empty() || mode == Mode::Load {
            drop(parent.remove_child(index));
        }
        // A setting kept in a text has its own reason already.
        left.retain(|(_, at)| found.iter().all(|it| it.at != *at));
        found.extend(left.into_iter().map(|(name, at)| Found {
            alias,
            name,
            at,
            outcome: Outcome::Refused("leave it out"),
        }));
    }
}

fn detach<T: Tree>(parent: &mut T, leaf: &Leaf) -> Option<T> {
    match leaf {
        Leaf::Child(index) => parent.remove_child(*index),
        Leaf::Property(name) => parent.remove_property(name),
    }
}

fn descend<'t, T: Tree>(node: &'t mut T, within: &[usize]) -> Option<&'t mut T> {
    let mut node = node;
    for index in within {
        node = node.child_mut(*index)?;
    }
    Some(node)
}

/// An occurrence of an alias, as it is written.
struct ReadOccurrence {
    arguments: Vec<Argument>,
    has_block: bool,
    name: Box<str>,
    /// The place of the name.
    at: Span,
}

fn read<T: Tree>(anchor: &T, occurrence: &Occurrence) -> Option<ReadOccurrence> {
    let mut parent = anchor;
    for index in &occurrence.within {
        parent = parent.children().get(*index)?;
    }
    Some(match &occurrence.leaf {
        Leaf::Child(index) => {
            let node = parent.children().get(*index)?;
            ReadOccurrence {
                arguments: node.arguments(),
                has_block: node.has_block(),
                name: node.name().into(),
                at: node.span(),
            }
        }
        Leaf::Property(name) => ReadOccurrence {
            arguments: property(parent, name),
            has_block: false,
            name: name.clone(),
            at: parent.property_span(name),
        },
    })
}

/// A property's value as the argument of a setting.
fn property<T: Tree>(node: &T, name: &str) -> Vec<Argument> {
    let arguments = node.arguments().into_iter();
    let named = arguments.filter(|it| it.name.as_deref() == Some(name));
    named.map(|it| Argument::plain(it.value)).collect()
}

/// The entries of all settings at a path below the anchor.
fn stated<T: Tree>(anchor: &T, path: &str) -> Vec<Vec<Argument>> {
    let found = occurrences(anchor, path);
    let read = found.iter().filter_map(|it| read(anchor, it));
    read.map(|read| read.arguments).collect()
}

fn occurrences<T: Tree>(anchor: &T, path: &str) -> Vec<Occurrence> {
    let segments: Vec<&str> = path.split('.').collect();
    let mut found = Vec::new();
    find(anchor, &segments, &mut Vec::new(), &mut found);
    found
}

fn find<T: Tree>(node: &T, path: &[&str], within: &mut Vec<usize>, found: &mut Vec<Occurrence>) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let is_first = |name: &str| first.split('|').any(|it| it == name);
    for (index, child) in node.children().iter().enumerate() {
        if !is_first(child.name()) {
            continue;
        }
        if rest.is_empty() {
            found.push(Occurrence {
                within: within.clone(),
                leaf: Leaf::Child(index),
            });
        } else {
            within.push(index);
            find(child, rest, within, found);
            within.pop();
        }
    }
    if rest.is_empty() {
        let names = node.arguments().into_iter().filter_map(|it| it.name);
        let names = names.filter(|name| is_first(name));
        found.extend(names.map(|name| Occurrence {
            within: within.clone(),
            leaf: Leaf::Property(name),
        }));
    }
}
