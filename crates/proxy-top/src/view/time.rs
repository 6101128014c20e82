//! Durations of requests: shares of upstreams and agents in the total.

use super::sorting::{Sorting, sorted};
use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::table::{Cell, Line, Table, Tone};
use crate::text::{duration, escaped, number};

const TITLES: &[&str] = &["part of the time", "calls/s", "share", "mean", "p50", "p99"];

struct Row {
    name: String,
    rate: f64,
    duration: Histogram,
}

/// All requests first, then the parts. Parts of one request may overlap, and retries count as often as they were made,
/// so that shares need not add up; the rest is queues, connections and bodies.
pub(super) fn table(interval: &Interval, sorting: Sorting) -> Table {
    let mut all = Histogram::default();
    for (name, now) in &interval.now.routes {
        let before = interval.before.routes.get(name);
        all.add(&now.duration.since(before.map(|it| &it.duration)));
    }
    let whole = all.sum();
    let row = |name: String, duration: Histogram| Row {
        name,
        rate: interval.rate(duration.count(), None),
        duration,
    };
    let upstreams = interval.now.upstreams.iter().map(|(name, now)| {
        let before = interval.before.upstreams.get(name);
        let name = format!("upstream {}, to the head", escaped(name));
        row(name, now.duration.since(before.map(|it| &it.duration)))
    });
    let agents = interval.now.agents.iter().map(|(key, now)| {
        let (agent, event) = key;
        let name = format!("agent {}, {}", escaped(agent), escaped(event));
        row(name, now.since(interval.before.agents.get(key)))
    });
    let parts: Vec<Row> = upstreams.chain(agents).collect();
    let figures = |row: &Row| {
        let (sum, p99) = (row.duration.sum(), row.duration.quantile(0.99));
        [sum, sum, p99.unwrap_or_default()]
    };
    let parts = sorted(parts, sorting, figures);
    let all = row("all requests, to the last byte".to_owned(), all);
    let lines = parts.iter().map(|part| line(part, whole, Tone::Plain));
    Table {
        titles: TITLES,
        rows: std::iter::once(line(&all, whole, Tone::Title))
            .chain(lines)
            .collect(),
    }
}

fn line(row: &Row, whole: f64, tone: Tone) -> Line {
    let share = (0.0 < whole).then(|| format!("{:.0}%", 100.0 * row.duration.sum() / whole));
    vec![
        Cell::new(row.name.clone(), tone),
        Cell::plain(number(row.rate)),
        Cell::plain(share.unwrap_or_else(|| "-".to_owned())),
        Cell::plain(duration(row.duration.mean())),
        Cell::plain(duration(row.duration.quantile(0.5))),
        Cell::plain(duration(row.duration.quantile(0.99))),
    ]
}
