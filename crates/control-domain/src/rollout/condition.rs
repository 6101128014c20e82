//! A gate condition on an external metric: a `PromQL` query to a Prometheus server.

use crate::access::refusal::faults::Faults;
use crate::rollout::gate::{GateFailure, GateVerdict};
use serde::{Deserialize, Serialize};

const MAX_QUERY_CHARS: usize = 2_000;

/// A `PromQL` query, and the values that pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricCondition {
    /// URL of the server; `/api/v1/query` is appended.
    pub url: String,
    /// Query with a number or a vector as result; each sample of a vector must pass.
    pub query: String,
    /// Minimum value that passes.
    pub min: Option<f64>,
    /// Maximum value that passes.
    pub max: Option<f64>,
}

/// The metrics server's answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricAnswer {
    /// Value of each sample.
    Values(Vec<f64>),
    /// Reason why there is no answer.
    Failed(String),
}

/// Sound because `check` refuses NaN, the only value that differs from itself.
impl Eq for MetricCondition {}

impl MetricCondition {
    /// Records invalid fields, except the URL.
    pub(super) fn check(&self, faults: &mut Faults) {
        let Self {
            url,
            query,
            min,
            max,
        } = self;
        let has_query = url.contains(['?', '#']);
        faults.check(!has_query, "prometheus.url", "has a query or a fragment");
        let chars = query.chars().count();
        let is_text = (1..=MAX_QUERY_CHARS).contains(&chars) && !query.contains('\0');
        let reason = "is not 1 to 2000 characters";
        faults.check(is_text, "prometheus.query", reason);
        let mut limits = [min, max].into_iter().flatten();
        let is_finite = limits.all(|limit| limit.is_finite());
        let is_range = match (min, max) {
            (None, None) => false,
            (Some(min), Some(max)) => min <= max,
            (Some(_), None) | (None, Some(_)) => true,
        };
        let reason =
            "needs a `min` or a `max`, which is a number, and the first not above the second";
        faults.check(is_finite && is_range, "prometheus.max", reason);
    }

    /// Judges the values. Without an answer or a sample, there is no data, and the batch does not
    /// pass.
    pub fn judge(&self, answer: Option<&MetricAnswer>) -> GateVerdict {
        let values = match answer {
            None => {
                let why = "the metrics server has not answered since the batch switched";
                return GateVerdict::NoData(why.to_owned());
            }
            Some(MetricAnswer::Failed(why)) => {
                return GateVerdict::NoData(format!("the metrics server: {why}"));
            }
            Some(MetricAnswer::Values(values)) => values,
        };
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            let why = format!(
                "`{}` has no sample, or one that is not a number",
                self.query
            );
            return GateVerdict::NoData(why);
        }
        let passes = |value: &&f64| {
            self.min.is_none_or(|min| min <= **value) && self.max.is_none_or(|max| **value <= max)
        };
        match values.iter().find(|value| !passes(value)) {
            None => GateVerdict::Passed,
            Some(value) => GateVerdict::Failed(GateFailure::Metric(format!(
                "`{}` is {value}; {}",
                self.query,
                self.limits()
            ))),
        }
    }

    /// The range of values that pass, as the end of a sentence.
    pub fn limits(&self) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{min} to {max} pass"),
            (Some(min), None) => format!("{min} and more pass"),
            (None, Some(max)) => format!("up to {max} pass"),
            (None, None) => "no value passes".to_owned(),
        }
    }
}

impl GateVerdict {
    /// Combines two verdicts: failure outranks missing data; of two equal kinds, the first is kept.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (failed @ Self::Failed(_), _) | (_, failed @ Self::Failed(_)) => failed,
            (missing @ Self::NoData(_), _) | (_, missing @ Self::NoData(_)) => missing,
            (Self::Passed, Self::Passed) => Self::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(min: Option<f64>, max: Option<f64>) -> MetricCondition {
        MetricCondition {
            url: "https://prometheus.example.com".to_owned(),
            query: "orders_failed:ratio".to_owned(),
            min,
            max,
        }
    }

    #[test]
    fn every_sample_must_pass_and_missing_samples_are_no_data() {
        let at_most = condition(None, Some(0.01));
        let judge = |values: &[f64]| at_most.judge(Some(&MetricAnswer::Values(values.to_vec())));
        assert_eq!(judge(&[0.0, 0.01]), GateVerdict::Passed);
        let GateVerdict::Failed(failure) = judge(&[0.0, 0.5]) else {
            panic!("above the limit");
        };
        let text = "`orders_failed:ratio` is 0.5; up to 0.01 pass";
        assert_eq!(failure.to_string(), text);
        assert!(!failure.is_certain(), "figures from outside lag behind");
        for missing in [&[][..], &[f64::NAN], &[0.0, f64::NAN]] {
            assert!(matches!(judge(missing), GateVerdict::NoData(_)));
        }
        assert!(matches!(judge(&[f64::INFINITY]), GateVerdict::Failed(_)));
        assert!(matches!(at_most.judge(None), GateVerdict::NoData(_)));
        let failed = MetricAnswer::Failed("no answer within 10 seconds".to_owned());
        assert!(matches!(
            at_most.judge(Some(&failed)),
            GateVerdict::NoData(_)
        ));
    }

    #[test]
    fn a_condition_has_a_query_and_a_limit() {
        let faults = |condition: &MetricCondition| {
            let mut faults = Faults::default();
            condition.check(&mut faults);
            faults.finish(Some(())).is_err()
        };
        assert!(!faults(&condition(None, Some(1.0))));
        assert!(!faults(&condition(Some(1.0), Some(1.0))));
        for bad in [
            condition(None, None),
            condition(Some(2.0), Some(1.0)),
            condition(Some(f64::NAN), None),
            condition(None, Some(f64::INFINITY)),
        ] {
            assert!(faults(&bad), "{bad:?}");
        }
    }
}
