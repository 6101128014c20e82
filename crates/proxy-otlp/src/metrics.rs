//! Metrics, with the names of the metrics page.

use crate::proto::{
    Data, Exemplar, ExemplarValue, ExportMetricsServiceRequest, Gauge, Histogram,
    HistogramDataPoint, KeyValue, Metric, Number, NumberDataPoint, ResourceMetrics, ScopeMetrics,
    Sum,
};
use crate::resource::{Resource, bytes, text, unix_nanos};
use prost::Message;
use proxy_telemetry::{BOUNDS_NS, HistogramPoint, Kind, MetricPoints, Point, PointValue};
use std::time::Duration;

/// Counted since the start of the process.
const CUMULATIVE: i32 = 2;

/// Time that a point covers, in nanoseconds since 1970. A gauge has no start, written as 0.
#[derive(Clone, Copy)]
struct Period {
    start: u64,
    end: u64,
}

/// The body of an export of `metrics`, read at `now`, of a process that started at `started`; both since 1970.
pub fn encode_metrics(
    resource: &Resource,
    metrics: &[MetricPoints],
    started: Duration,
    now: Duration,
) -> Vec<u8> {
    let period = Period {
        start: unix_nanos(started),
        end: unix_nanos(now),
    };
    let message = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource.message()),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(resource.scope()),
                metrics: metrics.iter().map(|one| metric(one, period)).collect(),
            }],
        }],
    };
    message.encode_to_vec()
}

fn metric(metric: &MetricPoints, period: Period) -> Metric {
    let MetricPoints { metric, points } = metric;
    let numbers = |period: Period| {
        let points = points.iter();
        points
            .filter_map(|point| number_point(point, period))
            .collect()
    };
    let data = match metric.kind {
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(period),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        Kind::Gauge => Data::Gauge(Gauge {
            data_points: numbers(Period { start: 0, ..period }),
        }),
        Kind::Histogram => {
            let points = points.iter();
            let points = points.filter_map(|point| histogram_point(point, period));
            Data::Histogram(Histogram {
                data_points: points.collect(),
                aggregation_temporality: CUMULATIVE,
            })
        }
    };
    Metric {
        name: metric.name.to_owned(),
        description: metric.help.to_owned(),
        unit: match metric.unit() {
            Some("seconds") => "s".to_owned(),
            Some("bytes") => "By".to_owned(),
            Some(_) | None => String::new(),
        },
        data: Some(data),
    }
}

/// `None` for a histogram.
fn number_point(point: &Point, period: Period) -> Option<NumberDataPoint> {
    let Point { attributes, value } = point;
    let value = match value {
        PointValue::Integer(number) => Number::Integer(i64::try_from(*number).unwrap_or(i64::MAX)),
        PointValue::Decimal(number) => Number::Decimal(*number),
        PointValue::Histogram(_) => return None,
    };
    Some(NumberDataPoint {
        start_time_unix_nano: period.start,
        time_unix_nano: period.end,
        value: Some(value),
        attributes: labels(attributes),
    })
}

/// `None` for a number.
fn histogram_point(point: &Point, period: Period) -> Option<HistogramDataPoint> {
    let PointValue::Histogram(histogram) = &point.value else {
        return None;
    };
    let HistogramPoint { total, exemplars } = &**histogram;
    let exemplars = exemplars.iter().map(|exemplar| Exemplar {
        time_unix_nano: unix_nanos(exemplar.at),
        value: Some(ExemplarValue::Decimal(exemplar.took.as_secs_f64())),
        span_id: bytes(&exemplar.span_id),
        trace_id: bytes(&exemplar.trace_id),
    });
    Some(HistogramDataPoint {
        start_time_unix_nano: period.start,
        time_unix_nano: period.end,
        count: total.count(),
        sum: Some(seconds(total.sum_ns)),
        bucket_counts: total.buckets.to_vec(),
        explicit_bounds: BOUNDS_NS.iter().map(|ns| seconds((*ns).into())).collect(),
        exemplars: exemplars.collect(),
        attributes: labels(&point.attributes),
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a sum of durations has 15 digits at most that matter"
)]
fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

fn labels(attributes: &[(&'static str, String)]) -> Vec<KeyValue> {
    let attributes = attributes.iter();
    attributes.map(|(name, value)| text(name, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_telemetry::{HistogramTotal, names};

    fn encoded(metrics: &[MetricPoints]) -> Vec<Metric> {
        let resource = Resource {
            service_name: "edge".to_owned(),
            service_version: "1".to_owned(),
            instance_id: "i".to_owned(),
        };
        let (started, now) = (Duration::from_secs(1), Duration::from_secs(2));
        let bytes = encode_metrics(&resource, metrics, started, now);
        let mut message = ExportMetricsServiceRequest::decode(&*bytes).unwrap();
        message.resource_metrics[0].scope_metrics.remove(0).metrics
    }

    fn points(metric: &'static proxy_telemetry::Metric, value: PointValue) -> MetricPoints {
        let attributes = vec![("route", "api".to_owned())];
        MetricPoints {
            metric,
            points: vec![Point { attributes, value }],
        }
    }

    #[test]
    fn counters_are_cumulative_sums_and_gauges_have_no_start() {
        let metrics = encoded(&[
            points(&names::REQUESTS_TOTAL, PointValue::Integer(7)),
            points(&names::UPTIME_SECONDS, PointValue::Decimal(1.5)),
        ]);
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{:?}", metrics[0]);
        };
        assert_eq!(metrics[0].name, "proxy_requests_total");
        assert_eq!((sum.aggregation_temporality, sum.is_monotonic), (2, true));
        let point = &sum.data_points[0];
        let times = (point.start_time_unix_nano, point.time_unix_nano);
        assert_eq!(times, (1_000_000_000, 2_000_000_000));
        assert_eq!(point.value, Some(Number::Integer(7)));
        assert_eq!(point.attributes, [text("route", "api")]);
        let Some(Data::Gauge(gauge)) = &metrics[1].data else {
            panic!("{:?}", metrics[1]);
        };
        assert_eq!(metrics[1].unit, "s");
        assert_eq!(gauge.data_points[0].start_time_unix_nano, 0);
        assert_eq!(gauge.data_points[0].value, Some(Number::Decimal(1.5)));
    }

    #[test]
    fn histograms_have_their_buckets_and_exemplars() {
        let mut total = HistogramTotal::default();
        total.buckets[8] = 2;
        total.buckets[18] = 1;
        total.sum_ns = 61_500_000_000;
        let exemplar = proxy_telemetry::Exemplar {
            trace_id: *b"4bf92f3577b34da6a3ce929d0e0e4736",
            span_id: *b"00f067aa0ba902b7",
            took: Duration::from_millis(40),
            at: Duration::from_secs(2),
        };
        let value = PointValue::Histogram(Box::new(HistogramPoint {
            total,
            exemplars: vec![exemplar],
        }));
        let metrics = encoded(&[points(&names::REQUEST_DURATION_SECONDS, value)]);
        let Some(Data::Histogram(histogram)) = &metrics[0].data else {
            panic!("{:?}", metrics[0]);
        };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum), (3, Some(61.5)));
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!(
            (point.bucket_counts[8], point.explicit_bounds[8]),
            (2, 0.05)
        );
        let exemplar = &point.exemplars[0];
        assert_eq!(exemplar.value, Some(ExemplarValue::Decimal(0.04)));
        assert_eq!((exemplar.trace_id.len(), exemplar.span_id.len()), (16, 8));
    }
}
