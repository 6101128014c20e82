//! The description of a metric: name, kind, labels and help.

use crate::scrape::Scrape;
use crate::scrape::samples::Samples;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only increases.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name in queries; stable across all versions.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Label names, in the order of the values.
    pub labels: &'static [&'static str],
    /// Help text, one sentence.
    pub help: &'static str,
    pub(crate) source: Source,
}

/// A counter with series created at run time, with `N` labels.
#[derive(Clone, Copy, Debug)]
pub struct CounterOf<const N: usize> {
    /// Description.
    pub metric: Metric,
}

/// A gauge with series created at run time, with `N` labels.
#[derive(Clone, Copy, Debug)]
pub struct GaugeOf<const N: usize> {
    /// Description.
    pub metric: Metric,
}

/// The source of a metric's samples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// Workers or the process: the function writes the samples.
    MetricGroup(fn(&Scrape<'_>, &mut Samples<'_>)),
    /// Series created one by one by the registry.
    Series,
}

impl Kind {
    /// The word in the exposition format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Metric {
    pub(crate) const fn counter(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        samples: fn(&Scrape<'_>, &mut Samples<'_>),
    ) -> Self {
        Self {
            name,
            kind: Kind::Counter,
            labels,
            help,
            source: Source::MetricGroup(samples),
        }
    }

    pub(crate) const fn gauge(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        samples: fn(&Scrape<'_>, &mut Samples<'_>),
    ) -> Self {
        Self {
            name,
            kind: Kind::Gauge,
            labels,
            help,
            source: Source::MetricGroup(samples),
        }
    }

    pub(crate) const fn histogram(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        samples: fn(&Scrape<'_>, &mut Samples<'_>),
    ) -> Self {
        Self {
            name,
            kind: Kind::Histogram,
            labels,
            help,
            source: Source::MetricGroup(samples),
        }
    }

    /// The unit in the name's suffix; `None` for plain numbers.
    pub fn unit(&self) -> Option<&'static str> {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        ["seconds", "bytes"]
            .into_iter()
            .find(|unit| name.ends_with(unit))
    }
}

impl<const N: usize> CounterOf<N> {
    pub(crate) const fn new(
        name: &'static str,
        labels: &'static [&'static str; N],
        help: &'static str,
    ) -> Self {
        Self {
            metric: Metric {
                name,
                kind: Kind::Counter,
                labels,
                help,
                source: Source::Series,
            },
        }
    }
}

impl<const N: usize> GaugeOf<N> {
    pub(crate) const fn new(
        name: &'static str,
        labels: &'static [&'static str; N],
        help: &'static str,
    ) -> Self {
        Self {
            metric: Metric {
                name,
                kind: Kind::Gauge,
                labels,
                help,
                source: Source::Series,
            },
        }
    }
}
