//! Requests that must not reach an upstream, tried on a plan.

use super::explain_command::command;
use crate::decide::Outcome;
use crate::diff::{SurveyedRequest, survey};
use crate::plan::Plan;
use proxy_model::{FailedTest, Prohibition};
use proxy_routing::{HostPattern, PathPattern};

/// The patterns of one prohibition.
#[derive(Debug)]
struct Forbidden<'m> {
    prohibition: &'m Prohibition,
    hosts: Vec<&'m HostPattern>,
    paths: Vec<&'m PathPattern>,
    violation: Option<FailedTest>,
}

/// Returns the first request that violates each prohibition, and the prohibitions that cannot be
/// checked completely.
pub(crate) fn violated_prohibitions(plan: &Plan) -> Vec<FailedTest> {
    let prohibitions = &plan.model().prohibitions;
    if prohibitions.is_empty() {
        return Vec::new();
    }
    let mut forbidden: Vec<Forbidden<'_>> = prohibitions.iter().map(Forbidden::new).collect();
    let hosts = prohibitions.iter().flat_map(|one| &one.hosts);
    let hosts: Vec<&HostPattern> = hosts.map(|host| &host.value).collect();
    let paths = prohibitions.iter().flat_map(|one| &one.paths);
    let paths: Vec<&PathPattern> = paths.map(|path| &path.value).collect();
    let limits = survey(plan, &hosts, &paths, |surveyed| {
        let open = forbidden.iter_mut().filter(|one| one.violation.is_none());
        for one in open.filter(|one| one.is_violated(plan, surveyed)) {
            one.violation = Some(one.failure(plan, surveyed));
        }
    });
    let failures = forbidden.into_iter().filter_map(|one| {
        let reached = limits.reached.first();
        one.violation.or_else(|| {
            let difference = format!("it cannot be tried whole: {}", reached?);
            Some(
                one.prohibition
                    .failed(difference, "proxyd explain".to_owned()),
            )
        })
    });
    failures.collect()
}

impl<'m> Forbidden<'m> {
    fn new(prohibition: &'m Prohibition) -> Self {
        Self {
            prohibition,
            hosts: prohibition.hosts.iter().map(|host| &host.value).collect(),
            paths: prohibition.paths.iter().map(|path| &path.value).collect(),
            violation: None,
        }
    }

    fn is_violated(&self, plan: &Plan, surveyed: &SurveyedRequest<'_>) -> bool {
        let Prohibition {
            name: _,
            place: _,
            listener,
            hosts: _,
            paths: _,
            upstream,
            without_agent,
        } = self.prohibition;
        let is_reached = match &surveyed.decision.outcome {
            Outcome::Forward(reached, _) => *reached.name == **upstream,
            Outcome::Answer(_)
            | Outcome::Files
            | Outcome::Redirect(_)
            | Outcome::Respond(_)
            | Outcome::Refuse(_) => false,
        };
        let is_reachable = listener
            .as_ref()
            .is_none_or(|name| surveyed.listeners.contains(name));
        let route = surveyed
            .decision
            .route
            .and_then(|route| plan.routes().get(route.index));
        let agents = route.and_then(|route| route.agents.as_ref());
        let mut agents = agents.into_iter().flat_map(|agents| &agents.agents);
        let is_allowed = without_agent
            .as_ref()
            .is_some_and(|name| agents.any(|agent| *agent.name == **name));
        is_reached
            && is_reachable
            && !is_allowed
            && surveyed.has_host(&self.hosts)
            && surveyed.has_path(&self.paths)
    }

    fn failure(&self, plan: &Plan, surveyed: &SurveyedRequest<'_>) -> FailedTest {
        let listener = self
            .prohibition
            .listener
            .as_ref()
            .or(surveyed.listeners.first());
        let request = surveyed.request(listener.map(String::as_str));
        let route = surveyed.decision.route.map_or("none", |route| &route.id);
        let upstream = &self.prohibition.upstream;
        let difference = format!(
            "{} {} reaches upstream `{upstream}` by route `{route}`",
            request.method, request.url
        );
        let explain = command(&request, &plan.model().sources);
        self.prohibition.failed(difference, explain)
    }
}
