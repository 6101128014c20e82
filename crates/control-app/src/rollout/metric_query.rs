//! Prometheus queries for the metrics condition of a rollout.
//!
//! A server may be slow, and the scheduler must advance other rollouts: queries run in the
//! background, and the scheduler uses the latest answer.

use crate::app::App;
use crate::app::metric_answers::{CachedAnswer, MetricAnswers};
use crate::app::outbound::Outbound;
use control_domain::{MetricAnswer, MetricCondition, Rollout};
use control_sso::WebUrl;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, from_value};
use std::time::Duration;
use tokio::time::timeout;

/// Minimum time between two queries for one rollout.
const QUERY_INTERVAL: SignedDuration = SignedDuration::from_secs(10);
/// Age beyond which an answer is ignored.
const MAX_ANSWER_AGE: SignedDuration = SignedDuration::from_secs(45);
/// Maximum number of compared samples per answer.
const MAX_SAMPLES: usize = 10_000;
/// Time that a query waits for a permit, as long as a later one replaces it.
const MAX_PERMIT_WAIT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct QueryResponse {
    /// `success`, or `error`, which may come with data as well.
    status: String,
    data: Option<QueryData>,
    /// Warnings, for example that one of several stores did not answer.
    #[serde(default)]
    warnings: Vec<Value>,
}

#[derive(Deserialize)]
struct QueryData {
    #[serde(rename = "resultType")]
    kind: String,
    result: Value,
}

#[derive(Deserialize)]
struct Sample {
    value: (f64, String),
}

impl App {
    /// The latest answer to a query since the rollout's batch switched. Starts another query if one
    /// is due.
    pub(crate) fn metric_answer(&self, rollout: &Rollout, now: Timestamp) -> Option<MetricAnswer> {
        let condition = rollout.condition.as_ref()?;
        let switched_at = rollout.batch.as_ref()?.switched_at?;
        let MetricAnswers(answers) = &self.metric_answers;
        let held = answers.get(&rollout.id);
        let is_due = held
            .as_ref()
            .is_none_or(|held| QUERY_INTERVAL <= now.duration_since(held.asked_at).abs());
        let answer = held.and_then(|held| held.answer);
        if is_due {
            let asked = CachedAnswer {
                asked_at: now,
                answer: answer.clone(),
            };
            answers.insert(rollout.id, asked);
            self.ask_metric(rollout, condition.clone(), now);
        }
        let (at, answer) = answer?;
        let is_new = switched_at <= at && is_recent(at, now);
        is_new.then_some(answer)
    }

    fn ask_metric(&self, rollout: &Rollout, condition: MetricCondition, now: Timestamp) {
        let (id, org) = (rollout.id, rollout.tenant.org.0);
        let outbound = self.outbound().cloned();
        let MetricAnswers(answers) = self.metric_answers.clone();
        let permits = self.metric_queries.clone();
        tokio::spawn(async move {
            let Ok(permit) = timeout(MAX_PERMIT_WAIT, permits.acquire(org, 1)).await else {
                return;
            };
            let answer = match outbound {
                Ok(outbound) => ask(&outbound, &condition).await,
                Err(error) => MetricAnswer::Failed(error.to_string()),
            };
            drop(permit);
            // Keeps the time of a query that started meanwhile, and a newer answer. Times far in
            // the future are of a clock that was set back since.
            let held = answers.get(&id);
            let is_later = |at: Timestamp| now < at && is_recent(now, at);
            let asked_at = held.as_ref().map(|held| held.asked_at);
            let asked_at = asked_at.filter(|at| is_later(*at)).unwrap_or(now);
            let newest = held
                .and_then(|held| held.answer)
                .filter(|(at, _)| is_later(*at));
            let answer = Some(newest.unwrap_or((now, answer)));
            answers.insert(id, CachedAnswer { asked_at, answer });
        });
    }
}

/// True if an answer of the time `at` may be judged at `now`; false for a future one.
fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.duration_since(at) <= MAX_ANSWER_AGE
}

