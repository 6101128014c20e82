//! Page `docs/performance.md`: method, machine and results.

use crate::grid::Grid;
use crate::report::results::Results;
use crate::report::tables;
use crate::report::targets::Verdict;
use crate::servers::environment::BACKEND_PORT;
use std::time::Duration;

/// Generates the page.
pub(crate) fn markdown(results: &Results, verdicts: &[Verdict]) -> String {
    let remarks = tables::remarks(results);
    let mut parts = vec![
        OPENING.to_owned(),
        format!("## Machine\n\n{}", machine(results).markdown()),
        format!("## Method\n\n{}", how(results)),
        format!(
            "## Compared with nginx and HAProxy\n\nMedians; ratios are medians of the rounds' ratios, \
             with the minimum and the maximum in parentheses. Less is better, except for requests \
             per second.\n\n\
             {}\n![proxyd compared with nginx and HAProxy](performance.svg)\n",
            tables::peers(results).markdown()
        ),
    ];
    let ours = tables::ours(results);
    if !ours.is_empty() {
        parts.push(format!("## proxyd alone\n\n{}", ours.markdown()));
    }
    parts.push(format!(
        "## Targets\n\nTargets of `bench/bench-targets.toml`; `cargo xtask bench --gate` fails when \
         a gate is missed. [Missed gates, with reasons](performance-limits.md).\n\n{}",
        tables::targets(verdicts).markdown()
    ));
    if !remarks.is_empty() {
        let items: Vec<String> = remarks.iter().map(|item| format!("- {item}\n")).collect();
        let list = items.concat();
        parts.push(format!("## Void rounds\n\n{list}"));
    }
    parts.push(LIMITS.to_owned());
    parts.join("\n")
}

const OPENING: &str = include_str!("../../page-opening.txt");

const LIMITS: &str = include_str!("../../page-limits.txt");

fn machine(results: &Results) -> Grid {
    let machine = &results.machine;
    let mut grid = Grid::new(vec!["what".to_owned(), "which".to_owned()]);
    let mut row = |what: &str, which: String| grid.push(vec![what.to_owned(), which]);
    row(
        "processor",
        format!("{}, {} cores", machine.processor, machine.cores),
    );
    row("kernel", format!("Linux {}", machine.kernel));
    row("compiler", machine.rustc.clone());
    row("commit", machine.commit.clone());
    row("day", machine.day.clone());
    for (name, version) in &results.versions {
        row(name, version.clone());
    }
    row(
        "the load alone",
        format!("{:.0} requests a second", results.capacity_per_second),
    );
    grid
}

fn how(results: &Results) -> String {
    let effort = results.effort;
    let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
    [
        "Each proxy has one worker on the first core. Clients and upstream are one thread on the \
         last, which never sleeps: a sleeping load would measure the wake-up time of the machine."
            .to_owned(),
        format!(
            "Rounds: {} of each case{}. In each, every proxy is driven for {}, then measured for \
             {}, in sequence; the order is rotated in every round. The \
             access log, where hundredths matter, has {} rounds, of {} and {}.",
            effort.usual.rounds,
            more_rounds(results),
            seconds(effort.usual.warm),
            seconds(effort.usual.span),
            effort.fine.rounds,
            seconds(effort.fine.warm),
            seconds(effort.fine.span),
        ),
        "At a fixed rate every request due in the measured time is sent and its response \
         awaited, even if late; its time is measured from its due time."
            .to_owned(),
        format!(
            "A sample with a failed request is void, and so is one in which a proxy used less \
             than 90 % of its core although 64 requests or more were waiting. It is repeated, \
             at most {} times.",
            effort.repeats
        ),
        format!(
            "CPU time is read from `/proc/PID/task/*/schedstat`. Memory is read from \
             `smaps_rollup`, after connections have been idle for {}; pages that a proxy's own \
             processes share count once.",
            seconds(effort.settle)
        ),
        "Instructions and system calls are counted by valgrind over 1 000 requests of one \
         connection, without the cost of start and stop."
            .to_owned(),
        format!("The upstream, on port {BACKEND_PORT}, answers from memory."),
    ]
    .map(|item| format!("- {item}\n"))
    .concat()
}

/// Returns a note if rounds were repeated.
fn more_rounds(results: &Results) -> &'static str {
    let usual = usize::try_from(results.effort.usual.rounds).unwrap_or(usize::MAX);
    let cases = results.cases.iter().filter(|case| case.with_peers);
    let mut entries = cases.flat_map(|case| &case.entries);
    if entries.any(|entry| entry.rounds > usual) {
        ", and as many again if a figure is within a tenth of its gate or missing"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::report_fixture::results;

    #[test]
    fn the_page_names_the_machine_and_has_no_empty_parts() {
        let page = markdown(&results(Vec::new()), &[]);
        assert!(page.starts_with("# Performance\n"));
        for part in [
            "| processor | a processor, 2 cores |",
            "| nginx | nginx/1.22.1 |",
            "## Interpretation",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("## proxyd alone"));
        assert!(!page.contains("## Void rounds"));
    }
}
