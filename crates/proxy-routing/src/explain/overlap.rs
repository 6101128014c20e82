//! Pairs of rules that match the same requests, where the order of comparing may surprise.

use crate::explain::condition::ConditionKind;
use crate::host_pattern::HostPattern;
use crate::path_pattern::PathPattern;
use crate::rank::{DecidingRank, Rank, narrow};
use crate::router::Router;
use crate::rule::Rule;
use std::cmp::{Ordering, Reverse};

/// Maximum number of rules that are compared with each other, the first ones of the configuration.
const MAX_RULES_COMPARED: usize = 1_000;
/// Maximum number of hosts or paths of one rule that are compared.
const MAX_PATTERNS_COMPARED: usize = 8;

/// A rule that loses requests to a less narrow one of the same priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarrowerLoser {
    /// The rule that loses.
    pub loser: usize,
    /// The rule that wins.
    pub winner: usize,
    /// The comparison that decides: [`DecidingRank::Host`] or [`DecidingRank::Path`].
    pub because: DecidingRank,
    /// The kind of condition in which the loser is narrower.
    pub narrower: ConditionKind,
    /// Hosts and paths of requests that both rules match.
    pub requests: String,
}

/// Requests that another rule takes since hosts are compared before paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reordered {
    /// The rule that took the requests when paths were compared before hosts, and a longer prefix
    /// before a regex.
    pub before: usize,
    /// The rule that takes them now.
    pub now: usize,
    /// Hosts and paths of these requests.
    pub requests: String,
}

/// Patterns with requests in common, as far as their texts show.
#[derive(Clone, Copy, Debug)]
struct Shared<'r> {
    /// The narrower host; `None` if neither rule has one.
    host: Option<&'r HostPattern>,
    /// The narrower path; `None` if neither rule has one.
    path: Option<&'r PathPattern>,
}

impl Router {
    /// For each rule, at most one other rule that wins some of its requests by a more specific host
    /// or path, although the first is narrower in a kind of condition that is compared later. Every
    /// result is correct; rules with the same requests only by chance, such as two regexes, are not
    /// found, and of more than 1 000 rules the first 1 000 are compared.
    #[must_use]
    pub fn narrower_losers(&self) -> Vec<NarrowerLoser> {
        let any_host = self.compared().any(|(_, rule)| !rule.hosts.is_empty());
        let may_lose = |low: &Rule| any_host || !low.is_bare();
        let losers = self.compared().filter(|(_, low)| may_lose(low));
        let found = losers.filter_map(|(loser, low)| {
            let mut winners = self.compared().filter(|(at, _)| *at != loser);
            winners.find_map(|(winner, high)| {
                let loss = narrower_loser(high, low)?;
                Some(NarrowerLoser {
                    loser,
                    winner,
                    because: loss.because,
                    narrower: loss.narrower,
                    requests: loss.shared.describe(),
                })
            })
        });
        found.collect()
    }

    /// Pairs of rules between which requests moved when hosts began to be compared before paths,
    /// with the same exceptions as for [`Router::narrower_losers`].
    #[must_use]
    pub fn reordered(&self) -> Vec<Reordered> {
        let pairs = self.compared().flat_map(|first| {
            let later = self.compared().skip(first.0 + 1);
            later.map(move |second| (first, second))
        });
        pairs
            .filter_map(|(first, second)| reordered(first, second))
            .collect()
    }

    fn compared(&self) -> impl Iterator<Item = (usize, &Rule)> {
        self.rules().iter().take(MAX_RULES_COMPARED).enumerate()
    }
}

/// Requests that a rule takes from one with a narrower condition.
struct Loss<'r> {
    because: DecidingRank,
    narrower: ConditionKind,
    shared: Shared<'r>,
}

fn narrower_loser<'r>(high: &'r Rule, low: &'r Rule) -> Option<Loss<'r>> {
    const FURTHER: [ConditionKind; 4] = [
        ConditionKind::Listener,
        ConditionKind::Method,
        ConditionKind::Header,
        ConditionKind::Query,
    ];
    // A rule wins by its host if it has one, or by its path if the loser has a further condition.
    let may_win = !high.hosts.is_empty() || !low.is_bare();
    if high.priority != low.priority || !may_win || !may_share_requests(high, low) {
        return None;
    }
    shared_requests(high, low).find_map(|shared| {
        let (ours, theirs) = (shared.rank(high), shared.rank(low));
        let by_host = theirs.host < ours.host;
        let by_path = theirs.host == ours.host && theirs.path < ours.path;
        let narrower_path = || {
            let path = shared
                .path
                .filter(|path| low.paths.contains(path) && !path.covers_all())?;
            let is_wider = |wide: &PathPattern| wide.covers(path) && wide != path;
            let wider = high.paths.is_empty() || high.paths.iter().any(is_wider);
            (wider && !high.paths.contains(path)).then_some(ConditionKind::Path)
        };
        let narrower = |kind: &ConditionKind| kind.covers(high, low) && !kind.covers(low, high);
        let further = || FURTHER.into_iter().find(narrower);
        if by_host {
            let kind = narrower_path().or_else(further)?;
            Some(Loss {
                because: DecidingRank::Host,
                narrower: kind,
                shared,
            })
        } else if by_path {
            Some(Loss {
                because: DecidingRank::Path,
                narrower: further()?,
                shared,
            })
        } else {
            None
        }
    })
}

