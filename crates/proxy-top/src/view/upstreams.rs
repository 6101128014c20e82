//! Upstreams, each with its targets: health, breakers, connections, failures.

use super::sorting::{Sorting, sorted};
use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::reading::{Breaker, TargetReading, UpstreamReading};
use crate::table::{Cell, Line, Table, Tone};
use crate::text::{duration, escaped, number};

const TITLES: &[&str] = &[
    "upstream", "health", "breaker", "conns", "req/s", "fail/s", "p50", "p99", "reasons",
];
/// Number of reasons that are named.
const MAX_REASONS: usize = 3;

struct Row<'r> {
    name: &'r str,
    now: &'r UpstreamReading,
    before: Option<&'r UpstreamReading>,
    attempts: f64,
    failures: f64,
    duration: Histogram,
}

pub(super) fn table(interval: &Interval, sorting: Sorting) -> Table {
    let rows = interval.now.upstreams.iter().map(|(name, now)| {
        let before = interval.before.upstreams.get(name);
        let all = |reading: &UpstreamReading| reading.failures.values().sum::<f64>();
        Row {
            name,
            now,
            before,
            attempts: interval.rate(now.attempts, before.map(|it| it.attempts)),
            failures: interval.rate(all(now), before.map(all)),
            duration: now.duration.since(before.map(|it| &it.duration)),
        }
    });
    let figures = |row: &Row<'_>| {
        let slowness = row.duration.quantile(0.99).unwrap_or_default();
        [row.attempts, row.failures, slowness]
    };
    let rows = sorted(rows.collect(), sorting, figures);
    let lines = rows.iter().flat_map(|row| {
        let targets = row.now.targets.iter();
        let targets = targets.map(move |target| target_line(interval, row, target));
        std::iter::once(line(interval, row)).chain(targets)
    });
    Table {
        titles: TITLES,
        rows: lines.collect(),
    }
}

fn line(interval: &Interval, row: &Row<'_>) -> Line {
    let targets = &row.now.targets;
    let healthy = targets.iter().filter(|target| target.healthy).count();
    let health = match healthy {
        0 => Tone::Bad,
        some if some < targets.len() => Tone::Warning,
        _ => Tone::Good,
    };
    let (breaker, tone) = match row.now.breaker {
        None => ("-", Tone::Plain),
        Some(Breaker::Closed) => ("closed", Tone::Good),
        Some(Breaker::HalfOpen) => ("half-open", Tone::Warning),
        Some(Breaker::Open) => ("open", Tone::Bad),
    };
    let active: f64 = targets.iter().map(|it| it.active_connections).sum();
    vec![
        Cell::new(escaped(row.name).into_owned(), Tone::Title),
        Cell::new(format!("{healthy}/{}", targets.len()), health),
        Cell::new(breaker.to_owned(), tone),
        Cell::plain(format!(
            "{}/{}",
            number(active),
            number(row.now.connections)
        )),
        Cell::plain(number(row.attempts)),
        failure_cell(row.failures),
        Cell::plain(duration(row.duration.quantile(0.5))),
        Cell::plain(duration(row.duration.quantile(0.99))),
        Cell::plain(reasons(interval, row)),
    ]
}

fn failure_cell(rate: f64) -> Cell {
    let tone = if 0.0 < rate { Tone::Bad } else { Tone::Plain };
    Cell::new(number(rate), tone)
}

/// The reasons of failures with their rates, the most frequent first.
fn reasons(interval: &Interval, row: &Row<'_>) -> String {
    let reasons = row.now.failures.iter().map(|(reason, now)| {
        let before = row.before.and_then(|it| it.failures.get(reason).copied());
        (reason, interval.rate(*now, before))
    });
    let mut reasons: Vec<_> = reasons.filter(|(_, rate)| 0.0 < *rate).collect();
    reasons.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let named = reasons.iter().take(MAX_REASONS);
    let named = named.map(|(reason, rate)| format!("{} {}/s", escaped(reason), number(*rate)));
    named.collect::<Vec<_>>().join(", ")
}

fn target_line(interval: &Interval, row: &Row<'_>, target: &TargetReading) -> Line {
    let before = row.before.and_then(|before| {
        let mut targets = before.targets.iter();
        targets.find(|it| it.address == target.address)
    });
    let (health, tone) = match (target.healthy, target.causes.is_empty()) {
        (true, true) => ("up".to_owned(), Tone::Good),
        (true, false) => (target.causes.join(" "), Tone::Warning),
        (false, true) => ("down".to_owned(), Tone::Bad),
        (false, false) => (target.causes.join(" "), Tone::Bad),
    };
    let name = if target.backup { " (backup)" } else { "" };
    let requests = interval.rate(target.total_requests, before.map(|it| it.total_requests));
    let failures = interval.rate(target.failed_requests, before.map(|it| it.failed_requests));
    let error = target.last_error.as_deref().unwrap_or_default();
    let none = || Cell::plain(String::new());
    vec![
        Cell::plain(format!("  {}{name}", escaped(&target.address))),
        Cell::new(escaped(&health).into_owned(), tone),
        none(),
        Cell::plain(number(target.active_connections)),
        Cell::plain(number(requests)),
        failure_cell(failures),
        none(),
        none(),
        Cell::plain(escaped(error).into_owned()),
    ]
}
