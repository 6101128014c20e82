//! A line chart over time as SVG. The values are also shown as text.

use crate::view::phrase::number;
use askama::Template;
use askama::filters::HtmlSafe;

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 64.0;
/// Space above the highest value.
const TOP: f64 = 4.0;

/// A line over time, and a second one for an earlier time. A step without a value interrupts the
/// line.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<svg class="chart" viewBox="0 0 240 64" preserveAspectRatio="none" role="img" aria-label="{{ label }}"><path class="rule" d="M0 63.5H240"/>{% for run in earlier %}<polyline class="before" points="{{ run.points }}"/>{% endfor %}{% for run in runs %}<polygon class="area" points="{{ run.first }},64 {{ run.points }} {{ run.last }},64"/><polyline class="line" points="{{ run.points }}"/>{% endfor %}</svg>"#
)]
pub(crate) struct Chart {
    label: String,
    runs: Vec<Run>,
    earlier: Vec<Run>,
}

impl HtmlSafe for Chart {}

/// Consecutive steps with values, as points of a polyline.
#[derive(Clone, Debug)]
struct Run {
    points: String,
    /// Positions of the first and the last point.
    first: String,
    last: String,
}

/// Values over time.
#[derive(Clone, Debug)]
pub(crate) struct TimeSeries<'a> {
    pub(crate) name: &'a str,
    /// Unit after a number, with a leading space; empty for counts.
    pub(crate) unit: &'a str,
    /// Value of each step; `None` without a report.
    pub(crate) values: Vec<Option<i64>>,
    /// Values of an earlier time; empty without them.
    pub(crate) earlier: Vec<Option<i64>>,
}

impl TimeSeries<'_> {
    /// The chart; its text alternative has the lowest and the highest value.
    pub(crate) fn chart(&self) -> Chart {
        let Self {
            name,
            unit,
            values,
            earlier,
        } = self;
        let range = values.iter().flatten();
        let label = match (range.clone().min(), range.max()) {
            (Some(least), Some(most)) if least < most => {
                format!("{name}: {} to {}{unit}", number(*least), number(*most))
            }
            (Some(same), _) => format!("{name}: {}{unit}", number(*same)),
            (None, _) => format!("{name}: no figure"),
        };
        let most = values.iter().chain(earlier).flatten().max();
        let most = most.copied().unwrap_or_default().max(1);
        Chart {
            label,
            runs: runs(values, most),
            earlier: runs(earlier, most),
        }
    }
}

/// Polylines of values between 0 and `most`.
#[expect(clippy::cast_precision_loss, reason = "a picture is 240 points wide")]
fn runs(values: &[Option<i64>], most: i64) -> Vec<Run> {
    let last = values.len().saturating_sub(1).max(1) as f64;
    let mut runs = Vec::new();
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (index, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let y = HEIGHT - (*value as f64 / most as f64) * (HEIGHT - TOP);
            points.push((index as f64 / last * WIDTH, y));
        } else {
            runs.extend(run(&std::mem::take(&mut points)));
        }
    }
    runs.extend(run(&points));
    runs
}

fn run(points: &[(f64, f64)]) -> Option<Run> {
    let (first, _) = points.first()?;
    let (last, height) = points.last()?;
    // A single step is drawn as a short line.
    let end = if points.len() == 1 { last + 1.0 } else { *last };
    let texts = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
    let mut texts: Vec<String> = texts.collect();
    if points.len() == 1 {
        texts.push(format!("{end:.1},{height:.1}"));
    }
    Some(Run {
        points: texts.join(" "),
        first: format!("{first:.1}"),
        last: format!("{end:.1}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(name: &str, unit: &str, values: &[Option<i64>]) -> Chart {
        let course = TimeSeries {
            name,
            unit,
            values: values.to_vec(),
            earlier: vec![Some(20), Some(0)],
        };
        course.chart()
    }

    #[test]
    fn a_missing_step_interrupts_the_line_and_the_label_has_the_range() {
        let made = chart("Requests", "", &[Some(5), Some(10), None, Some(1)]);
        assert_eq!(made.label, "Requests: 1 to 10");
        assert_eq!(made.runs.len(), 2);
        assert_eq!(made.runs[0].points, "0.0,49.0 80.0,34.0");
        assert_eq!(made.runs[1].points, "240.0,61.0 241.0,61.0");
        assert_eq!(made.earlier[0].points, "0.0,4.0 240.0,64.0");
    }

    #[test]
    fn a_chart_without_values_has_no_line_and_a_name_is_text() {
        let none = chart("p99", " ms", &[None, None]);
        assert_eq!(none.label, "p99: no figure");
        assert!(none.runs.is_empty());
        let text = chart("<b>", " ms", &[Some(0)]).to_string();
        assert!(text.contains("&#60;b&#62;: 0 ms"), "{text}");
    }
}
