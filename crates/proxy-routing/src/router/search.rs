//! A search of the index for the rule that wins for a request.

use crate::head::Head;
use crate::index::{Bucket, Candidate, HostRules, Index};
use crate::path_pattern::PathRegex;
use crate::rank::Rank;
use crate::rule::Rule;

/// Number of rules and regexes that a search visited, for tests of its growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rules compared by method, headers and query parameters.
    pub rules: usize,
    /// Regexes that were run.
    pub regexes: usize,
}

/// The state of a search: the best rank so far.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    head: &'a Head<'a>,
    rules: &'a [Rule],
    regexes: &'a [PathRegex],
    best: Option<Rank>,
    work: Work,
}

impl<'a> Search<'a> {
    pub(crate) fn new(head: &'a Head<'a>, rules: &'a [Rule], regexes: &'a [PathRegex]) -> Self {
        Self {
            head,
            rules,
            regexes,
            best: None,
            work: Work::default(),
        }
    }

    /// The best rank, which includes its rule. The most specific entries are tried first, and
    /// entries that cannot exceed the current best are skipped.
    pub(crate) fn run(mut self, index: &Index) -> (Option<Rank>, Work) {
        for site in index.sites_for(self.head.host) {
            if self.best < Some(site.top) {
                self.try_host(site);
            }
        }
        (self.best, self.work)
    }

    /// Tries the rules of one host: exact paths, prefixes from the longest on, regexes, then rules
    /// without a path.
    fn try_host(&mut self, site: &HostRules) {
        let path = self.head.path;
        if let Some(link) = site.exact.texts.exact(path) {
            self.try_bucket(site.exact.buckets.get(link.target));
        }
        if self.best < site.prefixes.texts.top() {
            let texts = &site.prefixes.texts;
            for link in texts.with_parents(texts.longest_prefix(path)) {
                if Some(link.top) <= self.best {
                    break;
                }
                self.try_bucket(site.prefixes.buckets.get(link.target));
            }
        }
        site.regexes.groups_for(path, self.best, |group| {
            if self.regex_matches(group.regex) {
                self.try_bucket(site.regex_buckets.get(group.target));
            }
            self.best
        });
        self.try_bucket(site.any.as_ref());
    }

    fn regex_matches(&mut self, regex: usize) -> bool {
        self.work.regexes += 1;
        let regex = self.regexes.get(regex);
        regex.is_some_and(|regex| regex.is_match(self.head.path))
    }

    fn try_bucket(&mut self, bucket: Option<&Bucket>) {
        let Some(bucket) = bucket.filter(|bucket| self.best < Some(bucket.top)) else {
            return;
        };
        self.try_candidates(&bucket.open);
        if let Some(keyed) = &bucket.keyed {
            keyed.lists_for(self.head, |list| self.try_candidates(list));
        }
    }

    /// Tries rules in the order of their bounds, the highest rank that each can have.
    fn try_candidates(&mut self, candidates: &[Candidate]) {
        for candidate in candidates {
            if Some(candidate.bound) <= self.best {
                return;
            }
            self.work.rules += 1;
            let conditions = if candidate.bare {
                Some(0)
            } else {
                let rule = self.rules.get(candidate.bound.rule());
                rule.and_then(|rule| rule.conditions_held(self.head))
            };
            if let Some(conditions) = conditions {
                let rank = Rank {
                    conditions,
                    ..candidate.bound
                };
                self.best = self.best.max(Some(rank));
            }
        }
    }
}
