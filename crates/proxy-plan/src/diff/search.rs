//! The search for requests that two plans answer differently.

use super::answer::Answer;
use super::cells::conditions::{Axis, Field, FieldStates, axes, options_axis};
use super::cells::hosts::{HostCell, HostPartition};
use super::cells::paths::{ASTERISK, PathCell, PathPartition};
use super::cells::{HostRules, RouteKey, Side, is_same_competition, path_conditions};
use super::region::Probe;
use super::rows::{ChangedRequests, Row, merged_rows};
use crate::plan::Plan;
use crate::route::Service;
use proxy_model::BindAddress;
use proxy_routing::{PathPattern, Rule, is_plain_path};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::time::Duration;

/// Maximum number of requests that are decided on in one comparison.
pub(super) const MAX_REQUESTS: usize = 1_000_000;
/// Maximum number of combinations of methods, headers and query parameters of one host and path.
const MAX_COMBINATIONS: usize = 4_096;

/// A limit of the comparison that was reached: differences beyond it are not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiffLimit {
    /// The number of requests that are decided on.
    Requests,
    /// The number of combinations of methods, headers and query parameters of one host and path.
    Combinations,
    /// The number of paths that are sampled for regexes.
    SampledPaths,
}

/// Listeners of both plans with the same default routes.
#[derive(Debug)]
pub(super) struct ListenerClass {
    pub(super) before: usize,
    pub(super) after: usize,
    /// Names after.
    pub(super) names: Vec<String>,
    /// Both plans answer requests without a route in the same way.
    is_default_same: bool,
    pub(super) scheme: &'static str,
}

/// Combinations of one state of each axis that are tried on the requests of a path.
#[derive(Debug)]
pub(super) struct TriedChoices {
    pub(super) axes: Vec<Axis>,
    /// Index of a state of each axis, for each choice.
    pub(super) choices: Vec<Vec<usize>>,
    /// False if some combinations are omitted.
    pub(super) is_whole: bool,
}

/// The comparison of two plans by requests.
#[derive(Debug)]
pub(super) struct DiffSearch<'p> {
    pub(super) before: Side<'p>,
    pub(super) after: Side<'p>,
    pub(super) classes: Vec<ListenerClass>,
    pub(super) hosts: Vec<HostCell>,
    pub(super) found: Vec<ChangedRequests>,
    pub(super) limits: BTreeSet<DiffLimit>,
    /// Regexes that were involved.
    pub(super) regexes: BTreeSet<String>,
    /// Ids of the routes that answered a request before, and after.
    pub(super) answered: [HashSet<String>; 2],
    /// Number of cells of the paths of each host, by the partition.
    pub(super) path_counts: HashMap<usize, usize>,
    /// Cells of paths, by the texts of the conditions that divide them.
    partitions: HashMap<Vec<String>, Vec<PathCell>>,
    requests: usize,
    /// IDs of routes with cells to evaluate even if equal rules compete.
    pub(super) wanted: Option<HashSet<String>>,
}

impl<'p> DiffSearch<'p> {
    pub(super) fn new(before: &'p Plan, after: &'p Plan) -> Self {
        let (before, after) = (Side::new(before), Side::new(after));
        let patterns = before.rules().iter().chain(after.rules());
        let mut known = HashSet::new();
        let patterns = patterns.flat_map(|rule| &rule.hosts);
        let partition =
            HostPartition::new(patterns.filter(|pattern| known.insert((*pattern).clone())));
        Self {
            classes: listener_classes(&before, &after),
            hosts: partition.cells(),
            before,
            after,
            found: Vec::new(),
            limits: BTreeSet::new(),
            regexes: BTreeSet::new(),
            answered: [HashSet::new(), HashSet::new()],
            path_counts: HashMap::new(),
            partitions: HashMap::new(),
            requests: 0,
            wanted: None,
        }
    }

    pub(super) fn run(&mut self) {
        for host in self.hosts.clone() {
            if self.limits.contains(&DiffLimit::Requests) {
                return;
            }
            let rules = HostRules {
                before: self.before.rules_for(&host),
                after: self.after.rules_for(&host),
            };
            if self.is_needed(&rules.before, &rules.after) {
                self.compare_host(&host, &rules);
            }
        }
    }

    /// Returns true if the rules may answer differently, or include a route of interest.
    fn is_needed(&self, old: &[usize], new: &[usize]) -> bool {
        match &self.wanted {
            Some(wanted) => {
                let mut rules = new.iter().filter_map(|at| self.after.rule(*at));
                rules.any(|rule| wanted.contains(&rule.id))
            }
            None => {
                !self.classes.iter().all(|class| class.is_default_same)
                    || !is_same_competition(&self.before, old, &self.after, new)
            }
        }
    }

