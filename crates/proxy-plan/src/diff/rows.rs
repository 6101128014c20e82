//! The answers to the requests of one host and path, joined where they differ in one field only.

use super::answer::Answer;
use super::cells::conditions::{Axis, FieldStates};
use super::cells::paths::PathCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash};

/// The answers to the request of one choice of states.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The state of each axis.
    pub(super) choice: Vec<usize>,
    pub(super) before: Answer,
    pub(super) after: Answer,
}

/// Requests of one host and one path that are answered differently.
#[derive(Clone, Debug)]
pub(super) struct ChangedRequests {
    /// Index of the listeners' class.
    pub(super) class: usize,
    /// Index of the host's cell.
    pub(super) host: usize,
    pub(super) path: PathCell,
    pub(super) fields: Vec<FieldStates>,
    pub(super) before: Answer,
    pub(super) after: Answer,
}

/// States of each axis; all their combinations have the same answers.
type StateSets = Vec<BTreeSet<usize>>;

/// The rows with different answers, joined where they differ in the states of one axis only. An
/// axis with all its states is omitted.
pub(super) fn merged_rows(
    axes: &[Axis],
    rows: Vec<Row>,
    is_whole: bool,
) -> Vec<(Vec<FieldStates>, Row)> {
    let differing = rows.into_iter().filter(|row| row.before != row.after);
    let mut boxes: Vec<(StateSets, Row)> = differing
        .map(|row| {
            let sets = row.choice.iter().map(|state| BTreeSet::from([*state]));
            (sets.collect(), row)
        })
        .collect();
    if is_whole {
        for axis in 0..axes.len() {
            boxes = merged_along(axis, boxes);
        }
    }
    let regions = boxes.into_iter().map(|(sets, row)| {
        let sets = axes.iter().zip(sets);
        let narrow = sets.filter(|(axis, set)| set.len() < axis.states.len());
        let fields = narrow.map(|(axis, set)| FieldStates {
            field: axis.field.clone(),
            states: set
                .iter()
                .filter_map(|state| axis.states.get(*state).cloned())
                .collect(),
            named: axis.named.clone(),
        });
        (fields.collect(), row)
    });
    regions.collect()
}

/// Joins boxes that differ in the states of one axis only.
fn merged_along(axis: usize, boxes: Vec<(StateSets, Row)>) -> Vec<(StateSets, Row)> {
    let keyed = boxes.into_iter().map(|(sets, row)| {
        let mut others = sets.clone();
        others
            .iter_mut()
            .skip(axis)
            .take(1)
            .for_each(BTreeSet::clear);
        ((others, row.before.clone(), row.after.clone()), (sets, row))
    });
    let groups = grouped(keyed).into_iter().filter_map(|(_, members)| {
        let mut members = members.into_iter();
        let (mut sets, row) = members.next()?;
        for (other, _) in members {
            let joined = sets.iter_mut().zip(other).skip(axis).take(1);
            joined.for_each(|(set, other)| set.extend(other));
        }
        Some((sets, row))
    });
    groups.collect()
}

/// Groups values by key, in order of the keys' first occurrence.
pub(super) fn grouped<K: Hash + Eq, V>(items: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut positions: HashMap<u64, Vec<usize>> = HashMap::new();
    let hasher = positions.hasher().clone();
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in items {
        let hash = hasher.hash_one(&key);
        let known = positions.entry(hash).or_default();
        let same = known
            .iter()
            .copied()
            .find(|at| groups.get(*at).is_some_and(|(other, _)| *other == key));
        if let Some((_, values)) = same.and_then(|at| groups.get_mut(at)) {
            values.push(value);
        } else {
            known.push(groups.len());
            groups.push((key, vec![value]));
        }
    }
    groups
}
