//! All samples of a run, in JSON.

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

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) effort: Effort,
    /// The version of each program.
    pub(crate) versions: BTreeMap<String, String>,
    /// Requests per second of the load generator alone.
    pub(crate) capacity_per_second: f64,
    pub(crate) cases: Vec<CaseReport>,
}

/// One case of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CaseReport {
    /// Its name in targets and on the command line.
    pub(crate) name: String,
    /// Its description.
    pub(crate) title: String,
    /// proxyd is compared with its peers; otherwise several set-ups are compared with the first.
    pub(crate) with_peers: bool,
    /// The reported figures; rounds contain further ones.
    pub(crate) figures: Vec<Figure>,
    pub(crate) entries: Vec<Entry>,
}

/// One server in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The reason why it could not be measured.
    pub(crate) unsupported: Option<String>,
    pub(crate) rounds: Vec<Round>,
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) figures: BTreeMap<Figure, f64>,
    /// The reason why it is invalid, although it was repeated.
    pub(crate) void: Option<String>,
    /// Number of repetitions.
    pub(crate) repeated: u32,
}

impl CaseReport {
    /// Adds the repeated rounds of the same case.
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
    /// An entry that could not be measured.
    pub(crate) fn unsupported(name: &str, why: String) -> Self {
        Self {
            name: name.to_owned(),
            unsupported: Some(why),
            rounds: Vec::new(),
        }
    }

    /// An entry to be measured.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            unsupported: None,
            rounds: Vec::new(),
        }
    }

    /// Returns true if rounds were measured and none is valid.
    pub(crate) fn is_doubtful(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|round| round.void.is_some())
    }

    /// The figure's median and range over valid rounds, or over all if none is valid.
    pub(crate) fn spread(&self, figure: Figure) -> Option<Spread> {
        let doubtful = self.is_doubtful();
        let rounds = self.rounds.iter();
        let counting = rounds.filter(|round| doubtful || round.void.is_none());
        statistics::spread(counting.filter_map(|round| round.figures.get(&figure).copied()))
    }

    /// The ratio of this entry's figure to another's, over rounds valid for both.
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

    /// An entry with rounds that hold these values of one figure; none is a void round with 99.
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
