//! The committed figures and the page made from them.

use super::chart;
use super::page;
use super::report::Report;
use super::targets::Verdict;
use crate::terminal::say;
use crate::trouble::Trouble;
use std::path::Path;

/// The run that the page shows.
const RESULTS: &str = "bench/results.json";
const PAGE: &str = "docs/performance.md";
const CHART: &str = "docs/performance.svg";

/// A run as JSON, for people too.
pub(super) fn json(report: &Report) -> Result<String, Trouble> {
    let text = serde_json::to_string_pretty(report).map_err(|source| Trouble::Json {
        program: "the benchmark",
        source,
    })?;
    Ok(format!("{text}\n"))
}

/// Writes the run, its page and its picture into the project.
pub(super) fn write(root: &Path, report: &Report, verdicts: &[Verdict]) -> Result<(), Trouble> {
    let files = [
        (RESULTS, json(report)?),
        (PAGE, page::markdown(report, verdicts)),
        (CHART, chart::svg(report)),
    ];
    for (name, text) in files {
        super::write(root.join(name), &text)?;
        say(format!("bench: wrote {name}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::targets::Targets;
    use std::fs;

    #[test]
    fn the_page_says_what_the_committed_run_measured() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |name: &str| fs::read_to_string(root.join(name)).ok();
        let Some(results) = read(RESULTS) else {
            assert_eq!(read(PAGE), None, "a page without a run");
            return;
        };
        let report: Report = serde_json::from_str(&results).unwrap();
        let targets = Targets::load(&root.join(crate::bench::TARGETS)).unwrap();
        let page = page::markdown(&report, &targets.judge(&report));

        let hint = "run `cargo xtask bench --publish`";
        assert_eq!(read(PAGE), Some(page), "{hint}");
        assert_eq!(read(CHART), Some(chart::svg(&report)), "{hint}");
    }
}
