//! The answer to a recorded request.

use crate::diff::answer::Answer;
use std::fmt;

/// The answer to a recorded request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplayedAnswer {
    /// A route and a service, or a refusal by the decision.
    Decided(Answer),
    /// A rate limit refuses it: of the route with this id, or without a route one of all requests.
    RateLimited(Option<String>),
    /// The circuit breaker of the route with this id refuses it.
    BreakerOpen(String),
}

impl ReplayedAnswer {
    /// The id of the route; `None` if no route matches.
    pub(super) fn route(&self) -> Option<&str> {
        match self {
            Self::Decided(answer) => answer.route.as_deref(),
            Self::RateLimited(route) => route.as_deref(),
            Self::BreakerOpen(route) => Some(route),
        }
    }
}

impl fmt::Display for ReplayedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decided(answer) => answer.fmt(f),
            Self::RateLimited(Some(route)) => write!(f, "{route} (429 by its rate limit)"),
            Self::RateLimited(None) => f.write_str("no route (429 by a rate limit)"),
            Self::BreakerOpen(route) => write!(f, "{route} (503 by its circuit breaker)"),
        }
    }
}
