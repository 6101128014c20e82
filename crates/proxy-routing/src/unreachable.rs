//! Detection of rules that can never win.

use crate::index::Bucket;
use crate::router::Router;
use crate::rule::Rule;
use std::collections::HashMap;

/// Maximum number of rules of one list that are compared with a rule.
const MAX_RULES_COMPARED: usize = 64;

impl Router {
    /// Pairs of a rule that can never win and one that wins wherever it matches, in configuration
    /// order. Every pair is correct; some unreachable rules are not found, such as those covered
    /// only by several rules together.
    #[must_use]
    pub fn unreachable(&self) -> Vec<(usize, usize)> {
        let regexes = self.regexes().iter().enumerate();
        let regex_ids: HashMap<&str, usize> = regexes.map(|(id, r)| (r.as_str(), id)).collect();
        let rules = self.rules().iter().enumerate();
        let covered = rules.filter_map(|(at, rule)| {
            let path = rule.paths.first();
            let regex = path.and_then(|path| regex_ids.get(path.as_str()).copied());
            let regex = regex.filter(|_| path.is_some_and(|path| path.text().is_none()));
            let sites = self.index().sites_around(rule.hosts.first());
            let mut buckets = sites
                .into_iter()
                .flat_map(|site| site.buckets_around(path, regex));
            let by = buckets.find_map(|bucket| self.coverer_in(bucket, at, rule))?;
            Some((at, by))
        });
        covered.collect()
    }

    fn coverer_in(&self, bucket: &Bucket, at: usize, rule: &Rule) -> Option<usize> {
        let lists = bucket.lists_around(rule);
        let others = lists.flat_map(|list| list.iter().take(MAX_RULES_COMPARED));
        let mut others = others.map(|candidate| candidate.bound.rule());
        others.find(|other| {
            let other_rule = self.rules().get(*other).filter(|_| *other != at);
            other_rule.is_some_and(|other_rule| {
                covers(other_rule, rule) && outranks((*other, other_rule), (at, rule))
            })
        })
    }
}

/// Whether `wide` matches every request that `narrow` matches.
fn covers(wide: &Rule, narrow: &Rule) -> bool {
    kind_covers(&wide.hosts, &narrow.hosts, |wide, narrow| {
        wide.covers(narrow)
    }) && kind_covers(&wide.paths, &narrow.paths, |wide, narrow| {
        wide.covers(narrow)
    }) && kind_covers(&wide.methods, &narrow.methods, |wide, narrow| {
        wide == narrow
    }) && kind_covers(&wide.headers, &narrow.headers, |wide, narrow| {
        wide.covers(narrow)
    }) && kind_covers(&wide.query_params, &narrow.query_params, |wide, narrow| {
        wide.covers(narrow)
    })
}

fn kind_covers<T>(wide: &[T], narrow: &[T], covers: impl Fn(&T, &T) -> bool) -> bool {
    let covered = |narrow| wide.iter().any(|wide| covers(wide, narrow));
    wide.is_empty() || (!narrow.is_empty() && narrow.iter().all(covered))
}

/// Whether `high` has precedence over `low` for every request that both match, given that it covers
/// it.
///
/// At the same priority a condition that covers another has precedence only if it is the same one,
/// so `high` must have every host, path and header of `low`, and precede it.
fn outranks((high_at, high): (usize, &Rule), (low_at, low): (usize, &Rule)) -> bool {
    if high.priority != low.priority {
        return high.priority > low.priority;
    }
    high_at < low_at
        && low.hosts.iter().all(|host| high.hosts.contains(host))
        && low.paths.iter().all(|path| high.paths.contains(path))
        && low
            .headers
            .iter()
            .all(|header| high.headers.contains(header))
}
