//! The rule that nearly matches a request which no rule matches.

use crate::explain::condition::{ConditionKind, Unmet};
use crate::head::Head;
use crate::path_pattern::PathPattern;
use crate::router::Router;
use crate::rule::Rule;
use std::cmp::Reverse;

/// Maximum number of rules examined in one list.
const MAX_RULES_EXAMINED: usize = 64;

/// A rule that nearly matches, with its obstacle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The rule's index.
    pub rule: usize,
    /// The rule's first condition that does not hold.
    pub unmet: Unmet,
}

impl Router {
    /// Of rules with similar paths or hosts, the one that fails the fewest kinds of condition and
    /// shares most of the path. At most a few hundred rules are examined, so that a flood of
    /// unknown paths stays cheap. `None` if an examined rule matches the request.
    #[must_use]
    pub fn nearest(&self, head: &Head<'_>) -> Option<Nearest> {
        let rule_of = |at: &usize| Some((*at, self.rules().get(*at)?));
        let near = self.near(head);
        let (at, rule) = near.iter().filter_map(rule_of).min_by_key(|(at, rule)| {
            let unmet = ConditionKind::ALL
                .iter()
                .filter(|kind| !kind.holds(rule, head));
            (unmet.count(), Reverse(shared_path(rule, head)), *at)
        })?;
        let unmet = ConditionKind::first_unmet(rule, head)?.describe(rule, head);
        Some(Nearest { rule: at, unmet })
    }

    /// Rules of the same host and path, then those with paths next to this one in sorted order,
    /// then the first ones of the configuration.
    fn near(&self, head: &Head<'_>) -> Vec<usize> {
        let sites = self.index().sites_for(head.host).take(MAX_RULES_EXAMINED);
        let buckets = sites.flat_map(|site| site.buckets_of(head.path).take(MAX_RULES_EXAMINED));
        let alike = buckets.flat_map(|bucket| bucket.all().take(MAX_RULES_EXAMINED));
        let alike = alike.map(|candidate| candidate.bound.rule());
        let paths = self.sorted_paths();
        let place = paths.partition_point(|(text, _)| **text < *head.path);
        let alternatives = paths
            .iter()
            .skip(place.saturating_sub(MAX_RULES_EXAMINED / 2))
            .take(MAX_RULES_EXAMINED);
        let alternatives = alternatives.map(|(_, at)| *at);
        let mut near: Vec<usize> = alike
            .take(4 * MAX_RULES_EXAMINED)
            .chain(alternatives)
            .chain(0..MAX_RULES_EXAMINED)
            .collect();
        near.sort_unstable();
        near.dedup();
        near
    }
}

fn shared_path(rule: &Rule, head: &Head<'_>) -> usize {
    let shared = |text: &str| {
        let pairs = text.bytes().zip(head.path.bytes());
        pairs.take_while(|(ours, theirs)| ours == theirs).count()
    };
    let texts = rule.paths.iter().filter_map(PathPattern::text);
    texts.map(shared).max().unwrap_or_default()
}
