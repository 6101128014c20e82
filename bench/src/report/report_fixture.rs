//! Sample reports for tests.

use crate::effort::Effort;
use crate::machine::Machine;
use crate::report::results::Results;
use crate::report::{CaseReport, Report};
use std::collections::BTreeMap;

/// Creates results of cases.
pub(crate) fn results(cases: Vec<CaseReport>) -> Results {
    Results::from(&report(cases))
}

/// Creates a report of cases.
pub(crate) fn report(cases: Vec<CaseReport>) -> Report {
    Report {
        machine: Machine {
            processor: "a processor".to_owned(),
            cores: 2,
            kernel: "6.1".to_owned(),
            rustc: "rustc 1.95.0".to_owned(),
            commit: "0123456789ab".to_owned(),
            day: "2026-11-20".to_owned(),
        },
        effort: Effort::QUICK,
        versions: BTreeMap::from([("nginx".to_owned(), "nginx/1.22.1".to_owned())]),
        capacity_per_second: 200_000.0,
        cases,
    }
}
