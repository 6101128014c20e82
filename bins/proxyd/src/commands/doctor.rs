//! `proxyd doctor`: checks a machine against a configuration before it is served there.

mod machine;
mod network;

use crate::cli::Doctor;
use crate::terminal::{print_report, say};
use proxy_server::Source;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    severity: Severity,
    /// The thing that was checked, as `listener main`.
    subject: String,
    /// The state found, with its figures.
    state: String,
    /// The remedy; `None` if none is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// Nothing to do.
    Ok,
    /// The proxy serves, with a limit below the configured one or with failed requests.
    Warning,
    /// The proxy does not start, or a listener or target cannot work.
    Fault,
}

/// Prints the findings. Exit code 0: no fault, maybe warnings; 1: a fault, or an invalid configuration.
pub(super) fn run(arguments: &Doctor) -> ExitCode {
    let source = super::source(arguments.config.clone());
    let loaded = match proxy_server::load(&source) {
        Ok(loaded) => loaded,
        Err(report) => {
            print_report(&report);
            return ExitCode::FAILURE;
        }
    };
    if !loaded.warnings.is_empty() {
        print_report(&loaded.warnings);
    }
    let mut findings = vec![configuration(&source, loaded.warnings.faults().len())];
    findings.extend(machine::check(&loaded.model));
    findings.extend(network::check(&loaded.model));
    if arguments.json {
        say(serde_json::json!({ "findings": findings }));
    } else {
        findings.iter().for_each(say);
        say(summary(&findings));
    }
    match findings.iter().map(|finding| finding.severity).max() {
        Some(Severity::Fault) => ExitCode::FAILURE,
        Some(Severity::Warning | Severity::Ok) | None => ExitCode::SUCCESS,
    }
}

fn configuration(source: &Source, warnings: usize) -> Finding {
    let name = match source {
        Source::File(file) => file.as_path(),
        Source::Text(_) | Source::Embedded => Path::new("(embedded)"),
    };
    let subject = format!("configuration {}", name.display());
    match warnings {
        0 => Finding::ok(subject, "valid"),
        warnings => Finding {
            severity: Severity::Warning,
            subject,
            state: format!("valid, {warnings} warnings"),
            remedy: Some("see above".to_owned()),
        },
    }
}

fn summary(findings: &[Finding]) -> String {
    let count = |severity| {
        let found = findings.iter().filter(|found| found.severity == severity);
        found.count()
    };
    format!(
        "{} faults, {} warnings, {} ok",
        count(Severity::Fault),
        count(Severity::Warning),
        count(Severity::Ok)
    )
}

impl Finding {
    fn ok(subject: impl Into<String>, state: impl Into<String>) -> Self {
        Self {
            severity: Severity::Ok,
            subject: subject.into(),
            state: state.into(),
            remedy: None,
        }
    }

    fn warning(
        subject: impl Into<String>,
        state: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            remedy: Some(remedy.into()),
            ..Self::ok(subject, state)
        }
    }

    fn fault(
        subject: impl Into<String>,
        state: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Fault,
            ..Self::warning(subject, state, remedy)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Fault => "fault",
        };
        write!(f, "{severity:<8} {}: {}", self.subject, self.state)?;
        match &self.remedy {
            Some(remedy) => write!(f, "\n         {remedy}"),
            None => Ok(()),
        }
    }
}
