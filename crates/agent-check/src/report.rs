//! The results of a check.

use serde::Serialize;
use std::fmt;

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    /// Name of the case, unique in a report.
    pub name: &'static str,
    /// The requirement of the protocol.
    pub rule: &'static str,
    /// True if the agent follows it.
    pub passed: bool,
    /// The agent's mistake, or the reason why the case was not conclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The results of all cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The agent's socket.
    pub socket: String,
    /// The number of cases that passed.
    pub passed: usize,
    /// The number of cases that failed.
    pub failed: usize,
    /// All results, in the order in which they ran.
    pub cases: Vec<CaseResult>,
}

impl Report {
    pub(crate) fn new(socket: String, cases: Vec<CaseResult>) -> Self {
        let passed = cases.iter().filter(|case| case.passed).count();
        Self {
            socket,
            passed,
            failed: cases.len() - passed,
            cases,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            let verdict = if case.passed { "ok    " } else { "FAILED" };
            write!(f, "{verdict} {}: {}", case.name, case.rule)?;
            match &case.reason {
                Some(reason) => writeln!(f, " ({reason})")?,
                None => writeln!(f)?,
            }
        }
        let Self { passed, failed, .. } = self;
        write!(f, "{passed} passed, {failed} failed")
    }
}
