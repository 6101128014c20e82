//! Command-line options of `cargo xtask bench`.

use crate::cases::{CASES, Case, Plan};
use crate::effort::Effort;
use xtask_kit::task_error::TaskError;

/// Options.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct Options {
    /// One short sample each, within 40 s: enough to see that a change is no disaster
    #[arg(long)]
    quick: bool,
    /// Exit 1 when a target of bench/bench-targets.toml is missed; counts instructions too
    #[arg(long)]
    pub(crate) gate: bool,
    /// Also count instructions and system calls per request, under callgrind
    #[arg(long)]
    instr: bool,
    /// Only compare counts with those that `test-all` guards
    #[arg(long, exclusive = true)]
    pub(crate) guard: bool,
    /// Only measure how bystanders are served while targets are in trouble
    #[arg(long, exclusive = true)]
    pub(crate) storm: bool,
    /// Write docs/performance.md and what it is made from
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    pub(crate) publish: bool,
    /// Measure this case only; may be given again
    #[arg(long, value_name = "CASE")]
    only: Vec<String>,
}

impl Options {
    /// Returns the number and duration of samples.
    pub(crate) fn effort(&self) -> Effort {
        if self.quick {
            Effort::QUICK
        } else {
            Effort::FULL
        }
    }

    /// Returns the selected cases.
    pub(crate) fn cases(&self) -> Result<Vec<Case>, TaskError> {
        let unknown = self.only.iter().find(|name| !is_case(name));
        if let Some(unknown) = unknown {
            let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            return Err(TaskError::Failed(format!(
                "no case is called {unknown}; there are {}",
                names.join(", ")
            )));
        }
        Ok(CASES
            .iter()
            .filter(|case| self.wants(case))
            .copied()
            .collect())
    }

    fn wants(&self, case: &Case) -> bool {
        let counts = matches!(case.plan, Plan::Count);
        if counts && self.instr {
            return true;
        }
        if !self.only.is_empty() {
            return self.only.iter().any(|name| name == case.name);
        }
        if counts {
            return self.gate;
        }
        !(self.quick && case.thorough)
    }
}

fn is_case(name: &str) -> bool {
    CASES.iter().any(|case| case.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Options = Options {
        quick: false,
        gate: false,
        instr: false,
        guard: false,
        storm: false,
        publish: false,
        only: Vec::new(),
    };

    fn names(options: &Options) -> Vec<&'static str> {
        let cases = options.cases().unwrap();
        cases.iter().map(|case| case.name).collect()
    }

    #[test]
    fn counting_is_asked_for_and_quick_leaves_cases_out() {
        let all = names(&NOTHING);
        assert!(all.contains(&"reload") && !all.contains(&"count"));
        let gate = names(&Options {
            gate: true,
            quick: true,
            ..NOTHING
        });
        assert!(!gate.contains(&"reload") && gate.contains(&"count"));
    }

    #[test]
    fn only_the_named_cases_are_measured() {
        let only = |name: &str| Options {
            only: vec![name.to_owned()],
            quick: true,
            ..NOTHING
        };
        assert_eq!(names(&only("reload")), ["reload"]);
        let counted = Options {
            instr: true,
            ..only("get-1")
        };
        assert_eq!(names(&counted), ["get-1", "unused", "count"]);
        assert!(only("get64").cases().is_err());
    }
}
