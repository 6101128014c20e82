//! Finds the rule a request belongs to.

use crate::head::Head;
use crate::index::{self, Index};
use crate::path_pattern::PathPattern;
use crate::rule::Rule;
use crate::search::{Search, Work};
use regex::bytes::Regex;
use std::sync::Arc;

/// Rules, filed so that a request's own is found without looking at the others.
///
/// A clone shares the rules and the index but has scratch memory of its own for regexes: give each
/// worker thread a clone, and no two of them meet.
#[derive(Clone, Debug)]
pub struct Router {
    filed: Arc<Filed>,
    regexes: Vec<Regex>,
}

#[derive(Debug)]
struct Filed {
    rules: Vec<Rule>,
    index: Index,
    /// Texts of exact paths and prefixes with their rules, sorted.
    paths: Vec<(Box<str>, usize)>,
}

impl Router {
    /// Files `rules`, which stand in the order of the configuration.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        let rules: Vec<Rule> = rules.into_iter().map(Rule::without_repeats).collect();
        let (index, regexes) = index::file(&rules);
        let paths = sorted_paths(&rules);
        let filed = Arc::new(Filed {
            rules,
            index,
            paths,
        });
        Self { filed, regexes }
    }

    /// The index of the rule that wins `head`, if any rule accepts it.
    ///
    /// Of the rules that accept it the one of highest priority wins; then the more specific path
    /// (exact, longer prefix, regex, none), the more specific host (exact, longer wildcard, none),
    /// the most header conditions that hold, and the earlier in order. Where a rule has several
    /// paths or hosts, it competes with the most specific of those that match this request.
    ///
    /// Nothing is allocated, save what a regex needs the first time this clone runs it.
    #[must_use]
    pub fn find(&self, head: &Head<'_>) -> Option<usize> {
        self.find_counted(head).0
    }

    /// As [`Router::find`], and what it looked at.
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

    /// The indices of the rules in the order in which they are considered: by the best rank that
    /// each can have for any request.
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

    pub(crate) fn regexes(&self) -> &[Regex] {
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
