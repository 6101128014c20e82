//! Limits: their use, maximum and rejections.

use super::sorting::{Sorting, sorted};
use crate::interval::Interval;
use crate::reading::LimitReading;
use crate::table::{Cell, Line, Table, Tone};
use crate::text::{escaped, number};

const TITLES: &[&str] = &[
    "setting",
    "current",
    "maximum",
    "used",
    "rejected/s",
    "rejected",
];
/// Share of a limit from which its use is shown as a warning.
const WARNING_SHARE: f64 = 0.8;

struct Row<'r> {
    setting: &'r str,
    limit: LimitReading,
    /// Use of the maximum, where both are known.
    share: Option<f64>,
    /// Rejections per second.
    rejected: f64,
}

pub(super) fn table(interval: &Interval, sorting: Sorting) -> Table {
    let rows = interval.now.limits.iter().map(|(setting, limit)| {
        let before = interval.before.limits.get(setting);
        let both = limit.current.zip(limit.maximum);
        let share = both.filter(|(_, maximum)| 0.0 < *maximum);
        Row {
            setting,
            limit: *limit,
            share: share.map(|(current, maximum)| current / maximum),
            rejected: interval.rate(limit.rejected, before.map(|it| it.rejected)),
        }
    });
    let figures = |row: &Row<'_>| {
        let share = row.share.unwrap_or_default();
        [share, row.rejected, row.rejected]
    };
    let rows = sorted(rows.collect(), sorting, figures);
    Table {
        titles: TITLES,
        rows: rows.iter().map(line).collect(),
    }
}

fn line(row: &Row<'_>) -> Line {
    let LimitReading {
        current,
        maximum,
        rejected,
    } = row.limit;
    let shown = |value: Option<f64>| Cell::plain(value.map_or_else(|| "-".to_owned(), number));
    let used = row.share.map(|share| format!("{:.0}%", share * 100.0));
    let tone = match row.share {
        Some(share) if 1.0 <= share => Tone::Bad,
        Some(share) if WARNING_SHARE <= share => Tone::Warning,
        _ => Tone::Plain,
    };
    let rejections = if 0.0 < row.rejected {
        Tone::Bad
    } else {
        Tone::Plain
    };
    vec![
        Cell::plain(escaped(row.setting).into_owned()),
        shown(current),
        shown(maximum),
        Cell::new(used.unwrap_or_else(|| "-".to_owned()), tone),
        Cell::new(number(row.rejected), rejections),
        Cell::plain(number(rejected)),
    ]
}
