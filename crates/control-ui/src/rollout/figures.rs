//! Figures of a gate: the batch's, the rest's, and the limit.

use crate::view::component::{Status, Tone};
use crate::view::phrase::number;
use askama::Template;
use askama::filters::HtmlSafe;
use control_app::{StoredFigures, StoredSide};
use control_domain::Gate;

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct GateRow {
    pub(crate) label: &'static str,
    pub(crate) note: &'static str,
    pub(crate) batch: String,
    pub(crate) rest: String,
    pub(crate) limit: String,
    pub(crate) status: Status,
    pub(crate) is_over: bool,
    pub(crate) picture: Option<FigureBar>,
}

/// The batch as a bar, with marks for the rest and the limit.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<svg class="bars" viewBox="0 0 100 22" preserveAspectRatio="none" role="img" aria-label="{{ label }}"><rect class="f-none" y="7" width="100" height="8"/><rect class="f-{{ tone.class() }}" y="7" width="{{ batch }}" height="8"/><rect class="f-other" x="{{ rest }}" y="4" width="0.8" height="14"/><rect class="f-limit" x="{{ limit }}" y="0" width="1" height="22"/></svg>"#
)]
pub(crate) struct FigureBar {
    label: String,
    tone: Tone,
    batch: String,
    rest: String,
    limit: String,
}

impl HtmlSafe for FigureBar {}

/// A figure that may grow up to a limit.
struct Figure {
    label: &'static str,
    note: &'static str,
    batch: f64,
    rest: f64,
    limit: f64,
    unit: fn(f64) -> String,
}

/// The figures, in the order of the gate's checks.
pub(crate) fn rows(figures: &StoredFigures, gate: &Gate) -> Vec<GateRow> {
    let StoredFigures {
        batch,
        rest,
        earlier: _, // In the caption.
        verdict: _, // Its own paragraph of the page.
    } = figures;
    let mut rows = vec![requests(batch, rest, gate)];
    if batch.requests == 0 {
        return rows;
    }
    rows.push(row(&Figure {
        label: "Answers with 5xx",
        note: "of 1000 requests of a node",
        batch: real(batch.error_permille),
        rest: real(rest.error_permille),
        limit: real(
            rest.error_permille
                .saturating_add(gate.max_error_increase_permille),
        ),
        unit: |value| format!("{value:.0}"),
    }));
    if let (Some(own), Some(others)) = (batch.p99_ms, rest.p99_ms) {
        let share = others.saturating_mul(gate.max_p99_percent) / 100;
        rows.push(row(&Figure {
            label: "99 % of requests take up to",
            note: "",
            batch: real(own),
            rest: real(others),
            limit: real(share.saturating_add(gate.p99_slack_ms)),
            unit: |value| format!("{value:.0} ms"),
        }));
    }
    if let (Some(own), Some(others)) = (batch.cpu_percent, rest.cpu_percent) {
        rows.push(row(&Figure {
            label: "CPU of a node",
            note: "100 % is one core",
            batch: own,
            rest: others,
            limit: others + real(gate.max_cpu_increase_percent),
            unit: |value| format!("{value:.0} %"),
        }));
    }
    rows
}

/// Number of requests: too few, on either side, prove nothing.
fn requests(batch: &StoredSide, rest: &StoredSide, gate: &Gate) -> GateRow {
    let shown = |requests: u64| number(i64::try_from(requests).unwrap_or(i64::MAX));
    let least = u64::try_from(gate.min_requests).unwrap_or_default();
    let is_enough = least <= batch.requests.min(rest.requests);
    GateRow {
        label: "Requests",
        note: "fewer prove nothing",
        batch: shown(batch.requests),
        rest: shown(rest.requests),
        limit: format!("at least {}", number(gate.min_requests)),
        status: if is_enough {
            Status::new(Tone::Ok, "ok", "Enough")
        } else {
            Status::new(Tone::Warn, "wait", "Too few")
        },
        is_over: false,
        picture: None,
    }
}

fn row(figure: &Figure) -> GateRow {
    let Figure {
        label,
        note,
        batch,
        rest,
        limit,
        unit,
    } = figure;
    let is_over = limit < batch;
    let tone = if is_over { Tone::Bad } else { Tone::Ok };
    // The scale ends a tenth beyond the largest mark.
    let whole = batch.max(*rest).max(*limit).max(1.0) * 1.1;
    let at = |value: f64| format!("{:.1}", value / whole * 100.0);
    let (own, others, most) = (unit(*batch), unit(*rest), unit(*limit));
    GateRow {
        label,
        note,
        picture: Some(FigureBar {
            label: format!("{own} in the batch, {others} in the comparison, at most {most}"),
            tone,
            batch: at(*batch),
            rest: at(*rest),
            limit: at(*limit),
        }),
        batch: own,
        rest: others,
        limit: most,
        status: if is_over {
            Status::new(Tone::Bad, "bad", "Over its limit")
        } else {
            Status::new(Tone::Ok, "ok", "Within")
        },
        is_over,
    }
}

#[expect(clippy::cast_precision_loss, reason = "only for a picture")]
fn real(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(requests: u64, error_permille: i64) -> StoredSide {
        StoredSide {
            nodes: 11,
            requests,
            error_permille,
            p99_ms: Some(200),
            cpu_percent: Some(40.0),
        }
    }

    #[test]
    fn a_figure_over_its_limit_is_marked_and_no_data_is_not_good() {
        let figures = StoredFigures {
            batch: side(6_904, 31),
            rest: side(24_310, 2),
            earlier: None,
            verdict: None,
        };
        let rows = rows(&figures, &Gate::DEFAULT);
        let reported: Vec<(&str, &str, &str, bool)> = rows
            .iter()
            .map(|row| {
                (
                    row.label,
                    row.batch.as_str(),
                    row.limit.as_str(),
                    row.is_over,
                )
            })
            .collect();
        assert_eq!(
            reported,
            [
                ("Requests", "6904", "at least 100", false),
                ("Answers with 5xx", "31", "12", true),
                ("99 % of requests take up to", "200 ms", "310 ms", false),
                ("CPU of a node", "40 %", "90 %", false),
            ]
        );
        let silent = StoredFigures {
            batch: side(0, 0),
            ..figures
        };
        let rows = super::rows(&silent, &Gate::DEFAULT);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].status.word, "Too few");
    }
}