fn reordered(
    (first_at, first): (usize, &Rule),
    (second_at, second): (usize, &Rule),
) -> Option<Reordered> {
    if first.priority != second.priority || !may_share_requests(first, second) {
        return None;
    }
    shared_requests(first, second).find_map(|shared| {
        let now = compare(&shared.rank(first), &shared.rank(second));
        let before = compare(&shared.former_rank(first), &shared.former_rank(second));
        let (before, now) = match (before, now) {
            (Ordering::Less, Ordering::Greater) => (second_at, first_at),
            (Ordering::Greater, Ordering::Less) => (first_at, second_at),
            _ => return None,
        };
        let requests = shared.describe();
        Some(Reordered {
            before,
            now,
            requests,
        })
    })
}

/// Compares ranks of the first and the second rule; the first wins if both are equal.
fn compare<R: Ord>(first: &R, second: &R) -> Ordering {
    first.cmp(second).then(Ordering::Greater)
}

/// Returns true if a request may have a listener and a method of both rules.
fn may_share_requests(one: &Rule, other: &Rule) -> bool {
    fn share<T: PartialEq>(ones: &[T], others: &[T]) -> bool {
        let both = |one| others.contains(one);
        ones.is_empty() || others.is_empty() || ones.iter().any(both)
    }
    share(&one.listeners, &other.listeners) && share(&one.methods, &other.methods)
}

fn shared_requests<'r>(one: &'r Rule, other: &'r Rule) -> impl Iterator<Item = Shared<'r>> {
    let hosts = narrower_ones(&one.hosts, &other.hosts, HostPattern::covers);
    hosts.into_iter().flat_map(move |host| {
        let covers = |wide: &PathPattern, path: &PathPattern| wide.covers(path);
        let paths = narrower_ones(&one.paths, &other.paths, covers);
        paths.into_iter().map(move |path| Shared { host, path })
    })
}

/// For each pair of patterns that match a common request, the narrower one; `None` if neither side
/// has patterns.
fn narrower_ones<'r, T>(
    ones: &'r [T],
    others: &'r [T],
    covers: impl Fn(&T, &T) -> bool,
) -> Vec<Option<&'r T>> {
    let ones = ones.get(..MAX_PATTERNS_COMPARED).unwrap_or(ones);
    let others = others.get(..MAX_PATTERNS_COMPARED).unwrap_or(others);
    match (ones, others) {
        ([], []) => vec![None],
        ([], some) | (some, []) => some.iter().map(Some).collect(),
        (ones, others) => {
            let pairs = ones
                .iter()
                .flat_map(|one| others.iter().map(move |other| (one, other)));
            let narrower = pairs.filter_map(|(one, other)| {
                if covers(one, other) {
                    Some(Some(other))
                } else {
                    covers(other, one).then_some(Some(one))
                }
            });
            narrower.collect()
        }
    }
}

impl Shared<'_> {
    /// Rank of `rule` for these requests, if all its further conditions hold. The position does not
    /// count.
    fn rank(&self, rule: &Rule) -> Rank {
        Rank {
            priority: rule.priority,
            host: self.host_specificity(rule),
            path: self
                .paths(rule)
                .map(PathPattern::specificity)
                .max()
                .unwrap_or_default(),
            conditions: rule.most_conditions(),
            order: Reverse(0),
        }
    }

    /// Rank of `rule` in the former order: path (exact, longer prefix, regex, none), host, number
    /// of header conditions.
    fn former_rank(&self, rule: &Rule) -> (u32, u32, u32) {
        let specificity = |path: &PathPattern| match path.setting() {
            "path" => u32::MAX,
            "path-prefix" => narrow(path.as_str().len()).saturating_add(1),
            _ => 1,
        };
        let path = self.paths(rule).map(specificity).max().unwrap_or_default();
        (
            path,
            self.host_specificity(rule),
            narrow(rule.headers.len()),
        )
    }

    fn host_specificity(&self, rule: &Rule) -> u32 {
        let covering = |host: &&HostPattern| self.host.is_some_and(|shared| host.covers(shared));
        let hosts = rule.hosts.iter().filter(covering);
        hosts
            .map(HostPattern::specificity)
            .max()
            .unwrap_or_default()
    }

    fn paths<'r>(&'r self, rule: &'r Rule) -> impl Iterator<Item = &'r PathPattern> {
        let covering = |path: &&PathPattern| self.path.is_some_and(|shared| path.covers(shared));
        rule.paths.iter().filter(covering)
    }

    fn describe(&self) -> String {
        let host = self.host.map(|host| format!("host \"{host}\""));
        let path = self.path.map(ToString::to_string);
        let parts: Vec<String> = host.into_iter().chain(path).collect();
        if parts.is_empty() {
            return "all requests".to_owned();
        }
        format!("requests for {}", parts.join(" and "))
    }
}
