//! The targets in `bench-targets.toml`, and the judgement of a run.

use crate::figure::Figure;
use crate::report::results::Results;
use crate::servers::server::OURS;
use crate::statistics::Spread;
use serde::Deserialize;
use std::fs;
use std::path::Path;
use xtask_kit::task_error::TaskError;

/// Path of the file in the project.
pub(crate) const PATH: &str = "bench/bench-targets.toml";

/// The whole file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Targets {
    /// The counts for `cargo xtask test-all`.
    #[serde(default, rename = "guard")]
    pub(crate) guards: Vec<Guard>,
    /// Maximum of user instructions with a recording by its defaults, over those without one.
    #[serde(default, rename = "recording-ratio")]
    pub(crate) recording_ratio: f64,
    /// Targets for ratios of two entries.
    #[serde(default, rename = "ratio")]
    ratios: Vec<Ratio>,
    /// Targets for single figures.
    #[serde(default, rename = "bound")]
    bounds: Vec<Bound>,
}

/// The committed counts of proxyd for one request.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Guard {
    pub(crate) request: GuardedRequest,
    /// User instructions.
    pub(crate) instructions: f64,
    /// System calls.
    pub(crate) system_calls: f64,
    /// Relative tolerance of a count.
    pub(crate) tolerance: f64,
}

/// A request that is counted, on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuardedRequest {
    /// A small GET with default limits.
    Get,
    /// The same with a recording by its defaults.
    RecordedGet,
    /// A small GET with every protection of a route.
    ProtectedGet,
    /// A POST of 10 KiB with default limits.
    Post,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ratio {
    case: String,
    figure: Figure,
    /// The judged entry; proxyd by default.
    of: Option<String>,
    /// The entry that it is compared with.
    to: String,
    /// The maximum.
    gate: f64,
    /// The goal, if it is lower.
    goal: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    case: String,
    figure: Figure,
    of: Option<String>,
    /// The maximum, in the figure's unit.
    gate: f64,
    goal: Option<f64>,
}

/// The result of one target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) case: String,
    pub(crate) figure: Figure,
    /// The judged figure.
    pub(crate) subject: String,
    pub(crate) measured: Option<Spread>,
    pub(crate) gate: f64,
    pub(crate) goal: Option<f64>,
    pub(crate) standing: TargetResult,
}

/// Relative distance from the gate within which a result may be due to chance.
const CLOSE_CALL_SHARE: f64 = 0.1;

impl Verdict {
    /// Returns true if another run might have a different result: the figure was close, or there
    /// was none.
    pub(crate) fn is_undecided(&self) -> bool {
        let measured = self.measured.map(|spread| spread.median);
        let is_close = |measured: f64| (measured / self.gate - 1.0).abs() <= CLOSE_CALL_SHARE;
        measured.map_or(self.standing == TargetResult::Unknown, is_close)
    }
}

/// The state of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetResult {
    /// Met.
    Met,
    /// The gate is passed, the goal is not.
    Gate,
    Missed,
    /// The case ran without a valid figure.
    Unknown,
    /// The case was not part of the run.
    LeftOut,
}