async fn ask(outbound: &Outbound, condition: &MetricCondition) -> MetricAnswer {
    let url = WebUrl::parse(&condition.url);
    let url = url.and_then(|url| url.below("api/v1/query", &[("query", &condition.query)]));
    let Some(url) = url else {
        return MetricAnswer::Failed("the address is not a URL".to_owned());
    };
    match outbound.get(&url, None).await {
        Ok(answer) => read(&answer.body),
        Err(error) => MetricAnswer::Failed(error.to_string()),
    }
}

fn read(body: &[u8]) -> MetricAnswer {
    let failed = |why: &str| MetricAnswer::Failed(why.to_owned());
    let not_prometheus = "the answer is not that of Prometheus' HTTP API";
    let Ok(response) = serde_json::from_slice::<QueryResponse>(body) else {
        return failed(not_prometheus);
    };
    if response.status != "success" {
        return failed("the status in the answer is not `success`");
    }
    if !response.warnings.is_empty() {
        return failed("the answer has warnings, so that data may be missing");
    }
    let Some(QueryData { kind, result }) = response.data else {
        return failed(not_prometheus);
    };
    let values: Option<Vec<f64>> = match kind.as_str() {
        "scalar" => from_value(result)
            .ok()
            .and_then(|(_, value): (f64, String)| Some(vec![value.parse().ok()?])),
        "vector" => from_value(result)
            .ok()
            .and_then(|samples: Vec<Sample>| values(&samples)),
        _ => return failed("the query gives neither a number nor a vector"),
    };
    values.map_or_else(
        || failed("the answer has too many samples, or one without a value"),
        MetricAnswer::Values,
    )
}

fn values(samples: &[Sample]) -> Option<Vec<f64>> {
    if MAX_SAMPLES < samples.len() {
        return None;
    }
    let values = samples.iter().map(|sample| sample.value.1.parse().ok());
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    Some(extremes(&values))
}

/// The least and the greatest of `values`, by which all are judged; not a number, if one is not.
fn extremes(values: &[f64]) -> Vec<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return vec![f64::NAN];
    }
    let least = values.iter().copied().reduce(f64::min);
    let greatest = values.iter().copied().reduce(f64::max);
    least.into_iter().chain(greatest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_judged_by_its_extremes() {
        assert!(extremes(&[]).is_empty());
        assert_eq!(extremes(&[2.0]), [2.0, 2.0]);
        assert_eq!(extremes(&[3.0, 1.0, 2.0]), [1.0, 3.0]);
        assert!(extremes(&[3.0, f64::NAN, 2.0])[0].is_nan());
    }

    #[test]
    fn an_answer_from_the_future_is_not_recent() {
        let now = Timestamp::UNIX_EPOCH;
        let after = |secs| now + SignedDuration::from_secs(secs);
        for (secs, expected) in [(-46, false), (-45, true), (0, true), (1, false)] {
            assert_eq!(is_recent(after(secs), now), expected, "{secs}");
        }
    }

    #[test]
    fn numbers_and_vectors_are_read_and_nothing_else() {
        let vector = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"job":"a"},"value":[1700000000.1,"0.5"]},
            {"metric":{"job":"b"},"value":[1700000000.1,"+Inf"]}]}}"#;
        let expected = MetricAnswer::Values(vec![0.5, f64::INFINITY]);
        assert_eq!(read(vector.as_bytes()), expected);
        let scalar =
            r#"{"status":"success","data":{"resultType":"scalar","result":[1700000000,"3"]}}"#;
        assert_eq!(read(scalar.as_bytes()), MetricAnswer::Values(vec![3.0]));
        for other in [
            r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#,
            r#"{"status":"success","data":{"resultType":"string","result":[1,"a"]}}"#,
            r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
            r#"{"status":"error","error":"boom","data":{"resultType":"scalar","result":[1,"3"]}}"#,
            r#"{"status":"success","warnings":["partial response: store down"],
                "data":{"resultType":"scalar","result":[1,"3"]}}"#,
            r#"{"data":{"resultType":"scalar","result":[1,"3"]}}"#,
            "<html>",
        ] {
            let answer = read(other.as_bytes());
            assert!(
                matches!(answer, MetricAnswer::Failed(_)),
                "{other}: {answer:?}"
            );
        }
    }
}
