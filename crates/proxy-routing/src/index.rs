//! An index of rules by host, then by path, then by further conditions.

mod affix_index;
mod bucket;
mod candidate;
mod hash;
mod host_rules;
mod keyed;
mod literal;
mod regexes;
mod table;

use crate::host_pattern::{HostKind, HostPattern};
use crate::path_pattern::{PathKind, PathPattern, PathRegex};
use crate::rank::{Rank, narrow};
use crate::rule::Rule;
use host_rules::HostRulesBuilder;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

pub(crate) use affix_index::AffixIndex;
pub(crate) use bucket::Bucket;
pub(crate) use candidate::Candidate;
pub(crate) use host_rules::HostRules;

/// The index: each rule is stored once for every pair of its hosts and paths.
#[derive(Debug)]
pub(crate) struct Index {
    sites: Vec<HostRules>,
    /// Entries of exact hosts.
    exact: AffixIndex,
    /// Entries of wildcards.
    below: AffixIndex,
    exact_count: usize,
    /// The entry of rules without a host.
    anywhere: Option<usize>,
}

/// The index of `rules`, with the regexes that its groups refer to.
pub(crate) fn file(rules: &[Rule]) -> (Index, Vec<PathRegex>) {
    let mut drafts: BTreeMap<Option<&HostKind>, HostRulesBuilder<'_>> = BTreeMap::new();
    let mut regexes = RegexList::default();
    for (index, rule) in rules.iter().enumerate() {
        for host in conditions_or_none(&rule.hosts) {
            let draft = drafts.entry(host.map(HostPattern::kind)).or_default();
            for path in conditions_or_none(&rule.paths) {
                let candidate = candidate(index, rule, host, path);
                let regex = path.and_then(|path| regexes.add(path));
                draft.add(path.map(PathPattern::kind), regex, candidate);
            }
        }
    }
    (Index::new(drafts, &regexes.texts, rules), regexes.compiled)
}

/// Yields each condition, or `None` once if there is none, which matches everything.
fn conditions_or_none<T>(conditions: &[T]) -> impl Iterator<Item = Option<&T>> {
    let none = conditions.is_empty().then_some(None);
    conditions.iter().map(Some).chain(none)
}

fn candidate(
    index: usize,
    rule: &Rule,
    host: Option<&HostPattern>,
    path: Option<&PathPattern>,
) -> Candidate {
    let bound = Rank {
        host: host.map_or(0, HostPattern::specificity),
        path: path.map_or(0, PathPattern::specificity),
        ..best_rank(index, rule)
    };
    let bare = rule.is_bare();
    Candidate { bound, bare }
}

/// Each distinct regex once.
#[derive(Debug, Default)]
struct RegexList {
    ids: HashMap<String, usize>,
    texts: Vec<String>,
    compiled: Vec<PathRegex>,
}

impl RegexList {
    fn add(&mut self, path: &PathPattern) -> Option<usize> {
        let PathKind::Regex(regex) = path.kind() else {
            return None;
        };
        if let Some(id) = self.ids.get(regex.as_str()) {
            return Some(*id);
        }
        let id = self.compiled.len();
        self.ids.insert(regex.as_str().to_owned(), id);
        self.texts.push(regex.as_str().to_owned());
        self.compiled.push(regex.clone());
        Some(id)
    }
}

impl Index {
    fn new(
        drafts: BTreeMap<Option<&HostKind>, HostRulesBuilder<'_>>,
        regexes: &[String],
        rules: &[Rule],
    ) -> Self {
        let (mut exact, mut below, mut anywhere) = (Vec::new(), Vec::new(), None);
        let (mut exact_sites, mut below_sites) = (Vec::new(), Vec::new());
        for (host, draft) in drafts {
            let Some(site) = draft.finish(regexes, rules) else {
                continue;
            };
            match host {
                None => anywhere = Some(site),
                Some(HostKind::Exact(name)) => {
                    exact.push((name.clone(), site.top));
                    exact_sites.push(site);
                }
                Some(HostKind::Below(suffix)) => {
                    below.push((suffix.clone(), site.top));
                    below_sites.push(site);
                }
            }
        }
        let exact_count = exact_sites.len();
        let mut sites = exact_sites;
        sites.append(&mut below_sites);
        let anywhere = anywhere.map(|site| {
            sites.push(site);
            sites.len() - 1
        });
        Self {
            sites,
            exact: AffixIndex::from_exact(exact),
            below: AffixIndex::from_suffixes(below),
            exact_count,
            anywhere,
        }
    }

    /// The entries for `host`, the most specific first.
    pub(crate) fn sites_for(&self, host: &str) -> impl Iterator<Item = &HostRules> + use<'_> {
        let exact = self.exact.exact(host).map(|link| link.target);
        let below = self.below.with_parents(self.below.longest_suffix(host));
        let below = below.map(|link| self.exact_count + link.target);
        let targets = exact.into_iter().chain(below).chain(self.anywhere);
        targets.filter_map(|target| self.sites.get(target))
    }

    /// The entries with hosts that include all matches of `host`; `None` for all hosts.
    pub(crate) fn sites_around(&self, host: Option<&HostPattern>) -> Vec<&HostRules> {
        match host.map(HostPattern::kind) {
            None => self.sites_for("").collect(),
            Some(HostKind::Exact(name)) => self.sites_for(name).collect(),
            // No exact host begins with a dash and a dot, so only suffixes match.
            Some(HostKind::Below(suffix)) => self.sites_for(&format!("-{suffix}")).collect(),
        }
    }
}

/// The best rank that `rule` can have for any request.
pub(crate) fn best_rank(index: usize, rule: &Rule) -> Rank {
    let paths = rule.paths.iter().map(PathPattern::specificity);
    let hosts = rule.hosts.iter().map(HostPattern::specificity);
    Rank {
        priority: rule.priority,
        host: hosts.max().unwrap_or_default(),
        path: paths.max().unwrap_or_default(),
        conditions: rule.most_conditions(),
        order: Reverse(narrow(index)),
    }
}
