//! Bar chart of a run: each server in each case, relative to nginx.

use crate::figure::Figure;
use crate::report::results::{CaseResult, Results};
use crate::servers::server::OURS;
use std::fmt::Write;

/// Server with bars of the length 100 %.
const REFERENCE_SERVER: &str = "nginx";
const WIDTH: f64 = 860.0;
/// Left end of the bars, and length of a reference bar.
const LEFT: f64 = 330.0;
const UNIT: f64 = 300.0;
/// Maximum length of a bar, relative to the reference. Longer ones are cut off.
const MAX_SHARE: f64 = 1.4;
const BAR: f64 = 14.0;
const GAP: f64 = 16.0;
const TOP: f64 = 40.0;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#222}\
.ours{fill:#2563a8}.theirs{fill:#b4bcc6}.line{stroke:#8a929c;stroke-dasharray:3 3}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.ours{fill:#6aa5e8}.theirs{fill:#565e68}}";

/// Draws the chart as SVG. Lower is better in every row.
pub(crate) fn svg(results: &Results) -> String {
    let mut body = String::new();
    let mut y = TOP;
    for (case, figure) in rows(results) {
        y = group(&mut body, case, figure, y);
    }
    let line = LEFT + UNIT;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" role=\"img\">\
         <title>proxyd compared with nginx and HAProxy; nginx is 100 %, less is better</title>\
         <style>{STYLE}</style>\
         <text x=\"{line}\" y=\"24\" text-anchor=\"middle\">{REFERENCE_SERVER} = 100 %, less is better</text>\
         <line class=\"line\" x1=\"{line}\" x2=\"{line}\" y1=\"32\" y2=\"{y}\"/>\
         {body}</svg>\n"
    )
}

/// Returns the figures for which nginx has a valid value.
fn rows(results: &Results) -> impl Iterator<Item = (&CaseResult, Figure)> {
    let cases = results.cases.iter().filter(|case| case.with_peers);
    cases.flat_map(|case| {
        let figures = case.figures.iter().copied();
        figures
            .filter(|figure| *figure != Figure::PerSecond)
            .filter(|figure| measure(case, *figure).is_some())
            .map(move |figure| (case, figure))
    })
}

fn measure(case: &CaseResult, figure: Figure) -> Option<f64> {
    let spread = case.entry(REFERENCE_SERVER)?.spread(figure)?;
    (spread.median > 0.0).then_some(spread.median)
}

/// Draws the bars of one row. Returns the position of the next.
fn group(body: &mut String, case: &CaseResult, figure: Figure, top: f64) -> f64 {
    let mut y = top;
    let label = format!("{}: {}", case.title, figure.title());
    text(body, 0.0, y - 3.0, &label);
    for entry in &case.entries {
        let value = entry.spread(figure).map(|spread| spread.median);
        let (Some(value), Some(measure)) = (value, measure(case, figure)) else {
            continue;
        };
        let part = value / measure;
        let length = UNIT * part.clamp(0.0, MAX_SHARE);
        let class = if entry.name == OURS { "ours" } else { "theirs" };
        let baseline = y + BAR - 3.0;
        text(body, LEFT - 70.0, baseline, &entry.name);
        draw(
            body,
            format_args!(
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" \
                 height=\"{}\"/>",
                BAR - 2.0
            ),
        );
        let label = format!("{} ({:.0} %)", figure.written(value), part * 100.0);
        text(body, LEFT + length + 6.0, baseline, &label);
        y += BAR;
    }
    y + GAP
}

fn text(body: &mut String, x: f64, y: f64, words: &str) {
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    draw(
        body,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"),
    );
}

fn draw(body: &mut String, shape: std::fmt::Arguments<'_>) {
    let drawn = body.write_fmt(shape);
    debug_assert!(drawn.is_ok(), "a String takes all that is written");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CaseReport;
    use crate::report::report_fixture::results;
    use crate::report::tests::entry;

    #[test]
    fn bars_are_as_long_as_their_share_of_nginx() {
        let figure = Figure::CpuMicros;
        let case = CaseReport {
            name: "get-64".to_owned(),
            title: "GET <64>".to_owned(),
            with_peers: true,
            figures: vec![figure],
            entries: vec![
                entry(OURS, figure, &[Some(9.0)]),
                entry("nginx", figure, &[Some(10.0)]),
                entry("slow", figure, &[Some(90.0)]),
            ],
        };
        let svg = svg(&results(vec![case]));

        for part in [
            "class=\"ours\" x=\"330\" y=\"40\" width=\"270.0\"",
            "9.00 µs (90 %)",
            "width=\"300.0\"",
            "width=\"420.0\"",
            "GET &lt;64&gt;: CPU per request",
        ] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        assert_eq!(svg.matches("<rect").count(), 3);
    }

    #[test]
    fn a_case_without_nginx_has_no_row() {
        let figure = Figure::CpuMicros;
        let case = CaseReport {
            name: "get-64".to_owned(),
            title: "GET".to_owned(),
            with_peers: true,
            figures: vec![figure],
            entries: vec![entry(OURS, figure, &[Some(9.0)])],
        };
        assert_eq!(svg(&results(vec![case])).matches("<rect").count(), 0);
    }
}
