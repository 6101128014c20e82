//! Committed results, and the page generated from them.

use crate::report::Report;
use crate::report::chart;
use crate::report::page;
use crate::report::results::Results;
use crate::report::targets::Targets;
use crate::servers::environment::Environment;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;

/// File with the results on the page.
const RESULTS: &str = "bench/results.json";
const PAGE: &str = "docs/performance.md";
const CHART: &str = "docs/performance.svg";

/// Formats a run as indented JSON.
pub(crate) fn json(run: &impl Serialize) -> Result<String, TaskError> {
    let text = serde_json::to_string_pretty(run).map_err(error)?;
    Ok(format!("{text}\n"))
}

/// Writes the results, the page and the chart into the project. Page and chart are generated from
/// the JSON as read back, because JSON numbers may lose their last digit.
pub(crate) fn write(root: &Path, report: &Report, targets: &Targets) -> Result<(), TaskError> {
    let results = json(&Results::from(report))?;
    let GeneratedFiles { page, chart } = show(&results, targets)?;
    for (name, text) in [(RESULTS, results), (PAGE, page), (CHART, chart)] {
        write_file(root.join(name), &text)?;
        say(format!("bench: wrote {name}"));
    }
    Ok(())
}

/// Files generated from the results.
struct GeneratedFiles {
    page: String,
    chart: String,
}

fn show(results: &str, targets: &Targets) -> Result<GeneratedFiles, TaskError> {
    let results: Results = serde_json::from_str(results).map_err(error)?;
    Ok(GeneratedFiles {
        page: page::markdown(&results, &targets.judge(&results)),
        chart: chart::svg(&results),
    })
}

fn error(source: serde_json::Error) -> TaskError {
    TaskError::Json {
        program: "the benchmark",
        source,
    }
}

/// Writes the run and its chart into `target/bench`.
pub(crate) fn keep(environment: &Environment, report: &Report) -> Result<(), TaskError> {
    let files = [
        (environment.result("report.json"), json(report)?),
        (
            environment.result("report.svg"),
            chart::svg(&Results::from(report)),
        ),
    ];
    for (path, text) in files {
        say(format!("bench: wrote {}", path.display()));
        write_file(path, &text)?;
    }
    Ok(())
}

fn write_file(path: PathBuf, text: &str) -> Result<(), TaskError> {
    fs::write(&path, text).map_err(|source| TaskError::File { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;
    use crate::report::CaseReport;
    use crate::report::report_fixture::report;
    use crate::report::tests::entry;
    use std::fs;

    fn project() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    fn targets() -> Targets {
        Targets::load(&project().join(crate::report::targets::PATH)).unwrap()
    }

    fn assert_shown_as_measured(root: &Path) {
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        let GeneratedFiles { page, chart } = show(&read(RESULTS), &targets()).unwrap();

        let hint = "run `cargo xtask bench --publish`";
        assert_eq!(read(PAGE), page, "{hint}");
        assert_eq!(read(CHART), chart, "{hint}");
    }

    #[test]
    fn the_page_says_what_the_committed_run_measured() {
        assert_shown_as_measured(project());
    }

    #[test]
    fn the_committed_run_holds_what_the_page_needs_and_no_single_sample() {
        let committed = fs::read_to_string(project().join(RESULTS)).unwrap();
        serde_json::from_str::<Results>(&committed).unwrap();
        assert!(committed.len() < 64 << 10, "{} bytes", committed.len());
    }

    #[test]
    fn a_number_between_two_roundings_is_shown_as_a_reader_of_the_run_finds_it() {
        let figure = Figure::ConnectionBytes;
        let case = CaseReport {
            name: "idle".to_owned(),
            title: "idle connections".to_owned(),
            with_peers: true,
            figures: vec![figure],
            entries: vec![
                entry("nginx", figure, &[Some(585.142_857_142_857_1)]),
                entry("haproxy", figure, &[Some(1_348.754_285_714_285_7)]),
            ],
        };
        let root = tempfile::tempdir().unwrap();
        for folder in ["bench", "docs"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }

        write(root.path(), &report(vec![case]), &targets()).unwrap();

        assert_shown_as_measured(root.path());
    }
}
