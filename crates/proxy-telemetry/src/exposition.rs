//! The metrics page: Prometheus text 0.0.4 or `OpenMetrics` 1.0.

pub(crate) mod agents;
pub(crate) mod process;
pub(crate) mod routes;
mod text;
pub(crate) mod upstreams;
pub(crate) mod workers;

pub(crate) use text::{Samples, labels_text};

use crate::metric::{Metric, Source};
use crate::names::METRICS;
use crate::process::Process;
use crate::snapshot::Snapshot;
use std::time::Duration;

/// The version of the program.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// Semantic version.
    pub version: &'a str,
    /// Commit hash.
    pub commit: &'a str,
}

/// The data of a page.
#[derive(Clone, Copy, Debug)]
pub struct Scrape<'a> {
    /// The metrics of all workers.
    pub snapshot: &'a Snapshot,
    /// The process's use of resources.
    pub process: &'a Process,
    /// The version of the program.
    pub build: Build<'a>,
    /// Time of the scrape, since the Unix epoch.
    pub now: Duration,
    /// Start of the process, since the Unix epoch.
    pub started: Duration,
}

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// The format for an `Accept` field: `OpenMetrics` if the field contains it.
    pub fn accepted(accept: &str) -> Self {
        let named = accept.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            media.eq_ignore_ascii_case("application/openmetrics-text")
                && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        });
        if named {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// The `Content-Type` of the page.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Scrape<'_> {
    /// The page: every metric of the table, in its order.
    pub fn page(&self, format: Format) -> String {
        let mut page = String::with_capacity(16 * 1024);
        for metric in METRICS {
            let mut samples = Samples::begin(&mut page, metric, format);
            self.samples(metric, &mut samples);
        }
        if format == Format::OpenMetrics {
            page.push_str("# EOF\n");
        }
        page
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_sent_only_to_clients_that_accept_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2,*/*";
        let cases = [
            (prometheus, Format::OpenMetrics),
            ("*/*", Format::Prometheus),
            ("", Format::Prometheus),
            ("text/plain;version=0.0.4", Format::Prometheus),
            ("application/openmetrics-text; q=0", Format::Prometheus),
        ];
        for (accept, format) in cases {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }
}
