//! The reference page of metrics.

use crate::metrics::BOUNDS_TEXT;
use crate::names::METRICS;
use std::fmt::Write;

const PAGE_HEAD: &str = "# Metrics

Served by the admin interface at `/metrics`, as Prometheus text or OpenMetrics. Names are stable
across all versions. Labels take their values from the configuration and from closed lists, never
from requests. Requests that match no route count under route `unmatched`; what comes after the
cap on series counts under the label value `overflow`. A route, an upstream or an agent of that name
shares the series.

| name | type | labels | unit | meaning |
|---|---|---|---|---|
";

/// `docs/reference/metrics.md`: every metric with its type, labels, unit and meaning.
pub fn metrics_md() -> String {
    let mut page = PAGE_HEAD.to_owned();
    for metric in METRICS {
        let labels: Vec<_> = metric
            .labels
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        line(
            &mut page,
            format_args!(
                "| `{}` | {} | {} | {} | {} |",
                metric.name,
                metric.kind.name(),
                labels.join(", "),
                metric.unit().unwrap_or_default(),
                metric.help,
            ),
        );
    }
    line(&mut page, format_args!(""));
    line(
        &mut page,
        format_args!(
            "Histograms have buckets up to these seconds: {}.",
            BOUNDS_TEXT.join(", ")
        ),
    );
    page
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    writeln!(page, "{text}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_metric_in_one_row() {
        let page = metrics_md();

        for metric in METRICS {
            let row = format!("| `{}` | {} |", metric.name, metric.kind.name());
            assert_eq!(page.matches(&row).count(), 1, "{}", metric.name);
        }
        assert!(
            page.contains("| `proxy_request_duration_seconds` | histogram | `route` | seconds |")
        );
        assert!(page.ends_with("30.0, 60.0, +Inf.\n"));
    }
}
