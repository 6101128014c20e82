//! Exported metrics, and their exemplars.

use super::support::{
    TRACE, attributes, collector, hex, metrics_in, otlp, page, reaches, sampled, value,
};
use crate::support::Config;
use proxy_otlp::proto::{Data, ExemplarValue, Metric, Number, NumberDataPoint};
use proxy_testkit::{Upstream, get};
use std::collections::{BTreeMap, BTreeSet};

/// Prefixes of metrics with values that change in an idle process.
const VOLATILE: [&str; 12] = [
    "proxy_process_",
    "process_",
    "proxy_uptime_seconds",
    "proxy_memory_usage_bytes",
    "proxy_limit_use",
    "proxy_worker_heartbeat",
    "proxy_otlp_",
    "proxy_log_lines",
    "proxy_connection_pool",
    "proxy_connections_",
    "proxy_open_connections",
    "proxy_active_requests",
];

/// Formats labels as on the metrics page.
fn labels(point: &BTreeMap<String, String>, names: &str) -> String {
    // Here, values of labels contain no quotes.
    let mut labels: Vec<(usize, String)> = point
        .iter()
        .map(|(name, value)| {
            let label = format!("{name}=\"{value}\"");
            (names.find(&format!("{name}=")).unwrap_or(0), label)
        })
        .collect();
    labels.sort();
    let labels: Vec<String> = labels.into_iter().map(|(_, label)| label).collect();
    labels.join(",")
}

fn series(name: &str, labels: &str) -> String {
    match labels {
        "" => name.to_owned(),
        labels => format!("{name}{{{labels}}}"),
    }
}

fn number(point: &NumberDataPoint) -> f64 {
    match point.value.as_ref().unwrap() {
        #[expect(
            clippy::cast_precision_loss,
            reason = "the numbers of a test are small"
        )]
        Number::Integer(number) => *number as f64,
        Number::Decimal(number) => *number,
    }
}

/// Returns the first line of a metric on the page, for the order of its labels.
fn line<'p>(page: &'p str, name: &str) -> &'p str {
    let mut lines = page.lines();
    let line = lines.find(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ', '_']))
    });
    line.unwrap_or_else(|| panic!("{name} is not on the page"))
}

/// Compares a metric's points with the samples on the page.
fn compare(metric: &Metric, page: &str) {
    let name = &metric.name;
    let line = line(page, name);
    let points = match metric.data.as_ref().unwrap() {
        Data::Gauge(gauge) => &gauge.data_points,
        Data::Sum(sum) => {
            assert_eq!((sum.aggregation_temporality, sum.is_monotonic), (2, true));
            &sum.data_points
        }
        Data::Histogram(histogram) => {
            for point in &histogram.data_points {
                let labels = labels(&attributes(&point.attributes), line);
                let on_page =
                    |suffix: &str| value(page, &series(&format!("{name}{suffix}"), &labels));
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "the numbers of a test are small"
                )]
                let count = point.count as f64;
                assert_eq!(on_page("_count"), Some(count), "{name} {labels}");
                let sum = on_page("_sum").unwrap();
                assert!((sum - point.sum.unwrap()).abs() < 1e-9, "{name} {labels}");
                assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
            }
            return;
        }
    };
    for point in points {
        let labels = labels(&attributes(&point.attributes), line);
        let own = number(point);
        assert_eq!(
            value(page, &series(name, &labels)),
            Some(own),
            "{name} {labels}"
        );
    }
}

#[test]
fn exported_metrics_have_the_values_of_the_metrics_page() {
    let (upstream, collector) = (Upstream::saying("hello"), collector());
    let proxyd = Config::to(&upstream)
        .top(&otlp(collector.address(), "traces #false; interval-secs 1"))
        .start();
    let mut client = proxyd.connect();
    for _ in 0..3 {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }
    let done = "proxy_requests_total{route=\"all\",status=\"200\"}";
    assert_eq!(reaches(&proxyd, done, 3.0), Some(3.0));

    // The values of the export after the next one are read later than now.
    let before = collector.requests().len();
    let export = &collector.wait_for_requests(before + 2)[before + 1];

    let page = page(&proxyd, "");
    let metrics = metrics_in(export);
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let named: BTreeSet<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    for (name, metric) in &metrics {
        assert!(named.contains(&**name), "{name} is not on the page");
        if !VOLATILE.iter().any(|prefix| name.starts_with(prefix)) {
            compare(metric, &page);
        }
    }
    for name in named {
        let has_samples = page.lines().any(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) || rest.starts_with("_count"))
        });
        assert_eq!(metrics.contains_key(name), has_samples, "{name}");
    }
    assert_eq!(metrics["proxy_request_duration_seconds"].unit, "s");
}

#[test]
fn exemplars_name_the_traces_of_requests() {
    let (upstream, collector) = (Upstream::saying("hello"), collector());
    let proxyd = Config::to(&upstream)
        .top(&otlp(collector.address(), "interval-secs 1"))
        .start();
    assert_eq!(proxyd.connect().ask(sampled("/")).status, 200);
    reaches(&proxyd, "proxy_otlp_spans_exported_total", 2.0);

    let accept = "Accept: application/openmetrics-text; version=1.0.0\r\n";
    let page_text = page(&proxyd, accept);
    let mark = format!(" # {{trace_id=\"{TRACE}\",span_id=\"");
    let marked: Vec<&str> = page_text
        .lines()
        .filter(|line| line.contains(&mark))
        .collect();
    let [line] = marked.as_slice() else {
        panic!("{marked:?}\n{page_text}");
    };
    let bucket = "proxy_request_duration_seconds_bucket{route=\"all\",le=\"";
    assert!(line.starts_with(bucket), "{line}");
    assert!(!page(&proxyd, "").contains(&mark));

    let mut seen = 0;
    let exemplar = loop {
        let requests = collector.wait_for_requests(seen + 1);
        let metrics = requests[seen..]
            .iter()
            .filter(|one| one.target == "/v1/metrics");
        let found = metrics.map(metrics_in).find_map(|metrics| {
            let durations = metrics
                .get("proxy_request_duration_seconds")?
                .data
                .clone()?;
            let Data::Histogram(histogram) = durations else {
                return None;
            };
            let mut exemplars = histogram.data_points.into_iter();
            exemplars.find_map(|point| point.exemplars.into_iter().next())
        });
        if let Some(found) = found {
            break found;
        }
        seen = requests.len();
    };
    assert_eq!(hex(&exemplar.trace_id), TRACE);
    assert!(line.contains(&hex(&exemplar.span_id)), "{line}");
    let Some(ExemplarValue::Decimal(took)) = exemplar.value else {
        panic!("{exemplar:?}");
    };
    assert!(0.0 < took && took < 20.0, "{took}");
}
