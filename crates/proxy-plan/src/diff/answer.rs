//! The answer to a request, comparable between plans.

use super::relative_path::relative;
use crate::decide::{Decision, Outcome};
use crate::plan::Plan;
use crate::route;
use proxy_model::Service;
use std::fmt;
use std::sync::Arc;

/// The route of a request and the service that answers it, by their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Answer {
    /// The id of the route; `None` if no route matches.
    pub route: Option<Arc<str>>,
    /// Service that answers, or the refusal.
    pub service: AnsweringService,
}

/// The service that answers a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnsweringService {
    /// A target of the upstream with this name.
    Upstream(Arc<str>),
    /// The built-in handler with this name.
    Builtin(&'static str),
    /// Files below this folder.
    Files(String),
    /// The redirect with this status and these parts of a URL.
    Redirect(Arc<str>),
    /// The route's response of this status.
    Respond(u16),
    /// No route: the proxy refuses the request.
    Refusal {
        /// The status of the refusal.
        status: u16,
        /// Name of the reason, as in logs.
        reason: &'static str,
    },
}

impl Answer {
    pub(crate) fn new(plan: &Plan, decision: &Decision<'_>) -> Self {
        let service = match &decision.outcome {
            Outcome::Forward(upstream, _) => AnsweringService::Upstream(Arc::clone(&upstream.name)),
            Outcome::Answer(handler) => AnsweringService::Builtin(handler.name()),
            Outcome::Files => {
                let index = decision.route.map(|route| route.index);
                AnsweringService::Files(index.map_or_else(String::new, |at| root(plan, at)))
            }
            Outcome::Redirect(_) => {
                let redirect = decision.route.and_then(|route| match &route.service {
                    route::Service::Redirect(redirect) => Some(Arc::clone(redirect.label())),
                    route::Service::Upstream(_)
                    | route::Service::Builtin(_)
                    | route::Service::Static
                    | route::Service::Respond(_) => None,
                });
                AnsweringService::Redirect(redirect.unwrap_or_default())
            }
            Outcome::Respond(response) => AnsweringService::Respond(response.status.as_u16()),
            Outcome::Refuse(problem) => AnsweringService::Refusal {
                status: problem.status().as_u16(),
                reason: problem.reason().as_str(),
            },
        };
        Self {
            route: decision.route.map(|route| Arc::clone(&route.id)),
            service,
        }
    }

    /// Returns true if the proxy refuses the request because no route matches.
    #[must_use]
    pub fn is_route_missing(&self) -> bool {
        let is_refusal = matches!(self.service, AnsweringService::Refusal { .. });
        self.route.is_none() && is_refusal
    }
}

/// The folder of a static route as text; relative to the configuration's folder if it is inside.
fn root(plan: &Plan, index: usize) -> String {
    let route = plan.model().routes.get(index);
    route.map_or_else(String::new, |route| match &route.service {
        Service::Static(files) => relative(plan.model(), &files.root),
        Service::Upstream(_) | Service::Builtin(_) | Service::Redirect(_) | Service::Respond(_) => {
            String::new()
        }
    })
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.route {
            Some(route) => write!(f, "{route} ({})", self.service),
            None => self.service.fmt(f),
        }
    }
}

impl fmt::Display for AnsweringService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream(name) => write!(f, "upstream {name}"),
            Self::Builtin(handler) => write!(f, "built-in {handler}"),
            Self::Files(root) => write!(f, "files below {root}"),
            Self::Redirect(redirect) => write!(f, "redirect {redirect}"),
            Self::Respond(status) => write!(f, "response {status} of the route"),
            Self::Refusal { status, reason } => write!(f, "{status} {reason}"),
        }
    }
}
