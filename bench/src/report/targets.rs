//! Performance targets in `bench-targets.toml`, and their comparison with a run.

use crate::figure::Figure;
use crate::report::results::Results;
use crate::servers::server::OURS;
use crate::statistics::Spread;
use serde::Deserialize;
use std::fs;
use std::path::Path;
use xtask_kit::task_error::TaskError;

/// Path of the file with the targets.
pub(crate) const PATH: &str = "bench/bench-targets.toml";

/// Contents of the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Targets {
    /// Counts that `cargo xtask test-all` checks.
    #[serde(default, rename = "guard")]
    pub(crate) guards: Vec<Guard>,
    /// Maximum ratio of user instructions: with a recording by its defaults to without one.
    #[serde(default, rename = "recording-ratio")]
    pub(crate) recording_ratio: f64,
    /// Maximum ratios of two entries.
    #[serde(default, rename = "ratio")]
    ratios: Vec<Ratio>,
    /// Maxima of single figures.
    #[serde(default, rename = "bound")]
    bounds: Vec<Bound>,
}

/// Committed counts of `proxyd` for one request.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Guard {
    pub(crate) request: GuardedRequest,
    /// User instructions.
    pub(crate) instructions: f64,
    /// System calls.
    pub(crate) system_calls: f64,
    /// Permitted relative difference of a count.
    pub(crate) tolerance: f64,
}

/// Kind of request to count, on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuardedRequest {
    /// A small GET with default limits.
    Get,
    /// A small GET with the default recording.
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
    /// Name of the judged entry; `None` for `proxyd`.
    of: Option<String>,
    /// Name of the entry to compare with.
    to: String,
    /// Maximum ratio.
    gate: f64,
    /// Lower ratio to reach in the long run.
    goal: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    case: String,
    figure: Figure,
    of: Option<String>,
    /// Maximum, in the figure's unit.
    gate: f64,
    goal: Option<f64>,
}

/// Result of one target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) case: String,
    pub(crate) figure: Figure,
    /// Description of the judged ratio or entry.
    pub(crate) subject: String,
    pub(crate) measured: Option<Spread>,
    pub(crate) gate: f64,
    pub(crate) goal: Option<f64>,
    pub(crate) standing: TargetResult,
}

/// Relative distance from the gate within which a result may be a matter of chance.
const CLOSE_CALL_SHARE: f64 = 0.1;

impl Verdict {
    /// Returns true if another run might have a different result: the figure was close to the gate,
    /// or missing.
    pub(crate) fn is_undecided(&self) -> bool {
        let measured = self.measured.map(|spread| spread.median);
        let is_close = |measured: f64| (measured / self.gate - 1.0).abs() <= CLOSE_CALL_SHARE;
        measured.map_or(self.standing == TargetResult::Unknown, is_close)
    }
}

/// State of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetResult {
    /// Gate and goal are met.
    Met,
    /// The gate is met, the goal is not.
    Gate,
    Missed,
    /// The case has no valid figure.
    Unknown,
    /// The run did not include the case.
    LeftOut,
}

impl Targets {
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

    /// Compares a run with the targets.
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
    /// Returns true if the gate is not met.
    pub(crate) fn fails(self) -> bool {
        match self {
            Self::Missed | Self::Unknown => true,
            Self::Met | Self::Gate | Self::LeftOut => false,
        }
    }

    /// Name of the state in tables.
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
