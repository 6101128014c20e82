//! `docs/performance.md`: what was measured, how, on what, what came of it, and what it is worth.

use super::arena::BACKEND_PORT;
use super::grid::Grid;
use super::report::Report;
use super::tables;
use super::targets::Verdict;
use std::time::Duration;

/// The page for a run.
pub(super) fn markdown(report: &Report, verdicts: &[Verdict]) -> String {
    let remarks = tables::remarks(report);
    let mut parts = vec![
        OPENING.to_owned(),
        format!("## On what\n\n{}", machine(report).markdown()),
        format!("## How\n\n{}", how(report)),
        format!(
            "## Beside nginx and HAProxy\n\nMedians; ratios are medians of the rounds' ratios, with \
             the least and the greatest of them. Less is better, except of requests a second.\n\n\
             {}\n![proxyd beside its peers](performance.svg)\n",
            tables::peers(report).markdown()
        ),
    ];
    let ours = tables::ours(report);
    if !ours.is_empty() {
        parts.push(format!("## proxyd by itself\n\n{}", ours.markdown()));
    }
    parts.push(format!(
        "## Targets\n\nWhat `bench/bench-targets.toml` asks for; `cargo xtask bench --gate` fails \
         when a gate is missed. [Where one is, and why](performance-limits.md).\n\n{}",
        tables::targets(verdicts).markdown()
    ));
    if !remarks.is_empty() {
        let items: Vec<String> = remarks.iter().map(|item| format!("- {item}\n")).collect();
        let list = items.concat();
        parts.push(format!("## Left out\n\n{list}"));
    }
    parts.push(LIMITS.to_owned());
    parts.join("\n")
}

const OPENING: &str = "\
# Performance

<!-- Made by `cargo xtask bench --publish` from bench/results.json. Do not edit. -->

What a request costs in proxyd, and what it costs in Debian's nginx and HAProxy, measured in one
run on one machine. Every proxy does the same work, and proves it before anything is measured: it
routes, forwards, adds `X-Forwarded-For` and a correlation ID, and answers with the upstream's
bytes. proxyd also counts its metrics and enforces its limits and timeouts, as it always does.
";

const LIMITS: &str = "\
## What these figures are worth

- They compare. The microseconds are those of this machine; the ratios travel better, and even
  they change with the kernel, the processor and the library versions.
- Loopback has no wire and no loss. What a network costs is the same for all proxies and is not in
  these figures.
- CPU time is that of the proxy's threads, the kernel's work on their behalf included. Interrupts
  that strike another core are not in it.
- Latencies of closed loops are those of a proxy with no time to spare, where waiting in line is
  most of them. Fixed rates show what a client sees at a load that leaves time to spare.
- Two workers beside a load that spins need three cores. On two, the load shares the second core
  and sleeps when idle; that case then shows a relation only.
- Clients of TLS offer X25519 and AES-128-GCM and resume nothing; the certificate is P-256.
- proxyd is what `cargo xtask ship` builds: its compiler was told which branches these very cases
  take ([0018](decisions/0018-what-ships-is-built-by-what-it-does-most.md)). nginx and HAProxy are
  Debian's builds, which know of no such thing. `cargo build --release` gives up 3 to 6 %.
- nginx and HAProxy are set up as `bench/` shows, for speed and for the same work. Whoever knows a
  better setting is welcome to send it.

## Measure it yourself

```text
cargo xtask setup --bench     nginx, HAProxy and valgrind from Debian, and llvm-tools
cargo xtask bench             about a quarter of an hour, on a machine with nothing else to do
cargo xtask bench --quick     within 40 s
```
";

fn machine(report: &Report) -> Grid {
    let machine = &report.machine;
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
    for (name, version) in &report.versions {
        row(name, version.clone());
    }
    row(
        "the load by itself",
        format!("{:.0} requests a second", report.capacity_per_second),
    );
    grid
}

fn how(report: &Report) -> String {
    let effort = report.effort;
    let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
    [
        "Each proxy has one worker on the first core. Clients and upstream are one thread on the \
         last, which never sleeps: a load that sleeps measures how fast a machine wakes up."
            .to_owned(),
        format!(
            "Rounds: {} of each case{}. In each, every proxy is driven for {}, then measured for \
             {}, one after the other; the order turns round with every round. The \
             access log, where hundredths matter, has {} rounds, of {} and {}.",
            effort.usual.rounds,
            more_rounds(report),
            seconds(effort.usual.warm),
            seconds(effort.usual.span),
            effort.fine.rounds,
            seconds(effort.fine.warm),
            seconds(effort.fine.span),
        ),
        "At a fixed rate every request that is due in the measured time is made and its answer \
         awaited, however late; its time counts from when it was due."
            .to_owned(),
        format!(
            "A sample with a failed request is void, and so is one in which a proxy used less \
             than 90 % of its core although 64 requests or more were waiting. It is taken anew, \
             at most {} times.",
            effort.repeats
        ),
        format!(
            "CPU time is read from `/proc/PID/task/*/schedstat`. Memory is read from \
             `smaps_rollup`, after connections have rested for {}; pages that a proxy's own \
             processes share count once.",
            seconds(effort.settle)
        ),
        "Instructions and system calls are counted by valgrind over 1 000 requests of one \
         connection, what starting and stopping cost left out."
            .to_owned(),
        format!("The upstream, on port {BACKEND_PORT}, answers from memory."),
    ]
    .map(|item| format!("- {item}\n"))
    .concat()
}

/// What else was done, if close calls were measured again.
fn more_rounds(report: &Report) -> &'static str {
    let usual = usize::try_from(report.effort.usual.rounds).unwrap_or(usize::MAX);
    let cases = report.cases.iter().filter(|case| case.with_peers);
    let mut entries = cases.flat_map(|case| &case.entries);
    if entries.any(|entry| entry.rounds.len() > usual) {
        ", and as many again where a figure is within a tenth of its gate or missing"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report_fixture::report;

    #[test]
    fn the_page_names_the_machine_and_has_no_empty_parts() {
        let page = markdown(&report(Vec::new()), &[]);
        assert!(page.starts_with("# Performance\n"));
        for part in [
            "| processor | a processor, 2 cores |",
            "| nginx | nginx/1.22.1 |",
            "## What these figures are worth",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("## proxyd by itself"));
        assert!(!page.contains("## Left out"));
    }
}
