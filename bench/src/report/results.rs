//! Results of a run as committed: medians, ranges and ratios.

use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::report::{CaseReport, Entry, Report};
use crate::statistics::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Results of a run, without single samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    pub(crate) effort: Effort,
    /// Version of each program.
    pub(crate) versions: BTreeMap<String, String>,
    /// Requests per second of the load generator alone.
    pub(crate) capacity_per_second: f64,
    pub(crate) cases: Vec<CaseResult>,
}

/// Results of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CaseResult {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Whether `proxyd` is compared with its peers. Otherwise its set-ups are compared with the
    /// first one.
    pub(crate) with_peers: bool,
    /// Figures to show.
    pub(crate) figures: Vec<Figure>,
    pub(crate) entries: Vec<EntryResult>,
}

/// Results of one server in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntryResult {
    pub(crate) name: String,
    /// Reason why the server could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unsupported: Option<String>,
    /// Number of samples.
    pub(crate) rounds: usize,
    /// Invalid samples, with the first one's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) void: Option<InvalidRounds>,
    /// Median and range of each figure: of valid rounds, or of all if none is valid.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    spreads: BTreeMap<Figure, Spread>,
    /// Ratio of each figure to that of another entry, computed per round.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ratios: BTreeMap<String, BTreeMap<Figure, Spread>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InvalidRounds {
    pub(crate) rounds: usize,
    pub(crate) reason: String,
}

impl From<&Report> for Results {
    fn from(report: &Report) -> Self {
        let Report {
            machine,
            effort,
            versions,
            capacity_per_second,
            cases,
        } = report;
        Self {
            machine: machine.clone(),
            effort: *effort,
            versions: versions.clone(),
            capacity_per_second: *capacity_per_second,
            cases: cases.iter().map(CaseResult::from).collect(),
        }
    }
}

impl From<&CaseReport> for CaseResult {
    fn from(case: &CaseReport) -> Self {
        let entries = case.entries.iter().enumerate();
        Self {
            name: case.name.clone(),
            title: case.title.clone(),
            with_peers: case.with_peers,
            figures: case.figures.clone(),
            entries: entries
                .map(|(place, entry)| EntryResult::new(case, place, entry))
                .collect(),
        }
    }
}

impl CaseResult {
    /// Finds an entry by its name.
    pub(crate) fn entry(&self, name: &str) -> Option<&EntryResult> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

impl EntryResult {
    /// Computes the results, with ratios for the tables: from `proxyd`, the first entry, to each
    /// peer, or from each set-up to the first one.
    fn new(case: &CaseReport, place: usize, entry: &Entry) -> Self {
        let figures = || case.figures.iter().copied();
        let measures = case.entries.iter().enumerate().filter(|(other, _)| {
            if case.with_peers {
                place == 0 && *other > 0
            } else {
                place > 0 && *other == 0
            }
        });
        let ratios = measures.map(|(_, other)| {
            let ratios = figures().filter_map(|figure| Some((figure, entry.ratio(other, figure)?)));
            (other.name.clone(), ratios.collect::<BTreeMap<_, _>>())
        });
        let mut void = entry.rounds.iter().filter_map(|round| round.void.as_ref());
        Self {
            name: entry.name.clone(),
            unsupported: entry.unsupported.clone(),
            rounds: entry.rounds.len(),
            void: void.next().map(|reason| InvalidRounds {
                reason: reason.clone(),
                rounds: void.count() + 1,
            }),
            spreads: figures()
                .filter_map(|figure| Some((figure, entry.spread(figure)?)))
                .collect(),
            ratios: ratios.filter(|(_, ratios)| !ratios.is_empty()).collect(),
        }
    }

    /// Returns true if there are samples, but no valid ones.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.void
            .as_ref()
            .is_some_and(|void| void.rounds == self.rounds)
    }

    /// Returns median and range of a figure.
    pub(crate) fn spread(&self, figure: Figure) -> Option<Spread> {
        self.spreads.get(&figure).copied()
    }

    /// Returns the ratio of this entry's figure to that of another entry.
    pub(crate) fn ratio(&self, to: &Self, figure: Figure) -> Option<Spread> {
        self.ratios.get(&to.name)?.get(&figure).copied()
    }
}
