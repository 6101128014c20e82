//! The rules of one host, indexed by path.

use super::affix_index::AffixIndex;
use super::bucket::Bucket;
use super::candidate::Candidate;
use super::regexes::{Group, Regexes};
use crate::path_pattern::{PathKind, PathPattern};
use crate::rank::Rank;
use crate::rule::Rule;
use std::collections::BTreeMap;

/// The rules of one host condition, or of none.
#[derive(Debug)]
pub(crate) struct HostRules {
    /// The best rank of all these rules.
    pub(crate) top: Rank,
    pub(crate) exact: PathIndex,
    pub(crate) prefixes: PathIndex,
    pub(crate) regexes: Regexes,
    pub(crate) regex_buckets: Vec<Bucket>,
    bucket_of_regex: BTreeMap<usize, usize>,
    /// Rules without a path.
    pub(crate) any: Option<Bucket>,
}

/// Buckets with their paths.
#[derive(Debug, Default)]
pub(crate) struct PathIndex {
    pub(crate) texts: AffixIndex,
    pub(crate) buckets: Vec<Bucket>,
}

#[derive(Debug, Default)]
pub(super) struct HostRulesBuilder<'a> {
    exact: BTreeMap<&'a str, Vec<Candidate>>,
    prefixes: BTreeMap<&'a str, Vec<Candidate>>,
    regexes: BTreeMap<usize, Vec<Candidate>>,
    any: Vec<Candidate>,
}

impl<'a> HostRulesBuilder<'a> {
    /// Adds a candidate; `regex` is the index of its optional regex.
    pub(super) fn add(
        &mut self,
        path: Option<&'a PathKind>,
        regex: Option<usize>,
        candidate: Candidate,
    ) {
        let list = match (path, regex) {
            (Some(PathKind::Exact(text)), _) => self.exact.entry(text).or_default(),
            (Some(PathKind::Prefix(text)), _) => self.prefixes.entry(text).or_default(),
            (Some(PathKind::Regex(_)), Some(id)) => self.regexes.entry(id).or_default(),
            (Some(PathKind::Regex(_)) | None, _) => &mut self.any,
        };
        list.push(candidate);
    }

    /// The result; `None` without candidates.
    pub(super) fn finish(self, regexes: &[String], rules: &[Rule]) -> Option<HostRules> {
        let (exact, exact_texts) = shelve(self.exact, rules);
        let (prefixes, prefix_texts) = shelve(self.prefixes, rules);
        let mut regex_buckets = Vec::new();
        let mut groups = Vec::new();
        for (regex, candidates) in self.regexes {
            let Some(bucket) = Bucket::new(candidates, rules) else {
                continue;
            };
            let (top, target) = (bucket.top, regex_buckets.len());
            groups.push(Group { top, target, regex });
            regex_buckets.push(bucket);
        }
        let any = Bucket::new(self.any, rules);
        let buckets = exact
            .iter()
            .chain(&prefixes)
            .chain(&regex_buckets)
            .chain(&any);
        Some(HostRules {
            top: buckets.map(|bucket| bucket.top).max()?,
            exact: PathIndex {
                texts: AffixIndex::from_exact(exact_texts),
                buckets: exact,
            },
            prefixes: PathIndex {
                texts: AffixIndex::from_prefixes(prefix_texts),
                buckets: prefixes,
            },
            bucket_of_regex: groups
                .iter()
                .map(|group| (group.regex, group.target))
                .collect(),
            regexes: Regexes::new(groups, regexes),
            regex_buckets,
            any,
        })
    }
}

fn shelve(
    drafts: BTreeMap<&str, Vec<Candidate>>,
    rules: &[Rule],
) -> (Vec<Bucket>, Vec<(Box<str>, Rank)>) {
    drafts
        .into_iter()
        .filter_map(|(text, candidates)| {
            let bucket = Bucket::new(candidates, rules)?;
            let top = bucket.top;
            Some((bucket, (text.into(), top)))
        })
        .unzip()
}

impl HostRules {
    /// The buckets with an exact path or prefix that matches `path`, and the bucket of rules
    /// without a path.
    pub(crate) fn buckets_of(&self, path: &str) -> impl Iterator<Item = &Bucket> + use<'_> {
        let whole = self.exact.texts.exact(path);
        let whole = whole.and_then(|link| self.exact.buckets.get(link.target));
        let longest = self.prefixes.texts.longest_prefix(path);
        let prefixes = self.prefixes.texts.with_parents(longest);
        let prefixes = prefixes.filter_map(|link| self.prefixes.buckets.get(link.target));
        whole.into_iter().chain(prefixes).chain(&self.any)
    }

    /// The buckets with paths that include all matches of `path`, as far as their texts prove it:
    /// for a regex or no path also the bucket of `path-prefix "/"`; `regex` is the index of its
    /// optional regex.
    pub(crate) fn buckets_around<'a>(
        &'a self,
        path: Option<&'a PathPattern>,
        regex: Option<usize>,
    ) -> impl Iterator<Item = &'a Bucket> {
        let kind = path.map(PathPattern::kind);
        let whole = match kind {
            Some(PathKind::Exact(text)) => self.exact.texts.exact(text),
            Some(PathKind::Prefix(_) | PathKind::Regex(_)) | None => None,
        };
        let whole = whole.and_then(|link| self.exact.buckets.get(link.target));
        let text = path.and_then(PathPattern::text).unwrap_or("/");
        let longest = self.prefixes.texts.longest_prefix(text);
        let prefixes = self.prefixes.texts.with_parents(longest);
        let prefixes = prefixes.filter_map(|link| self.prefixes.buckets.get(link.target));
        let same = regex.and_then(|regex| self.bucket_of_regex.get(&regex));
        let same = same.and_then(|target| self.regex_buckets.get(*target));
        whole
            .into_iter()
            .chain(prefixes)
            .chain(same)
            .chain(&self.any)
    }
}
