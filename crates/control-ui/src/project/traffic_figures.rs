//! Figures of a period: a sentence, and requests, 5xx and p99 with charts.

use crate::node::traffic::Served;
use crate::view::chart::{Chart, TimeSeries};
use crate::view::phrase::{count, date_time, minute};
use control_app::{TrafficFigures, TrafficPoint};
use control_domain::{CountedRequests, TrafficPeriod};
use jiff::Timestamp;

/// A figure with its chart.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) label: &'static str,
    /// Label for narrow layouts.
    pub(crate) short: &'static str,
    pub(crate) value: String,
    pub(crate) note: String,
    pub(crate) chart: Chart,
}

/// Requests, 5xx and p99, each with its value a week before and its chart.
pub(crate) fn figures(
    total: &TrafficFigures,
    steps: &[TrafficPoint],
    period: TrafficPeriod,
) -> Vec<Figure> {
    let TrafficFigures {
        counted,
        week_before,
    } = total;
    let (now, then) = (
        Served::from(counted),
        week_before.as_ref().map(Served::from),
    );
    let note = |field: fn(&Served) -> &String| match &then {
        Some(then) if !field(then).is_empty() => format!("{} a week before", field(then)),
        _ => "No figure of a week before".to_owned(),
    };
    let chart = |name: &str, unit: &str, value_of: fn(&CountedRequests) -> Option<i64>| {
        let value = |step: &Option<CountedRequests>| step.as_ref().and_then(value_of);
        let course = TimeSeries {
            name: &format!("{name} over {}", words(period).1),
            unit,
            values: steps.iter().map(|step| value(&step.counted)).collect(),
            earlier: steps.iter().map(|step| value(&step.week_before)).collect(),
        };
        course.chart()
    };
    vec![
        Figure {
            label: "Requests",
            short: "Requests",
            note: note(|served| &served.requests),
            value: now.requests,
            chart: chart("Requests", "", |step| Some(signed(step.requests))),
        },
        Figure {
            label: "Answers with 5xx",
            short: "5xx",
            note: note(|served| &served.errors),
            value: now.errors,
            chart: chart("Answers with 5xx", "", |step| Some(signed(step.errors))),
        },
        Figure {
            label: "99 % of requests take up to",
            short: "p99",
            note: note(|served| &served.p99),
            value: now.p99,
            chart: chart("99th percentile", " ms", CountedRequests::p99_ms),
        },
    ]
}

/// Sentence on requests, their change and failures.
pub(crate) fn heading(total: &TrafficFigures, period: TrafficPeriod, now: Timestamp) -> String {
    let (counted, (_, time)) = (&total.counted, words(period));
    if counted.requests == 0 {
        let window = period.window(now);
        return format!(
            "No node reported a request in {time} until {}; the next count is at {}.",
            date_time(window.to, now),
            minute(window.next_at(), now)
        );
    }
    let requests = count(signed(counted.requests), "request");
    let failed = match counted.errors {
        0 => "none failed".to_owned(),
        _ => format!("{} failed", Served::from(counted).errors),
    };
    let change = change(total).map_or_else(String::new, |change| format!(", {change}"));
    format!("{requests} in {time}{change}; {failed}.")
}

/// Minimum increase, in percent, that the sentence expresses as a multiple.
const MUCH_MORE_PERCENT: u128 = 900;

/// Phrase such as `12 % more than a week before`; `None` without earlier figures.
fn change(total: &TrafficFigures) -> Option<String> {
    let before = total.week_before.filter(|before| 0 < before.requests)?;
    let (now, then) = (
        u128::from(total.counted.requests),
        u128::from(before.requests),
    );
    let percent = now.abs_diff(then) * 100 / then;
    let word = if now < then { "fewer" } else { "more" };
    Some(match percent {
        MUCH_MORE_PERCENT.. if then < now => {
            format!("{} times as many as a week before", now / then)
        }
        0 => "as many as a week before".to_owned(),
        percent => format!("{percent} % {word} than a week before"),
    })
}

/// Words for the period: as a link, and within a sentence.
pub(crate) fn words(period: TrafficPeriod) -> (&'static str, &'static str) {
    match period {
        TrafficPeriod::Hour => ("Hour", "an hour"),
        TrafficPeriod::Day => ("Day", "24 hours"),
        TrafficPeriod::Week => ("Week", "seven days"),
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(requests: u64, errors: u64) -> CountedRequests {
        CountedRequests {
            requests,
            errors,
            latency: [0, 0, 0, requests, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }

    #[test]
    fn the_heading_compares_with_a_week_before_and_never_with_a_guess() {
        for (now, before, expected) in [
            (
                counted(0, 0),
                None,
                "No node reported a request in 24 hours until 14:00 UTC; the next count is at 15:01.",
            ),
            (counted(1, 0), None, "1 request in 24 hours; none failed."),
            (
                counted(48_210, 116),
                Some(counted(43_000, 0)),
                "48\u{a0}210 requests in 24 hours, 12 % more than a week before; 0.24 % failed.",
            ),
            (
                counted(39_600, 0),
                Some(counted(1_000, 0)),
                "39\u{a0}600 requests in 24 hours, 39 times as many as a week before; none failed.",
            ),
            (
                counted(90, 90),
                Some(counted(100, 0)),
                "90 requests in 24 hours, 10 % fewer than a week before; 100.00 % failed.",
            ),
        ] {
            let total = TrafficFigures {
                counted: now,
                week_before: before,
            };
            let now = "2026-11-30T14:12:08Z".parse().unwrap();
            assert_eq!(heading(&total, TrafficPeriod::Day, now), expected);
        }
    }
}
