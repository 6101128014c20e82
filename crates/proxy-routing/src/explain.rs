//! Explanation of the rule that wins, and of the rules that do not.

pub(crate) mod condition;
pub(crate) mod nearest;
pub(crate) mod overlap;
pub(crate) mod unreachable;

use crate::explain::condition::{ConditionKind, Unmet};
use crate::head::Head;
use crate::host_pattern::HostPattern;
use crate::index;
use crate::path_pattern::PathPattern;
use crate::rank::{DecidingRank, Rank};
use crate::router::Router;
use crate::rule::Rule;

/// The result for every rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The rule that wins; `None` if none matches.
    pub winner: Option<usize>,
    /// Every other rule, in configuration order, with the reason why it does not win.
    pub lost: Vec<(usize, Lost)>,
}

/// The reason why a rule does not win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The rule does not match: its first condition that does not hold.
    Condition(Unmet),
    /// The rule matches, but another one has precedence.
    Outranked {
        /// The rule that wins.
        by: usize,
        /// The comparison that decided between the two.
        because: DecidingRank,
    },
}

impl Router {
    /// Evaluates every rule. For operators: it takes time and memory for each rule.
    #[must_use]
    pub fn explain(&self, head: &Head<'_>) -> Explanation {
        let winner = self.find(head);
        let best = winner.and_then(|at| Some((at, rank(at, self.rules().get(at)?, head)?)));
        let others = self.rules().iter().enumerate();
        let others = others.filter(|(at, _)| Some(*at) != winner);
        let lost = others.filter_map(|(at, rule)| Some((at, lost(at, rule, head, best)?)));
        Explanation {
            winner,
            lost: lost.collect(),
        }
    }
}

fn lost(at: usize, rule: &Rule, head: &Head<'_>, best: Option<(usize, Rank)>) -> Option<Lost> {
    if let Some(kind) = ConditionKind::first_unmet(rule, head) {
        return Some(Lost::Condition(kind.describe(rule, head)));
    }
    let own = rank(at, rule, head)?;
    let (by, best) = best?;
    let because = best.above(&own);
    Some(Lost::Outranked { by, because })
}

/// The rank of `rule` for `head`: the highest rank of its conditions that hold.
fn rank(at: usize, rule: &Rule, head: &Head<'_>) -> Option<Rank> {
    let paths = rule.paths.iter().filter(|path| path.matches(head.path));
    let hosts = rule.hosts.iter().filter(|host| host.matches(head.host));
    Some(Rank {
        host: hosts
            .map(HostPattern::specificity)
            .max()
            .unwrap_or_default(),
        path: paths
            .map(PathPattern::specificity)
            .max()
            .unwrap_or_default(),
        conditions: rule.conditions_held(head)?,
        ..index::best_rank(at, rule)
    })
}
