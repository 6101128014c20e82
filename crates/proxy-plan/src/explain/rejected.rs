//! The routes that do not take a request, with the reasons.

use super::named::Named;
use crate::decide::Decision;
use crate::plan::Plan;
use proxy_model::{Setting, redacted_header, redacted_parameter};
use proxy_routing::{ConditionKind, DecidingRank, Head, Lost as RuleLost, Unmet};

/// Maximum number of conditions that are listed; the rest is counted.
const MAX_LISTED: usize = 8;

/// A route that does not take the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Route that does not take the request.
    pub route: Named,
    /// `priority` of the route.
    pub priority: i32,
    /// First reason in the order of evaluation.
    pub why: Lost,
}

/// The reason why a route does not take a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The route's first condition that does not hold. Secrets of the configuration are redacted.
    Condition(Unmet),
    /// All conditions hold, but another route has precedence.
    Outranked {
        /// Id of that route.
        by: String,
        /// The comparison that decided between the two.
        because: DecidingRank,
    },
}

impl Plan {
    pub(super) fn rejected(&self, decision: &Decision<'_>, head: &Head<'_>) -> Vec<Rejected> {
        let taken_by = decision.route.map(|route| route.index);
        let lost = self.router.explain(head).lost.into_iter();
        let lost = lost.filter(|(index, _)| Some(*index) != taken_by);
        lost.filter_map(|(index, why)| {
            Some(Rejected {
                route: self.named_route(index)?,
                priority: *self.model.routes.get(index)?.priority,
                why: self.why(index, why)?,
            })
        })
        .collect()
    }

    fn why(&self, index: usize, lost: RuleLost) -> Option<Lost> {
        match lost {
            RuleLost::Condition(unmet) => Some(Lost::Condition(self.without_secrets(index, unmet))),
            RuleLost::Outranked { by, because } => {
                let by = self.model.routes.get(by)?.id.clone();
                Some(Lost::Outranked { by, because })
            }
        }
    }

    /// `unmet`, a condition of the route at `index`, with secrets redacted.
    pub(super) fn without_secrets(&self, index: usize, unmet: Unmet) -> Unmet {
        let Some(route) = self.model.routes.get(index) else {
            return unmet;
        };
        let matches = &route.matches;
        let wanted = match unmet.kind {
            ConditionKind::Header => any_of(&matches.headers, redacted_header),
            ConditionKind::Query => any_of(&matches.query_params, redacted_parameter),
            ConditionKind::Listener
            | ConditionKind::Host
            | ConditionKind::Path
            | ConditionKind::Method => return unmet,
        };
        Unmet { wanted, ..unmet }
    }
}

fn any_of<T>(conditions: &[Setting<T>], show: impl Fn(&T) -> String) -> String {
    let written = conditions.iter().take(MAX_LISTED);
    let mut parts: Vec<String> = written.map(|one| show(one)).collect();
    if MAX_LISTED < conditions.len() {
        parts.push(format!("{} more", conditions.len() - MAX_LISTED));
    }
    parts.join(" or ")
}
