//! The router: finds the rule of a request.

pub(crate) mod search;

use crate::head::Head;
use crate::index::{self, Index};
use crate::path_pattern::{PathPattern, PathRegex};
use crate::router::search::{Search, Work};
use crate::rule::Rule;
use std::sync::Arc;

/// Rules with an index, so that a search does not visit every rule.
///
/// A clone shares the rules and the index but has separate scratch memory for regexes: with a clone
/// for each worker thread, threads do not contend.
#[derive(Clone, Debug)]
pub struct Router {
    filed: Arc<RuleSet>,
    regexes: Vec<PathRegex>,
}

#[derive(Debug)]
struct RuleSet {
    rules: Vec<Rule>,
    index: Index,
    /// Texts of exact paths and prefixes with their rules, sorted.
    paths: Vec<(Box<str>, usize)>,
}

impl Router {
    /// Indexes `rules`, which are in the order of the configuration.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        let rules: Vec<Rule> = rules.into_iter().map(Rule::without_repeats).collect();
        let (index, regexes) = index::file(&rules);
        let paths = sorted_paths(&rules);
        let filed = Arc::new(RuleSet {
            rules,
            index,
            paths,
        });
        Self { filed, regexes }
    }

    /// The index of the rule that wins for `head`; `None` if no rule matches.
    ///
    /// Among matching rules, the highest priority wins; then the more specific host (exact, longer
    /// wildcard, none), the more specific path (exact, regex, longer prefix, none), the most
    /// conditions on method, headers and query that hold, and the earlier position. A rule with
    /// several hosts or paths is ranked by the most specific host and path that match the request;
    /// its methods count as one condition.
    ///
    /// Does not allocate, except the memory of a regex at its first use in this clone.
    #[must_use]
    pub fn find(&self, head: &Head<'_>) -> Option<usize> {
        self.find_counted(head).0
    }

    /// Like [`Router::find`], with the number of visited rules.
    #[must_use]
    pub fn find_counted(&self, head: &Head<'_>) -> (Option<usize>, Work) {
        let search = Search::new(head, &self.filed.rules, &self.regexes);
        let (best, work) = search.run(&self.filed.index);
        (best.map(|rank| rank.rule()), work)
    }

    /// The rules, in the order given to [`Router::new`], without repeated conditions.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.filed.rules
    }

    /// The indexes of the rules by the best rank that each can have for any request, best first.
    #[must_use]
    pub fn matching_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rules().len()).collect();
        order.sort_by_cached_key(|at| {
            let best = self
                .rules()
                .get(*at)
                .map(|rule| index::best_rank(*at, rule));
            std::cmp::Reverse(best)
        });
        order
    }

    pub(crate) fn index(&self) -> &Index {
        &self.filed.index
    }

    pub(crate) fn sorted_paths(&self) -> &[(Box<str>, usize)] {
        &self.filed.paths
    }

    pub(crate) fn regexes(&self) -> &[PathRegex] {
        &self.regexes
    }
}

fn sorted_paths(rules: &[Rule]) -> Vec<(Box<str>, usize)> {
    let mut sorted = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let texts = rule.paths.iter().filter_map(PathPattern::text);
        sorted.extend(texts.map(|text| (Box::from(text), at)));
    }
    sorted.sort();
    sorted
}
