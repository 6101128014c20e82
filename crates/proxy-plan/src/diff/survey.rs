//! One request of each kind that a plan distinguishes, with its decision.

use super::cells::hosts::{HostCell, HostPartition};
use super::cells::paths::{PathCell, PathPartition};
use super::cells::{Side, path_conditions};
use super::region::Probe;
use super::search::{DiffLimit, MAX_REQUESTS, TriedChoices, choices, listener_classes, states};
use crate::decide::Decision;
use crate::explain::ExplainRequest;
use crate::plan::Plan;
use proxy_routing::{HostPattern, PathPattern};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

/// A request of one cell of a plan.
#[derive(Debug)]
pub(crate) struct SurveyedRequest<'a> {
    /// Names of the listeners with equal results.
    pub(crate) listeners: &'a [String],
    scheme: &'a str,
    host: &'a HostCell,
    path: &'a PathCell,
    probe: Probe,
    pub(crate) decision: Decision<'a>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SurveyLimits {
    pub(crate) reached: BTreeSet<DiffLimit>,
    /// Regexes for which only a sample of paths was tried.
    pub(crate) regexes: BTreeSet<String>,
}

/// Decides on one request of each cell into which the conditions of `plan`, `hosts` and `paths`
/// divide all requests.
pub(crate) fn survey(
    plan: &Plan,
    hosts: &[&HostPattern],
    paths: &[&PathPattern],
    mut see: impl FnMut(&SurveyedRequest<'_>),
) -> SurveyLimits {
    let side = Side::new(plan);
    let classes = listener_classes(&side, &side);
    let mut limits = SurveyLimits::default();
    let mut requests = 0_usize;
    let mut known = HashSet::new();
    let own = side.rules().iter().flat_map(|rule| &rule.hosts);
    let distinct = own
        .chain(hosts.iter().copied())
        .filter(|one| known.insert((*one).clone()));
    for host in HostPartition::new(distinct).cells() {
        let rules = side.rules_for(&host);
        let (mut patterns, ids) = path_conditions(rules.iter().filter_map(|at| side.rule(*at)));
        let new = paths
            .iter()
            .filter(|path| !ids.contains_key(&path.to_string()));
        patterns.extend(new);
        let by_path = side.by_path(&rules, &ids);
        let partition = PathPartition::new(0, &patterns);
        limits
            .regexes
            .extend(partition.regexes().map(str::to_owned));
        let (cells, is_cut) = partition.cells();
        if is_cut {
            limits.reached.insert(DiffLimit::SampledPaths);
        }
        for path in &cells {
            let rules = by_path.rules_for(path);
            let rules = rules.iter().filter_map(|at| side.rule(*at));
            let TriedChoices {
                axes,
                choices,
                is_whole,
            } = choices(path, rules);
            if !is_whole {
                limits.reached.insert(DiffLimit::Combinations);
            }
            for (class, choice) in classes
                .iter()
                .flat_map(|one| choices.iter().map(move |choice| (one, choice)))
            {
                if requests == MAX_REQUESTS {
                    limits.reached.insert(DiffLimit::Requests);
                    return limits;
                }
                requests += 1;
                let probe = Probe::new(&host, path, &states(&axes, choice));
                let decision = plan.decide_for_admitted(
                    &probe.head(plan, class.after),
                    &side.states,
                    Duration::ZERO,
                );
                see(&SurveyedRequest {
                    listeners: &class.names,
                    scheme: class.scheme,
                    host: &host,
                    path,
                    probe,
                    decision,
                });
            }
        }
    }
    limits
}

impl SurveyedRequest<'_> {
    /// Returns true if the request's host fulfils one of `hosts`, or `hosts` is empty.
    pub(crate) fn has_host(&self, hosts: &[&HostPattern]) -> bool {
        hosts.is_empty() || hosts.iter().any(|one| one.matches(&self.host.example))
    }

    /// Returns true if the request's path fulfils one of `paths`, or `paths` is empty.
    pub(crate) fn has_path(&self, paths: &[&PathPattern]) -> bool {
        paths.is_empty() || paths.iter().any(|one| one.matches(&self.path.example))
    }

    /// Returns true if the request has a certain host, rather than none or any other.
    pub(crate) fn has_named_host(&self) -> bool {
        !self.host.example.is_empty() && !self.host.label.starts_with("any")
    }

    /// The request in the form of `proxyd explain`, on `listener`.
    pub(crate) fn request(&self, listener: Option<&str>) -> ExplainRequest {
        self.probe.request(listener, self.scheme)
    }
}
