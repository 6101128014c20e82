//! The metrics page: Prometheus text 0.0.4 or `OpenMetrics` 1.0.

mod format;

pub use crate::scrape::{Build, Scrape};
pub use format::Format;

use crate::names::METRICS;
use crate::names::metric::{Metric, Source};
use crate::scrape::points::Point;
use crate::scrape::samples::Samples;
use crate::scrape::text::TextSamples;

/// A metric with its samples.
#[derive(Clone, Debug)]
pub struct MetricPoints {
    /// Name, help and type.
    pub metric: &'static Metric,
    /// A point for each combination of labels.
    pub points: Vec<Point>,
}

impl Scrape<'_> {
    /// The page: every metric of the table, in its order.
    pub fn page(&self, format: Format) -> String {
        let mut page = String::with_capacity(16 * 1024);
        for metric in METRICS {
            write_metadata(&mut page, metric, format);
            let has_exemplars = format == Format::OpenMetrics;
            let text = TextSamples::new(&mut page, metric.name, metric.labels, has_exemplars);
            self.samples(metric, &mut Samples::Text(text));
        }
        if format == Format::OpenMetrics {
            page.push_str("# EOF\n");
        }
        page
    }

    /// Every metric of the table that has samples, in its order.
    pub fn points(&self) -> Vec<MetricPoints> {
        let metrics = METRICS.iter().map(|metric| {
            let mut points = Vec::new();
            let mut samples = Samples::Points {
                points: &mut points,
                labels: metric.labels,
            };
            self.samples(metric, &mut samples);
            MetricPoints { metric, points }
        });
        metrics.filter(|metric| !metric.points.is_empty()).collect()
    }

    fn samples(&self, metric: &Metric, samples: &mut Samples<'_>) {
        match metric.source {
            Source::MetricGroup(write) => write(self, samples),
            Source::Series => {
                for (labels, value) in self.snapshot.series(metric.name) {
                    samples.rendered(labels, *value);
                }
            }
        }
    }
}

/// Writes the metadata lines, which precede the samples.
fn write_metadata(page: &mut String, metric: &Metric, format: Format) {
    let family = match format {
        Format::Prometheus => metric.name,
        Format::OpenMetrics => metric.name.strip_suffix("_total").unwrap_or(metric.name),
    };
    for part in ["# HELP ", family, " ", metric.help, "\n"] {
        page.push_str(part);
    }
    for part in ["# TYPE ", family, " ", metric.kind.name(), "\n"] {
        page.push_str(part);
    }
}
