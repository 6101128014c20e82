//! The samples of one metric, as text or as points.

use crate::limit_use::Quantity;
use crate::metrics::{BucketExemplars, HistogramTotal};
use crate::scrape::points::{HistogramPoint, Point, PointValue, label_values};
use crate::scrape::text::TextSamples;
use std::time::Duration;

/// Receives the samples of one metric.
#[derive(Debug)]
pub(crate) enum Samples<'out> {
    /// A page of text.
    Text(TextSamples<'out>),
    /// Numbers with attributes.
    Points {
        points: &'out mut Vec<Point>,
        /// Label names, in the order of the values.
        labels: &'static [&'static str],
    },
}

impl Samples<'_> {
    /// Adds a whole number, with the values of the metric's labels.
    pub(crate) fn count(&mut self, values: &[&str], n: u64) {
        match self {
            Self::Text(text) => text.count(values, n),
            Self::Points { .. } => self.point(values, PointValue::Integer(n)),
        }
    }

    /// Adds a whole number, unless it is zero.
    pub(crate) fn count_met(&mut self, values: &[&str], n: u64) {
        if n > 0 {
            self.count(values, n);
        }
    }

    /// Adds a whole number, with labels already rendered.
    pub(crate) fn rendered(&mut self, labels: &str, n: u64) {
        match self {
            Self::Text(text) => text.rendered(labels, n),
            Self::Points { .. } => {
                let values = label_values(labels);
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                self.point(&values, PointValue::Integer(n));
            }
        }
    }

    /// Adds a quantity of a limit.
    pub(crate) fn quantity(&mut self, values: &[&str], quantity: Quantity) {
        match self {
            Self::Text(text) => text.quantity(values, quantity),
            Self::Points { .. } => {
                let value = match quantity {
                    Quantity::Count(count) => PointValue::Integer(count),
                    Quantity::Decimal(number) => PointValue::Decimal(number),
                };
                self.point(values, value);
            }
        }
    }

    /// Adds a time in seconds.
    pub(crate) fn seconds(&mut self, time: Duration) {
        match self {
            Self::Text(text) => text.seconds(time),
            Self::Points { .. } => self.point(&[], PointValue::Decimal(time.as_secs_f64())),
        }
    }

    /// Adds a histogram, with an exemplar for some of its buckets.
    pub(crate) fn histogram(
        &mut self,
        values: &[&str],
        total: &HistogramTotal,
        exemplars: Option<&BucketExemplars>,
    ) {
        match self {
            Self::Text(text) => text.histogram(values, total, exemplars),
            Self::Points { .. } => {
                let exemplars = exemplars.into_iter().flatten().flatten();
                let value = PointValue::Histogram(Box::new(HistogramPoint {
                    total: total.clone(),
                    exemplars: exemplars.copied().collect(),
                }));
                self.point(values, value);
            }
        }
    }

    fn point(&mut self, values: &[&str], value: PointValue) {
        let Self::Points { points, labels } = self else {
            return;
        };
        let labels = labels.iter().zip(values);
        points.push(Point {
            attributes: labels
                .map(|(name, text)| (*name, (*text).to_owned()))
                .collect(),
            value,
        });
    }
}
