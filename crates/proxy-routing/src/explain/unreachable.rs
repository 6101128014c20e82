//! Detection of rules that can never win.

use crate::explain::condition::ConditionKind;
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
    ///
    /// `listeners` are the names of all listeners: a rule that names each of them covers one that
    /// names none, unless `listeners` is empty.
    #[must_use]
    pub fn unreachable(&self, listeners: &[&str]) -> Vec<(usize, usize)> {
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
            let by = buckets.find_map(|bucket| self.coverer_in(bucket, at, rule, listeners))?;
            Some((at, by))
        });
        covered.collect()
    }

    fn coverer_in(
        &self,
        bucket: &Bucket,
        at: usize,
        rule: &Rule,
        listeners: &[&str],
    ) -> Option<usize> {
        let lists = bucket.lists_around(rule);
        let others = lists.flat_map(|list| list.iter().take(MAX_RULES_COMPARED));
        let mut others = others.map(|candidate| candidate.bound.rule());
        others.find(|other| {
            let other_rule = self.rules().get(*other).filter(|_| *other != at);
            other_rule.is_some_and(|other_rule| {
                covers(other_rule, rule, listeners) && outranks(*other, other_rule, at, rule)
            })
        })
    }
}

/// Returns true if `wide` matches every request that `narrow` matches, except `OPTIONS *`.
/// `listeners` are all listeners, if they are known.
fn covers(wide: &Rule, narrow: &Rule, listeners: &[&str]) -> bool {
    let names_all = !listeners.is_empty()
        && listeners
            .iter()
            .all(|listener| wide.listeners.iter().any(|named| named == listener));
    ConditionKind::ALL.into_iter().all(|kind| {
        let is_moot = names_all && kind == ConditionKind::Listener;
        is_moot || kind.covers(wide, narrow)
    })
}

/// Returns true if `high` has precedence over `low` for every request that both match, given that
/// `high` covers `low`.
///
/// At the same priority a condition that covers another has precedence only if both are equal, so
/// `high` must have every condition of `low`; then a path where `low` has none decides, or else the
/// position.
fn outranks(high_at: usize, high: &Rule, low_at: usize, low: &Rule) -> bool {
    if high.priority != low.priority {
        return high.priority > low.priority;
    }
    if !has_all(&high.hosts, &low.hosts) || !has_all(&high.paths, &low.paths) {
        return false;
    }
    let has_path_alone = low.paths.is_empty() && !high.paths.is_empty();
    has_path_alone
        || high_at < low_at
            && (!low.names_listeners() || high.names_listeners())
            && (low.methods.is_empty() || !high.methods.is_empty())
            && has_all(&high.headers, &low.headers)
            && has_all(&high.query_params, &low.query_params)
}

fn has_all<T: PartialEq>(all: &[T], some: &[T]) -> bool {
    some.iter().all(|one| all.contains(one))
}
