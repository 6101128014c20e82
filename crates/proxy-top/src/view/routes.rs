//! Routes: requests, statuses, times and bytes.

use super::sorting::{Sorting, sorted};
use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::reading::CLASSES;
use crate::table::{Cell, Line, Table, Tone};
use crate::text::{bytes, duration, escaped, number};

/// Statuses are per second as well.
const TITLES: &[&str] = &[
    "route", "req/s", "2xx", "3xx", "4xx", "5xx", "p50", "p99", "in/s", "out/s", "fail/s",
    "requests",
];

struct Row<'r> {
    name: &'r str,
    /// Requests a second, by class.
    classes: [f64; CLASSES],
    failures: f64,
    duration: Histogram,
    received: f64,
    sent: f64,
    /// Since the start of the proxy.
    total: f64,
}

pub(super) fn table(interval: &Interval, sorting: Sorting) -> Table {
    let rows = interval.now.routes.iter().map(|(name, now)| {
        let before = interval.before.routes.get(name);
        let rate = |now: f64, before: Option<f64>| interval.rate(now, before);
        let mut classes = now.classes;
        for (class, count) in classes.iter_mut().enumerate() {
            let before = before.and_then(|before| before.classes.get(class).copied());
            *count = rate(*count, before);
        }
        Row {
            name,
            classes,
            failures: rate(now.failures, before.map(|it| it.failures)),
            duration: now.duration.since(before.map(|it| &it.duration)),
            received: rate(now.received, before.map(|it| it.received)),
            sent: rate(now.sent, before.map(|it| it.sent)),
            total: now.requests(),
        }
    });
    let figures = |row: &Row<'_>| {
        let slowness = row.duration.quantile(0.99).unwrap_or_default();
        [row.classes.iter().sum(), row.failures, slowness]
    };
    let rows = sorted(rows.collect(), sorting, figures);
    Table {
        titles: TITLES,
        rows: rows.iter().map(line).collect(),
    }
}

fn line(row: &Row<'_>) -> Line {
    let [_, success, redirection, client, server] = row.classes;
    let tone = |count: f64, tone: Tone| if 0.0 < count { tone } else { Tone::Plain };
    let all: f64 = row.classes.iter().sum();
    vec![
        Cell::plain(escaped(row.name).into_owned()),
        Cell::plain(number(all)),
        Cell::plain(number(success)),
        Cell::plain(number(redirection)),
        Cell::new(number(client), tone(client, Tone::Warning)),
        Cell::new(number(server), tone(server, Tone::Bad)),
        Cell::plain(duration(row.duration.quantile(0.5))),
        Cell::plain(duration(row.duration.quantile(0.99))),
        Cell::plain(bytes(row.received)),
        Cell::plain(bytes(row.sent)),
        Cell::new(number(row.failures), tone(row.failures, Tone::Bad)),
        Cell::plain(number(row.total)),
    ]
}