    fn compare_host(&mut self, host: &HostCell, rules: &HostRules) {
        let old = rules.before.iter().filter_map(|at| self.before.rule(*at));
        let new = rules.after.iter().filter_map(|at| self.after.rule(*at));
        let (patterns, ids) = path_conditions(old.chain(new));
        let paths = self.path_cells(&patterns);
        let old = self.before.by_path(&rules.before, &ids);
        let new = self.after.by_path(&rules.after, &ids);
        for path in &paths {
            let (old, new) = (old.rules_for(path), new.rules_for(path));
            // Other readings of a path may match routes of other paths.
            let is_plain = is_plain_path(&path.example);
            if !is_plain || self.is_needed(&old, &new) {
                self.compare_path(host, path, &old, &new);
            }
        }
    }

    /// The cells of `patterns`, the same ones for the same patterns.
    fn path_cells(&mut self, patterns: &[&PathPattern]) -> Vec<PathCell> {
        let key: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        if let Some(cells) = self.partitions.get(&key) {
            return cells.clone();
        }
        let id = self.partitions.len();
        let partition = PathPartition::new(id, patterns);
        self.regexes.extend(partition.regexes().map(str::to_owned));
        let (cells, is_cut) = partition.cells();
        if is_cut {
            self.limits.insert(DiffLimit::SampledPaths);
        }
        let count = cells.iter().filter(|cell| cell.example != ASTERISK).count();
        self.path_counts.insert(id, count);
        self.partitions.insert(key, cells.clone());
        cells
    }

    fn compare_path(&mut self, host: &HostCell, path: &PathCell, old: &[usize], new: &[usize]) {
        let old = old.iter().filter_map(|at| self.before.rule(*at));
        let new = new.iter().filter_map(|at| self.after.rule(*at));
        let TriedChoices {
            axes,
            choices,
            is_whole,
        } = choices(path, old.chain(new));
        if !is_whole {
            self.limits.insert(DiffLimit::Combinations);
        }
        for class in 0..self.classes.len() {
            let rows = self.rows(class, host, path, &axes, &choices);
            let is_equal = rows.iter().all(|row| row.before == row.after);
            if is_equal || self.wanted.is_some() {
                continue;
            }
            for (fields, row) in merged_rows(&axes, rows, is_whole) {
                self.found.push(ChangedRequests {
                    class,
                    host: host.index,
                    path: path.clone(),
                    fields,
                    before: row.before,
                    after: row.after,
                });
            }
        }
    }

    /// The answers of both plans to each of the choices.
    fn rows(
        &mut self,
        class: usize,
        host: &HostCell,
        path: &PathCell,
        axes: &[Axis],
        choices: &[Vec<usize>],
    ) -> Vec<Row> {
        let Some(class) = self.classes.get(class) else {
            return Vec::new();
        };
        let mut rows = Vec::with_capacity(choices.len());
        for choice in choices {
            if self.requests == MAX_REQUESTS {
                self.limits.insert(DiffLimit::Requests);
                break;
            }
            self.requests += 1;
            let probe = Probe::new(host, path, &states(axes, choice));
            let ask = |side: &Side<'_>, listener| {
                let decision = side.plan.decide_for_admitted(
                    &probe.head(side.plan, listener),
                    &side.states,
                    Duration::ZERO,
                );
                Answer::new(side.plan, &decision)
            };
            let row = Row {
                choice: choice.clone(),
                before: ask(&self.before, class.before),
                after: ask(&self.after, class.after),
            };
            for (answered, answer) in self.answered.iter_mut().zip([&row.before, &row.after]) {
                if let Some(route) = answer.route.as_deref()
                    && !answered.contains(route)
                {
                    answered.insert(route.to_owned());
                }
            }
            rows.push(row);
        }
        rows
    }
}

/// The choices to try on requests of a path, by the conditions of `rules`.
pub(super) fn choices<'r>(path: &PathCell, rules: impl Iterator<Item = &'r Rule>) -> TriedChoices {
    let mut axes = axes(rules);
    if path.example == ASTERISK {
        axes.retain(|axis| axis.field != Field::Method);
        axes.insert(0, options_axis());
    }
    let is_whole = combinations(&axes).is_some_and(|count| count <= MAX_COMBINATIONS);
    let choices = if is_whole {
        all_choices(&axes)
    } else {
        few_choices(&axes)
    };
    let is_cut = axes.iter().any(|axis| axis.is_cut);
    TriedChoices {
        axes,
        choices,
        is_whole: is_whole && !is_cut,
    }
}

/// The states of a choice: one of each axis.
pub(super) fn states(axes: &[Axis], choice: &[usize]) -> Vec<FieldStates> {
    let chosen = axes.iter().zip(choice);
    let chosen = chosen.map(|(axis, state)| FieldStates {
        field: axis.field.clone(),
        states: axis.states.get(*state).cloned().into_iter().collect(),
        named: axis.named.clone(),
    });
    chosen.collect()
}