impl Targets {
    /// Reads the file.
    pub(crate) fn load(path: &Path) -> Result<Self, TaskError> {
        let text = fs::read_to_string(path).map_err(|source| TaskError::File {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text)
            .map_err(|cause| TaskError::Failed(format!("{}: {cause}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Judges a run.
    pub(crate) fn judge(&self, results: &Results) -> Vec<Verdict> {
        let ratios = self.ratios.iter().map(|ratio| ratio.judge(results));
        let bounds = self.bounds.iter().map(|bound| bound.judge(results));
        ratios.chain(bounds).collect()
    }
}

impl Ratio {
    fn judge(&self, results: &Results) -> Verdict {
        let of = self.of.as_deref().unwrap_or(OURS);
        let case = results.cases.iter().find(|case| case.name == self.case);
        let measured = case.and_then(|case| {
            let (ours, theirs) = (case.entry(of)?, case.entry(&self.to)?);
            ours.ratio(theirs, self.figure)
        });
        Verdict {
            case: self.case.clone(),
            figure: self.figure,
            subject: format!("{of} ÷ {}", self.to),
            standing: standing(case.is_some(), measured, self.gate, self.goal),
            measured,
            gate: self.gate,
            goal: self.goal,
        }
    }
}

impl Bound {
    fn judge(&self, results: &Results) -> Verdict {
        let of = self.of.as_deref().unwrap_or(OURS);
        let case = results.cases.iter().find(|case| case.name == self.case);
        let measured = case
            .and_then(|case| case.entry(of))
            .filter(|entry| !entry.is_doubtful())
            .and_then(|entry| entry.spread(self.figure));
        Verdict {
            case: self.case.clone(),
            figure: self.figure,
            subject: of.to_owned(),
            standing: standing(case.is_some(), measured, self.gate, self.goal),
            measured,
            gate: self.gate,
            goal: self.goal,
        }
    }
}

fn standing(ran: bool, measured: Option<Spread>, gate: f64, goal: Option<f64>) -> TargetResult {
    match measured {
        None if ran => TargetResult::Unknown,
        None => TargetResult::LeftOut,
        Some(spread) if spread.median > gate => TargetResult::Missed,
        Some(spread) if goal.is_some_and(|goal| spread.median > goal) => TargetResult::Gate,
        Some(_) => TargetResult::Met,
    }
}

impl TargetResult {
    /// Returns true if the gate fails.
    pub(crate) fn fails(self) -> bool {
        match self {
            Self::Missed | Self::Unknown => true,
            Self::Met | Self::Gate | Self::LeftOut => false,
        }
    }

    /// In a word or two.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Gate => "gate met, goal not",
            Self::Missed => "missed",
            Self::Unknown => "no figure",
            Self::LeftOut => "left out",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{CASES, Field};
    use crate::report::report_fixture::results;
    use crate::report::tests::entry;
    use crate::report::{CaseReport, Entry};

    const OURS_TARGETS: &str = include_str!("../../bench-targets.toml");
    const CPU: Figure = Figure::CpuMicros;

    fn case(entries: Vec<Entry>) -> CaseReport {
        CaseReport {
            name: "get-64".to_owned(),
            title: "GET".to_owned(),
            with_peers: true,
            figures: vec![CPU],
            entries,
        }
    }

    #[track_caller]
    fn stands(ours: &[Option<f64>], expected: TargetResult) {
        let targets = Targets::parse(
            "[[ratio]]\ncase = \"get-64\"\nfigure = \"cpu-micros\"\nto = \"nginx\"\n\
             gate = 0.95\ngoal = 0.88\n",
        );
        let theirs = vec![Some(10.0); ours.len()];
        let shown = results(vec![case(vec![
            entry(OURS, CPU, ours),
            entry("nginx", CPU, &theirs),
        ])]);
        let verdicts = targets.unwrap().judge(&shown);
        assert_eq!(verdicts[0].standing, expected);
    }

    #[test]
    fn a_ratio_is_judged_by_its_median() {
        stands(&[Some(8.0), Some(8.7), Some(20.0)], TargetResult::Met);
        stands(&[Some(9.0)], TargetResult::Gate);
        stands(&[Some(9.6)], TargetResult::Missed);
        stands(&[None], TargetResult::Unknown);
    }

    #[test]
    fn a_ratio_near_its_bound_or_absent_is_undecided() {
        let targets = Targets::parse(
            "[[ratio]]\ncase = \"get-64\"\nfigure = \"cpu-micros\"\nto = \"nginx\"\ngate = 1.0\n",
        );
        let targets = targets.unwrap();
        let cases = [
            (Some(8.9), false),
            (Some(9.1), true),
            (Some(10.9), true),
            (Some(11.1), false),
            (None, true),
        ];
        for (ours, undecided) in cases {
            let entries = [(OURS, ours), ("nginx", Some(10.0))];
            let entries = entries.map(|(name, value)| entry(name, CPU, &[value]));
            let verdicts = targets.judge(&results(vec![case(entries.into())]));
            assert_eq!(verdicts[0].is_undecided(), undecided, "{ours:?}");
        }
        let verdicts = targets.judge(&results(Vec::new()));
        assert!(!verdicts[0].is_undecided(), "what was not to be measured");
    }

    #[test]
    fn a_case_measured_again_is_judged_by_all_rounds() {
        let measured = |values: &[Option<f64>]| case(vec![entry(OURS, CPU, values)]);
        let mut first = measured(&[Some(12.0), None]);
        first.extend(measured(&[Some(8.0), Some(8.0)]));

        let ours = &first.entries[0];
        assert_eq!(ours.rounds.len(), 4);
        assert!((ours.spread(CPU).unwrap().median - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_case_that_did_not_run_is_left_out() {
        let targets = Targets::parse(OURS_TARGETS).unwrap();
        let verdicts = targets.judge(&results(Vec::new()));
        assert!(verdicts.iter().all(|v| v.standing == TargetResult::LeftOut));
        assert!(!verdicts.is_empty());
    }

    #[test]
    fn a_bound_has_the_figures_own_unit() {
        let targets =
            Targets::parse("[[bound]]\ncase = \"get-64\"\nfigure = \"cpu-micros\"\ngate = 10\n");
        let shown = results(vec![case(vec![entry(OURS, CPU, &[Some(10.5)])])]);
        let verdicts = targets.unwrap().judge(&shown);
        assert_eq!(verdicts[0].standing, TargetResult::Missed);
    }

    #[test]
    fn every_target_names_a_case_a_figure_and_contestants_that_there_are() {
        let targets = Targets::parse(OURS_TARGETS).unwrap();
        let ratios = targets.ratios.iter().map(|ratio| {
            let names = vec![ratio.of.clone(), Some(ratio.to.clone())];
            (&ratio.case, names)
        });
        let bounds = targets
            .bounds
            .iter()
            .map(|bound| (&bound.case, vec![bound.of.clone()]));
        for (name, servers) in ratios.chain(bounds) {
            let case = CASES.iter().find(|case| case.name == name).unwrap();
            for server in servers.into_iter().flatten() {
                let is_here = match case.field {
                    Field::Peers(setup) => {
                        server == OURS || setup.peers().iter().any(|(name, _)| *name == server)
                    }
                    Field::Ours(setups) => setups.iter().any(|(name, _)| *name == server),
                };
                assert!(is_here, "{name}: {server}");
            }
        }
    }

    #[test]
    fn every_guarded_request_has_counts() {
        let targets = Targets::parse(OURS_TARGETS).unwrap();
        let guarded: Vec<_> = targets.guards.iter().map(|guard| guard.request).collect();
        let all = [
            GuardedRequest::Get,
            GuardedRequest::RecordedGet,
            GuardedRequest::ProtectedGet,
            GuardedRequest::Post,
        ];
        assert_eq!(guarded, all);
    }

    #[test]
    fn an_unknown_word_in_the_file_is_refused() {
        assert!(Targets::parse("[[ratio]]\ncas = \"get-64\"\n").is_err());
        assert!(Targets::parse("[limits]\n").is_err());
    }
}
