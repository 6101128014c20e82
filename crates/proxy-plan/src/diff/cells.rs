//! The routes that compete for the requests of a host and a path.

pub(super) mod conditions;
pub(super) mod hosts;
pub(super) mod paths;

use crate::plan::Plan;
use crate::route::Service;
use crate::upstream_states::AssumeHealthy;
use hosts::HostCell;
use paths::PathCell;
use proxy_routing::{PathPattern, Rule};
use std::collections::HashMap;

/// A plan with the target states for its decisions.
#[derive(Debug)]
pub(super) struct Side<'p> {
    pub(super) plan: &'p Plan,
    pub(super) states: AssumeHealthy,
}

/// Indexes of the rules of both plans that match one host.
#[derive(Clone, Debug)]
pub(super) struct HostRules {
    pub(super) before: Vec<usize>,
    pub(super) after: Vec<usize>,
}

/// The rules of one plan that one host fulfils, by their path conditions.
#[derive(Debug, Default)]
pub(super) struct RulesByPath {
    /// Rules without a path condition.
    pathless: Vec<usize>,
    /// Rules with the condition of this id.
    by_condition: Vec<Vec<usize>>,
}

/// The parts of a route that its answers depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RouteKey<'p> {
    id: &'p str,
    service: ServiceKey<'p>,
    /// A target of the upstream has a weight above 0.
    is_ready: bool,
    strict_paths: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ServiceKey<'p> {
    Upstream(&'p str),
    Builtin(&'p str),
    Redirect(&'p str),
    Respond(u16),
}

impl<'p> Side<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        Self {
            plan,
            states: AssumeHealthy::new(plan),
        }
    }

    pub(super) fn rules(&self) -> &'p [Rule] {
        self.plan.router().rules()
    }

    pub(super) fn rule(&self, index: usize) -> Option<&'p Rule> {
        self.rules().get(index)
    }

    /// Indexes of the rules that `host` fulfils.
    pub(super) fn rules_for(&self, host: &HostCell) -> Vec<usize> {
        let fits = |rule: &Rule| {
            let mut hosts = rule.hosts.iter();
            rule.hosts.is_empty() || hosts.any(|one| one.matches(&host.example))
        };
        let rules = self.rules().iter().enumerate();
        rules
            .filter(|(_, rule)| fits(rule))
            .map(|(at, _)| at)
            .collect()
    }

    pub(super) fn by_path(&self, rules: &[usize], ids: &HashMap<String, usize>) -> RulesByPath {
        let mut by_path = RulesByPath {
            by_condition: vec![Vec::new(); ids.len()],
            ..RulesByPath::default()
        };
        for at in rules {
            let paths = self.rule(*at).map_or(&[][..], |rule| &rule.paths);
            if paths.is_empty() {
                by_path.pathless.push(*at);
            }
            let ids = paths.iter().filter_map(|path| ids.get(&path.to_string()));
            for id in ids {
                if let Some(list) = by_path.by_condition.get_mut(*id) {
                    list.push(*at);
                }
            }
        }
        by_path
    }

    /// The parts of a route that its responses depend on; `None` for files, because folders are
    /// compared by deciding on requests.
    pub(super) fn route_key(&self, index: usize) -> Option<RouteKey<'p>> {
        let route = self.plan.routes().get(index)?;
        let (service, is_ready) = match &route.service {
            Service::Upstream(position) => {
                let upstream = self.plan.upstreams().get(*position)?;
                let is_ready = upstream.targets.iter().any(|target| 0 < target.weight);
                (ServiceKey::Upstream(&upstream.name), is_ready)
            }
            Service::Builtin(handler) => (ServiceKey::Builtin(handler.name()), true),
            Service::Static => return None,
            Service::Redirect(redirect) => (ServiceKey::Redirect(redirect.label()), true),
            Service::Respond(response) => (ServiceKey::Respond(response.status.as_u16()), true),
        };
        Some(RouteKey {
            id: &route.id,
            service,
            is_ready,
            strict_paths: route.strict_paths,
        })
    }
}

impl RulesByPath {
    pub(super) fn rules_for(&self, path: &PathCell) -> Vec<usize> {
        let ids = path
            .fulfilled
            .iter()
            .filter_map(|id| usize::try_from(*id).ok());
        let lists = ids.filter_map(|id| self.by_condition.get(id));
        let mut rules: Vec<usize> = lists.flatten().chain(&self.pathless).copied().collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

/// Returns true if equal rules with equal outcomes compete in the same order, so that neither plan
/// has to be evaluated.
pub(super) fn is_same_competition(
    before: &Side<'_>,
    old: &[usize],
    after: &Side<'_>,
    new: &[usize],
) -> bool {
    let is_same = |(old, new): (&usize, &usize)| {
        let keys = (before.route_key(*old), after.route_key(*new));
        keys.0.is_some() && keys.0 == keys.1 && before.rule(*old) == after.rule(*new)
    };
    old.len() == new.len() && old.iter().zip(new).all(is_same)
}

/// The distinct path conditions of the rules of both plans, with their ids.
pub(super) fn path_conditions<'r>(
    rules: impl Iterator<Item = &'r Rule>,
) -> (Vec<&'r PathPattern>, HashMap<String, usize>) {
    let mut ids: HashMap<String, usize> = HashMap::new();
    let mut patterns: Vec<&PathPattern> = Vec::new();
    for pattern in rules.flat_map(|rule| &rule.paths) {
        let next = patterns.len();
        if *ids.entry(pattern.to_string()).or_insert(next) == next {
            patterns.push(pattern);
        }
    }
    (patterns, ids)
}
