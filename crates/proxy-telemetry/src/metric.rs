//! What is said about a metric: its name, kind, labels and meaning.

use crate::exposition::{Samples, Scrape};

/// How a metric's numbers behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name operators query; stable across all versions.
    pub name: &'static str,
    /// How its numbers behave.
    pub kind: Kind,
    /// Label names, in the order of the values.
    pub labels: &'static [&'static str],
    /// What is counted, in one sentence.
    pub help: &'static str,
    pub(crate) source: Source,
}

/// A counter whose series are made at run time, with `N` labels.
#[derive(Clone, Copy, Debug)]
pub struct CounterOf<const N: usize> {
    /// What is said about it.
    pub metric: Metric,
}

/// A gauge whose series are made at run time, with `N` labels.
#[derive(Clone, Copy, Debug)]
pub struct GaugeOf<const N: usize> {
    /// What is said about it.
    pub metric: Metric,
}

/// Where the numbers of a metric come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// Workers' cells or the process: the function writes the samples.
    MetricGroup(fn(&Scrape<'_>, &mut Samples<'_>)),
    /// Series that were asked of the registry one by one.
    Series,
}

impl Kind {
    /// The word of the exposition format.
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

    /// The unit its name ends in, or none for plain numbers.
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
