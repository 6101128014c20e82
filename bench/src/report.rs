//! All samples of a run, as JSON.

pub(crate) mod chart;
pub(crate) mod page;
pub(crate) mod publish;
#[cfg(test)]
pub(crate) mod report_fixture;
pub(crate) mod results;
pub(crate) mod tables;
pub(crate) mod targets;

use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::statistics::{self, Spread};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) effort: Effort,
    /// Version of each program.
    pub(crate) versions: BTreeMap<String, String>,
    /// Requests per second of the load generator alone.
    pub(crate) capacity_per_second: f64,
    pub(crate) cases: Vec<CaseReport>,
}

/// Report of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CaseReport {
    /// Name in targets and on the command line.
    pub(crate) name: String,
    pub(crate) title: String,
    /// Whether `proxyd` is compared with its peers. Otherwise its set-ups are compared with the
    /// first one.
    pub(crate) with_peers: bool,
    /// Figures to show; rounds contain further ones.
    pub(crate) figures: Vec<Figure>,
    pub(crate) entries: Vec<Entry>,
}

/// Samples of one server in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Reason why the server could not be measured.
    pub(crate) unsupported: Option<String>,
    pub(crate) rounds: Vec<Round>,
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) figures: BTreeMap<Figure, f64>,
    /// Reason why the sample is invalid, after all repetitions.
    pub(crate) void: Option<String>,
    pub(crate) repeated: u32,
}

impl CaseReport {
    /// Appends the rounds of a repeated case.
    pub(crate) fn extend(&mut self, again: Self) {
        for entry in again.entries {
            let first = self.entries.iter_mut().find(|one| one.name == entry.name);
            if let Some(first) = first {
                first.rounds.extend(entry.rounds);
            }
        }
    }
}

impl Entry {
    /// Creates an entry of a server that could not be measured.
    pub(crate) fn unsupported(name: &str, why: String) -> Self {
        Self {
            name: name.to_owned(),
            unsupported: Some(why),
            rounds: Vec::new(),
        }
    }

    /// Creates an entry without samples.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            unsupported: None,
            rounds: Vec::new(),
        }
    }

    /// Returns true if there are samples, but no valid ones.
    pub(crate) fn is_doubtful(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|round| round.void.is_some())
    }

    /// Returns median and range of a figure: of valid rounds, or of all if none is valid.
    pub(crate) fn spread(&self, figure: Figure) -> Option<Spread> {
        let doubtful = self.is_doubtful();
        let rounds = self.rounds.iter();
        let counting = rounds.filter(|round| doubtful || round.void.is_none());
        statistics::spread(counting.filter_map(|round| round.figures.get(&figure).copied()))
    }

    /// Returns median and range of the ratio to another server's figure, in rounds that are valid
    /// for both.
    pub(crate) fn ratio(&self, to: &Self, figure: Figure) -> Option<Spread> {
        let rounds = self.rounds.iter().zip(&to.rounds);
        let both = rounds.filter(|(ours, theirs)| ours.void.is_none() && theirs.void.is_none());
        statistics::spread(both.filter_map(|(ours, theirs)| {
            let theirs = theirs.figures.get(&figure).filter(|value| **value != 0.0)?;
            Some(ours.figures.get(&figure)? / theirs)
        }))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates an entry with these values of one figure; `None` is a void round with the value 99.
    pub(crate) fn entry(name: &str, figure: Figure, values: &[Option<f64>]) -> Entry {
        let rounds = values.iter().map(|value| Round {
            figures: BTreeMap::from([(figure, value.unwrap_or(99.0))]),
            void: value.is_none().then(|| "void".to_owned()),
            repeated: 0,
        });
        Entry {
            rounds: rounds.collect(),
            ..Entry::new(name)
        }
    }

    #[test]
    fn void_rounds_do_not_count() {
        let figure = Figure::CpuMicros;
        let ours = entry("proxyd", figure, &[Some(9.0), None, Some(8.0)]);
        let theirs = entry("nginx", figure, &[Some(10.0), Some(1.0), Some(10.0)]);

        let ratio = ours.ratio(&theirs, figure).unwrap();
        assert_eq!((ratio.least, ratio.greatest), (0.8, 0.9));
        assert!((ours.spread(figure).unwrap().greatest - 9.0).abs() < 1e-9);
        assert!(!ours.is_doubtful());
    }

    #[test]
    fn an_entry_without_a_round_that_counts_shows_what_it_has() {
        let ours = entry("proxyd", Figure::CpuMicros, &[None]);
        assert!(ours.is_doubtful());
        assert!((ours.spread(Figure::CpuMicros).unwrap().median - 99.0).abs() < 1e-9);
        assert_eq!(ours.ratio(&ours, Figure::CpuMicros), None);
    }
}
