//! Text form of the samples of one metric.

use crate::limit_use::Quantity;
use crate::metrics::{BOUNDS_TEXT, BucketExemplars, Exemplar, HistogramTotal};
use std::borrow::Cow;
use std::time::Duration;

/// The samples of one metric as text.
#[derive(Debug)]
pub(crate) struct TextSamples<'page> {
    page: &'page mut String,
    name: &'static str,
    /// Label names, in the order of the values.
    labels: &'static [&'static str],
    /// Writes exemplars of buckets, which only `OpenMetrics` has.
    has_exemplars: bool,
}

impl<'page> TextSamples<'page> {
    /// A writer of the samples of the metric `name`, with these label names.
    pub(crate) fn new(
        page: &'page mut String,
        name: &'static str,
        labels: &'static [&'static str],
        has_exemplars: bool,
    ) -> Self {
        Self {
            page,
            name,
            labels,
            has_exemplars,
        }
    }

    /// Writes a whole number, with the values of the metric's labels.
    pub(crate) fn count(&mut self, values: &[&str], n: u64) {
        let labels = labels_text(self.labels, values);
        self.rendered(&labels, n);
    }

    /// Writes a whole number, with labels already rendered.
    pub(crate) fn rendered(&mut self, labels: &str, n: u64) {
        self.sample("", labels, itoa::Buffer::new().format(n), None);
    }

    /// Writes a quantity of a limit.
    pub(crate) fn quantity(&mut self, values: &[&str], quantity: Quantity) {
        let labels = labels_text(self.labels, values);
        self.sample("", &labels, &quantity.to_string(), None);
    }

    /// Writes a time in seconds.
    pub(crate) fn seconds(&mut self, time: Duration) {
        self.sample("", "", &seconds_text(time.as_nanos()), None);
    }

    /// Writes a histogram: cumulative buckets, sum and count.
    pub(crate) fn histogram(
        &mut self,
        values: &[&str],
        total: &HistogramTotal,
        exemplars: Option<&BucketExemplars>,
    ) {
        let exemplars = exemplars.filter(|_| self.has_exemplars);
        let mut exemplars = exemplars.into_iter().flatten();
        let mut labels = labels_text(self.labels, values);
        let own = labels.len();
        let mut count = 0;
        for (bucket, bound) in total.buckets.iter().zip(BOUNDS_TEXT) {
            count += bucket;
            push_label(&mut labels, "le", bound);
            let exemplar = exemplars.next().and_then(Option::as_ref);
            let value = itoa::Buffer::new().format(count).to_owned();
            self.sample("_bucket", &labels, &value, exemplar);
            labels.truncate(own);
        }
        self.sample("_sum", &labels, &seconds_text(total.sum_ns), None);
        let count = itoa::Buffer::new().format(count).to_owned();
        self.sample("_count", &labels, &count, None);
    }

    fn sample(&mut self, suffix: &str, labels: &str, value: &str, exemplar: Option<&Exemplar>) {
        self.page.push_str(self.name);
        self.page.push_str(suffix);
        if !labels.is_empty() {
            self.page.push('{');
            self.page.push_str(labels);
            self.page.push('}');
        }
        self.page.push(' ');
        self.page.push_str(value);
        if let Some(exemplar) = exemplar {
            self.exemplar(exemplar);
        }
        self.page.push('\n');
    }

    /// ` # {trace_id="…",span_id="…"} value timestamp`
    fn exemplar(&mut self, exemplar: &Exemplar) {
        let Exemplar {
            trace_id,
            span_id,
            took,
            at,
        } = exemplar;
        let text = |id| str::from_utf8(id).unwrap_or_default();
        let ids = [text(trace_id), text(span_id)];
        let labels = labels_text(&["trace_id", "span_id"], &ids);
        let (took, at) = (seconds_text(took.as_nanos()), seconds_text(at.as_nanos()));
        for part in [" # {", &labels, "} ", &took, " ", &at] {
            self.page.push_str(part);
        }
    }
}

/// Renders labels as between the braces.
pub(crate) fn labels_text(names: &[&str], values: &[&str]) -> String {
    let mut labels = String::new();
    for (name, value) in names.iter().zip(values) {
        push_label(&mut labels, name, value);
    }
    labels
}

fn seconds_text(ns: u128) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn push_label(labels: &mut String, name: &str, value: &str) {
    if !labels.is_empty() {
        labels.push(',');
    }
    labels.push_str(name);
    labels.push_str("=\"");
    labels.push_str(&escaped(value));
    labels.push('"');
}

fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(value);
    }
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    Cow::Owned(value.replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let labels = labels_text(&["route", "status"], &["a\"b\\c\nd", "200"]);

        assert_eq!(labels, r#"route="a\"b\\c\nd",status="200""#);
    }
}
