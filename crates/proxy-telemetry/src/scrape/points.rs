//! The samples of a metric as numbers with attributes, for export.

use crate::metrics::{Exemplar, HistogramTotal};

/// A sample of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Names and values of its labels.
    pub attributes: Vec<(&'static str, String)>,
    /// Value at the scrape.
    pub value: PointValue,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum PointValue {
    /// A whole number.
    Integer(u64),
    /// Seconds, a ratio or a percentage.
    Decimal(f64),
    /// Durations in buckets.
    Histogram(Box<HistogramPoint>),
}

/// Durations in buckets, with exemplars of some buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramPoint {
    /// Buckets and sum.
    pub total: HistogramTotal,
    /// At most one for each bucket.
    pub exemplars: Vec<Exemplar>,
}

/// The values of labels in their text form, in order.
pub(crate) fn label_values(rendered: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut chars = rendered.chars();
    while chars.by_ref().any(|c| c == '"') {
        let mut value = String::new();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => value.extend(chars.next().map(|c| if c == 'n' { '\n' } else { c })),
                c => value.push(c),
            }
        }
        values.push(value);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::text::labels_text;

    #[test]
    fn values_of_labels_are_read_back() {
        for values in [
            &[][..],
            &["a"],
            &["", "b"],
            &["a\"b\\c\nd,e=\"f", "\\n", "ä"],
        ] {
            let names = ["one", "two", "three"];
            assert_eq!(label_values(&labels_text(&names, values)), values);
        }
    }
}
