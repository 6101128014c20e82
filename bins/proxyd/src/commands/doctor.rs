//! `proxyd doctor`: checks whether a machine can serve a configuration.

mod finding;
mod machine;
mod network;

use crate::cli::Doctor;
use crate::terminal::{print_line, print_report};
use finding::{Finding, Severity};
use proxy_server::Source;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Prints the findings. Exit code 0: no fault, maybe warnings; 1: a fault, or an invalid
/// configuration.
pub(super) fn run(arguments: &Doctor) -> io::Result<ExitCode> {
    let file = arguments.config.clone();
    let source = file.map_or(Source::Embedded, Source::File);
    let findings = findings(&source);
    if arguments.json {
        print_line(serde_json::json!({ "findings": findings }))?;
    } else {
        findings.iter().try_for_each(print_line)?;
        print_line(summary(&findings))?;
    }
    match findings.iter().map(|finding| finding.severity).max() {
        Some(Severity::Fault) => Ok(ExitCode::FAILURE),
        Some(Severity::Warning | Severity::Ok) | None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs all checks; if the configuration is invalid, only reports that. Prints its diagnostics to
/// standard error.
fn findings(source: &Source) -> Vec<Finding> {
    let loaded = match proxy_server::load(source) {
        Ok(loaded) => loaded,
        Err(report) => {
            print_report(&report);
            let first = report.lines().next().unwrap_or_default();
            let state = format!("invalid: {first}");
            return vec![Finding::fault(subject(source), state, "correct it")];
        }
    };
    if !loaded.warnings.is_empty() {
        print_report(&loaded.warnings);
    }
    let mut findings = vec![configuration(source, loaded.warnings.faults().len())];
    findings.extend(machine::check(&loaded.model));
    findings.extend(network::check(&loaded.model));
    findings
}

fn subject(source: &Source) -> String {
    let name = match source {
        Source::File(file) => file.as_path(),
        Source::Text(_) | Source::Embedded => Path::new("(embedded)"),
    };
    format!("configuration {}", name.display())
}

fn configuration(source: &Source, warnings: usize) -> Finding {
    let subject = subject(source);
    match warnings {
        0 => Finding::ok(subject, "valid"),
        warnings => Finding {
            severity: Severity::Warning,
            subject,
            state: format!("valid; warnings: {warnings}"),
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
        "faults: {}, warnings: {}, ok: {}",
        count(Severity::Fault),
        count(Severity::Warning),
        count(Severity::Ok)
    )
}
