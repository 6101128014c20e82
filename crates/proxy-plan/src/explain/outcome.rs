//! The service that answers a request, and its alternatives.

use super::named::Named;
use crate::decide::{Decision, Outcome, RequestHead};
use crate::plan::Plan;
use crate::route::{Redirection, RoutePlan};
use crate::upstream::{TargetPlan, UpstreamPlan};
use crate::upstream_states::UpstreamStates;
use proxy_errors::{Problem, Reason};
use proxy_model::{BuiltinHandler, Service, Setting};
use proxy_routing::{ConditionKind, Head, Unmet};
use proxy_upstream::BalancerState;

/// The service that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handler {
    /// A target of an upstream.
    Upstream {
        /// Upstream that the request is forwarded to.
        upstream: Named,
        /// The address of the next target.
        target: String,
        /// Every target, in the order of the configuration.
        candidates: Vec<Candidate>,
    },
    /// A handler of the proxy itself.
    Builtin(BuiltinHandler),
    /// Files below this root.
    Files(Named),
    /// A redirect.
    Redirect {
        /// Status of the redirect, 3xx.
        status: u16,
        /// The URL in `Location`.
        location: String,
    },
    /// The response of the route.
    Respond {
        /// Status of the response.
        status: u16,
        /// Length of the body in bytes.
        body_bytes: usize,
    },
    /// The request is refused.
    Refused {
        /// Problem that the request is answered with.
        problem: Problem,
        /// The route that nearly matches, if none does.
        nearest: Option<Nearest>,
        /// All targets, if none is usable.
        candidates: Vec<Candidate>,
    },
}

/// A target of the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Address of the target; the DNS name while unresolved.
    pub address: String,
    /// The name that the address is resolved from, if it is.
    pub name: Option<String>,
    /// Availability of the target.
    pub readiness: Readiness,
}

/// Availability of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The next target.
    Next,
    /// A usable target, not the next one.
    Ready,
    /// A healthy target that gets requests only while no other one can.
    Backup,
    /// A healthy target without new requests: drained by an operator, or with a weight of 0.
    Draining,
    /// An unhealthy target; the last failure, if one is known.
    Unhealthy(Option<String>),
}

/// The route that nearly matches the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Route that nearly matches.
    pub route: Named,
    /// The route's first condition that does not hold.
    pub unmet: Unmet,
}

impl Plan {
    pub(super) fn answerer(
        &self,
        decision: &Decision<'_>,
        head: Option<&Head<'_>>,
        states: &impl UpstreamStates,
    ) -> Handler {
        match &decision.outcome {
            Outcome::Forward(upstream, next) => Handler::Upstream {
                upstream: self.named_upstream(upstream),
                target: target_label(upstream, next.target),
                candidates: candidates(upstream, Some(next.target), states),
            },
            Outcome::Answer(handler) => Handler::Builtin(*handler),
            Outcome::Files => Handler::Files(self.named_root(decision.route)),
            Outcome::Redirect(Redirection { status, location }) => Handler::Redirect {
                status: status.as_u16(),
                location: String::from_utf8_lossy(location.as_bytes()).into_owned(),
            },
            Outcome::Respond(response) => Handler::Respond {
                status: response.status.as_u16(),
                body_bytes: response.body.as_ref().map_or(0, |body| body.len()),
            },
            Outcome::Refuse(problem) => Handler::Refused {
                problem: problem.clone(),
                nearest: head.and_then(|head| self.nearest(problem, head)),
                candidates: self.refused_by(decision, problem, states),
            },
        }
    }

    fn named_root(&self, route: Option<&RoutePlan>) -> Named {
        let service = route.and_then(|route| self.model.routes.get(route.index));
        let root = service.and_then(|route| match &route.service {
            Service::Static(files) => Some(&files.root),
            Service::Upstream(_)
            | Service::Builtin(_)
            | Service::Redirect(_)
            | Service::Respond(_) => None,
        });
        let place = root.and_then(Setting::place).unwrap_or_default();
        Named {
            name: root.map_or_else(String::new, |root| root.display().to_string()),
            source: self.model.sources.file_and_line(place),
        }
    }

    fn named_upstream(&self, upstream: &UpstreamPlan) -> Named {
        let place = self
            .model
            .upstreams
            .get(upstream.index)
            .map(|one| one.place);
        Named {
            name: upstream.name.to_string(),
            source: self.model.sources.file_and_line(place.unwrap_or_default()),
        }
    }

    fn nearest(&self, problem: &Problem, head: &Head<'_>) -> Option<Nearest> {
        if problem.reason() != Reason::RouteNotFound {
            return None;
        }
        let nearest = self.router.nearest(head)?;
        Some(Nearest {
            route: self.named_route(nearest.rule)?,
            unmet: self.without_secrets(nearest.rule, nearest.unmet),
        })
    }

    /// The nearest route of an unmatched request, for the error log: the route, and its first
    /// failed condition. The request's own values are omitted, since its record has them.
    #[must_use]
    pub fn near_miss(&self, head: &RequestHead<'_>) -> Option<String> {
        let (seen, _) = self.normalize_and_route(head).ok()?;
        let nearest = self.router.nearest(&seen.as_head(head))?;
        let route = self.model.routes.get(nearest.rule)?;
        let Unmet { kind, wanted, .. } = self.without_secrets(nearest.rule, nearest.unmet);
        // Conditions of a path name themselves.
        let condition = if kind == ConditionKind::Path {
            wanted
        } else {
            format!("{kind} {wanted}")
        };
        let id = &route.id;
        Some(format!(
            "no route matches; nearest is \"{id}\", which requires {condition}"
        ))
    }

    fn refused_by(
        &self,
        decision: &Decision<'_>,
        problem: &Problem,
        states: &impl UpstreamStates,
    ) -> Vec<Candidate> {
        if ![Reason::AllTargetsUnhealthy, Reason::NoTargets].contains(&problem.reason()) {
            return Vec::new();
        }
        let upstream = decision.route.and_then(|route| self.upstream_of(route));
        upstream.map_or_else(Vec::new, |upstream| candidates(upstream, None, states))
    }
}

fn target_label(upstream: &UpstreamPlan, target: u16) -> String {
    let target = upstream.targets.get(usize::from(target));
    target.map_or_else(String::new, |target| target.label.to_string())
}

fn candidates(
    upstream: &UpstreamPlan,
    next: Option<u16>,
    states: &impl UpstreamStates,
) -> Vec<Candidate> {
    let all = upstream.targets.iter().zip(0..=u16::MAX);
    let state = states.balancer(upstream);
    let ready = state.as_ref().map_or(&[][..], BalancerState::ready);
    let candidates = all.map(|(target, index)| Candidate {
        address: target.label.to_string(),
        name: target.name.as_deref().map(str::to_owned),
        readiness: if next == Some(index) {
            Readiness::Next
        } else if ready.contains(&index) {
            Readiness::Ready
        } else if target.is_kept_idle() {
            Readiness::Draining
        } else if target.is_backup && target.state.causes().takes_requests() {
            Readiness::Backup
        } else {
            Readiness::Unhealthy(last_error(target))
        },
    });
    candidates.collect()
}

fn last_error(target: &TargetPlan) -> Option<String> {
    let unhealthy_reason = target.state.unhealthy_reason()?;
    Some(unhealthy_reason.last_error.clone())
}