fn combinations(axes: &[Axis]) -> Option<usize> {
    axes.iter().try_fold(1_usize, |product, axis| {
        product.checked_mul(axis.states.len())
    })
}

/// Every combination of states.
fn all_choices(axes: &[Axis]) -> Vec<Vec<usize>> {
    let mut choices = vec![Vec::new()];
    for axis in axes {
        let longer = choices.iter().flat_map(|choice: &Vec<usize>| {
            let states = 0..axis.states.len();
            states.map(|state| choice.iter().copied().chain([state]).collect())
        });
        choices = longer.collect();
    }
    choices
}

/// Combinations of the first states of all axes with one or two axes varied, and of the last states
/// of all.
fn few_choices(axes: &[Axis]) -> Vec<Vec<usize>> {
    let first = vec![0; axes.len()];
    let last: Vec<usize> = axes
        .iter()
        .map(|axis| axis.states.len().saturating_sub(1))
        .collect();
    let varied = |choice: &[usize], from: usize| {
        let axes = axes.iter().enumerate().skip(from);
        let single =
            axes.flat_map(|(at, axis)| (1..axis.states.len()).map(move |state| (at, state)));
        let choice = choice.to_vec();
        single.map(move |(at, state)| {
            let mut other = choice.clone();
            other
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|one| *one = state);
            (at, other)
        })
    };
    let one: Vec<(usize, Vec<usize>)> = varied(&first, 0).collect();
    let two = one.iter().flat_map(|(at, choice)| varied(choice, at + 1));
    let two = two.map(|(_, choice)| choice);
    let singles = one.iter().map(|(_, choice)| choice.clone());
    let all = [first, last].into_iter().chain(singles).chain(two);
    all.take(MAX_COMBINATIONS).collect()
}

/// The listeners of both plans, paired by name and else by address.
pub(super) fn listener_classes(before: &Side<'_>, after: &Side<'_>) -> Vec<ListenerClass> {
    let (old, new) = (
        &before.plan.model().listeners,
        &after.plan.model().listeners,
    );
    let by_name = |name: &str| old.iter().position(|one| one.name == name);
    let by_address = |address: &BindAddress| old.iter().position(|one| *one.address == *address);
    let mut known: HashMap<_, usize> = HashMap::new();
    let mut list: Vec<ListenerClass> = Vec::new();
    for (at, listener) in new.iter().enumerate() {
        let paired = by_name(&listener.name).or_else(|| by_address(&listener.address));
        let Some(paired) = paired else { continue };
        let key = (
            listener_key(before, paired).ok_or(paired),
            listener_key(after, at).ok_or(at),
        );
        let class = *known.entry(key).or_insert_with(|| {
            list.push(ListenerClass {
                before: paired,
                after: at,
                names: Vec::new(),
                is_default_same: key.0 == key.1 && key.0.is_ok(),
                scheme: if listener.tls.is_some() {
                    "https"
                } else {
                    "http"
                },
            });
            list.len() - 1
        });
        if let Some(class) = list.get_mut(class) {
            class.names.push(listener.name.clone());
        }
    }
    if old.is_empty() && new.is_empty() {
        list.push(ListenerClass {
            before: 0,
            after: 0,
            names: Vec::new(),
            is_default_same: true,
            scheme: "http",
        });
    }
    list
}

/// The parts of a listener that the answers to its requests depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ListenerKey<'p> {
    strict_paths: bool,
    /// The listener has TLS, on which redirects depend.
    is_tls: bool,
    /// The name, if a route is bound to it.
    bound: Option<&'p str>,
    default: Option<RouteKey<'p>>,
}

/// The key of a listener; `None` if its requests must be evaluated.
fn listener_key<'p>(side: &Side<'p>, index: usize) -> Option<ListenerKey<'p>> {
    let listener = side.plan.listeners().get(index)?;
    let default = match listener.default_route {
        Some(route) => Some(side.route_key(route)?),
        None => None,
    };
    let mut routes = side.plan.routes().iter();
    let is_scheme_used = routes.any(|route| matches!(route.service, Service::Redirect(_)));
    let is_tls = is_scheme_used && side.plan.is_tls(index);
    let mut names = side.rules().iter().flat_map(|rule| &rule.listeners);
    Some(ListenerKey {
        strict_paths: listener.strict_paths,
        is_tls,
        bound: names
            .find(|name| **name == listener.name)
            .map(String::as_str),
        default,
    })
}

impl fmt::Display for DiffLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests => write!(f, "{MAX_REQUESTS} requests were compared, and there are more"),
            Self::Combinations => f.write_str(
                "methods, headers and query parameters of a path have more combinations than are compared",
            ),
            Self::SampledPaths => f.write_str("regexes have more paths than are sampled"),
        }
    }
}
