//! The regexes of one host, with a filter for the ones that can match a path.

use super::literal::{Literal, LiteralPosition, LiteralSet, MAX_LITERALS, literal_of};
use crate::rank::Rank;
use std::collections::BTreeMap;

/// Number of regexes that are tried one by one, without a search for literals.
const MAX_UNINDEXED_REGEXES: usize = 8;

/// A regex with the bucket stored for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// The best rank of the bucket.
    pub(crate) top: Rank,
    /// Index of the bucket.
    pub(crate) target: usize,
    /// Index of the regex.
    pub(crate) regex: usize,
}

/// Groups by the literal that a path must contain.
#[derive(Debug, Default)]
pub(crate) struct Regexes {
    /// Groups to try for every path, best first.
    always: Vec<Group>,
    sets: Vec<Set>,
}

#[derive(Debug)]
struct Set {
    top: Rank,
    groups: Vec<Group>,
    literals: LiteralSet,
}

impl Regexes {
    /// Indexes `groups`; their regexes are in `texts`.
    pub(super) fn new(mut groups: Vec<Group>, texts: &[String]) -> Self {
        groups.sort_by_key(|group| std::cmp::Reverse(group.top));
        if groups.len() <= MAX_UNINDEXED_REGEXES {
            let (always, sets) = (groups, Vec::new());
            return Self { always, sets };
        }
        let mut filed = Self::default();
        let mut by_place: BTreeMap<LiteralPosition, Vec<(Group, Vec<u8>)>> = BTreeMap::new();
        for group in groups {
            match texts.get(group.regex).and_then(|text| literal_of(text)) {
                None => filed.always.push(group),
                Some(Literal { text, place }) => {
                    by_place.entry(place).or_default().push((group, text));
                }
            }
        }
        for (place, members) in &by_place {
            members
                .chunks(MAX_LITERALS)
                .for_each(|chunk| filed.add_set(chunk, *place));
        }
        filed
            .always
            .sort_by_key(|group| std::cmp::Reverse(group.top));
        filed
    }

    fn add_set(&mut self, members: &[(Group, Vec<u8>)], place: LiteralPosition) {
        let Some((best, _)) = members.first() else {
            return;
        };
        let mut texts: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for (at, (_, text)) in members.iter().enumerate() {
            texts.entry(text.clone()).or_default().push(at);
        }
        let groups = members.iter().map(|(group, _)| *group);
        match LiteralSet::new(texts, place) {
            None => self.always.extend(groups),
            Some(literals) => self.sets.push(Set {
                top: best.top,
                groups: groups.collect(),
                literals,
            }),
        }
    }

    /// Calls `visit` with each group with a regex that may match `path` and a rank that may exceed
    /// `best`; `visit` returns the new best rank.
    pub(crate) fn groups_for(
        &self,
        path: &str,
        mut best: Option<Rank>,
        mut visit: impl FnMut(Group) -> Option<Rank>,
    ) {
        try_all(self.always.iter(), &mut best, &mut visit);
        for set in &self.sets {
            if best < Some(set.top) {
                set.literals.owners_in(path, |owners| {
                    let groups = owners.iter().filter_map(|at| set.groups.get(*at));
                    try_all(groups, &mut best, &mut visit);
                });
            }
        }
    }
}

fn try_all<'a>(
    groups: impl Iterator<Item = &'a Group>,
    best: &mut Option<Rank>,
    visit: &mut impl FnMut(Group) -> Option<Rank>,
) {
    for group in groups {
        if Some(group.top) <= *best {
            return;
        }
        *best = visit(*group);
    }
}
