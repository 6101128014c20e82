//! Request bodies: limits on size and time, and parsing.

mod wrong_fields;

use crate::response::problem::Problem;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use control_app::AdmittedBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, IgnoredAny};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Time limit for a body, in addition to a second per [`BYTES_A_SECOND`] of the maximum size.
const BODY_GRACE: Duration = Duration::from_secs(30);
const BYTES_A_SECOND: u64 = 128 * 1024;
/// Minimum rate of a body after [`BODY_GRACE`]. A slower body is aborted, because it may hold a
/// permit that another upload needs.
const MIN_BYTES_A_SECOND: u64 = 16 * 1024;
/// Grace period of an upload while an organization without a permit waits.
const WANTED_GRACE: Duration = Duration::from_secs(5);
const WANTED_BYTES_A_SECOND: u64 = 512 * 1024;
/// Interval at which the reader of a stalled body checks whether an organization waits.
const PRESSURE_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum size of the route's body, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimit(pub(crate) usize);

impl BodyLimit {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// 413 if the body is too large, before it is sent if the client waits for `100 Continue`; 408
    /// if it is too slow; 400 if it is incomplete.
    pub(crate) async fn read(self, parts: &Parts, body: Body) -> Result<Bytes, Problem> {
        let Self(limit) = self;
        let headers = &parts.headers;
        let declared = headers.get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let bytes = u64::try_from(limit).unwrap_or(u64::MAX);
        let declared = declared.filter(|declared| bytes < *declared);
        // Without `Expect` the client is already sending, and would only see a broken connection.
        if declared.is_some() && headers.contains_key(header::EXPECT) {
            return Err(Problem::too_large(declared, limit));
        }
        let time = BODY_GRACE + Duration::from_secs(bytes / BYTES_A_SECOND);
        let admitted = parts.extensions.get::<AdmittedBody>();
        match timeout(time, collect(Limited::new(body, limit), admitted)).await {
            Ok(Ok(Ok(read))) => Ok(read),
            Ok(Ok(Err(grace))) => Err(Problem::too_slow(grace)),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                Err(Problem::too_large(declared, limit))
            }
            Ok(Err(_)) => Err(Problem::unreadable("the body was broken off")),
            Err(_) => Err(Problem::too_slow(time)),
        }
    }

    /// Reads the body and discards it. A client without `Expect` is already sending, and would see
    /// a broken connection instead of the response.
    pub(crate) async fn discard(self, headers: &HeaderMap, body: Body) {
        if headers.contains_key(header::EXPECT) {
            return;
        }
        let Self(limit) = self;
        let mut body = Limited::new(body, limit);
        let read = async { while let Some(Ok(_)) = body.frame().await {} };
        // On a timeout the response is sent anyway.
        timeout(BODY_GRACE, read).await.unwrap_or_default();
    }
}

/// The bytes of a body, or the time of grace after which it is slower than [`MIN_BYTES_A_SECOND`], or
/// [`WANTED_BYTES_A_SECOND`] under pressure.
#[expect(
    clippy::disallowed_methods,
    reason = "the rate of a body is measured where it is read"
)]
async fn collect(
    mut body: Limited<Body>,
    admitted: Option<&AdmittedBody>,
) -> Result<Result<Bytes, Duration>, axum::BoxError> {
    let begin = Instant::now();
    let capacity = body.size_hint().exact().unwrap_or_default();
    let mut read = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
    loop {
        let (grace, rate) = if admitted.is_some_and(AdmittedBody::is_contended) {
            (WANTED_GRACE, WANTED_BYTES_A_SECOND)
        } else {
            (BODY_GRACE, MIN_BYTES_A_SECOND)
        };
        let received = u64::try_from(read.len()).unwrap_or(u64::MAX);
        let due = begin + grace + Duration::from_secs(received / rate);
        let next_check = Instant::now() + PRESSURE_INTERVAL;
        let is_watched = admitted.is_some() && next_check < due;
        match timeout_at(if is_watched { next_check } else { due }, body.frame()).await {
            Ok(Some(frame)) => {
                let data = frame?.into_data().unwrap_or_default();
                if read.is_empty() && body.is_end_stream() {
                    return Ok(Ok(data));
                }
                read.extend_from_slice(&data);
            }
            Ok(None) => return Ok(Ok(read.into())),
            Err(_) if is_watched => {}
            Err(_) => return Ok(Err(grace)),
        }
    }
}

/// Parses the value of a JSON text.
///
/// # Errors
///
/// 400 if it is not JSON, 422 with the fields that are wrong.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|_| Problem::unreadable("the body is not JSON: it is not UTF-8"))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = wrong_fields::read(&mut deserializer);
    match (value, deserializer.end()) {
        (Ok(value), Ok(())) => Ok(value),
        (Ok(_), Err(error)) => Err(not_json(&error)),
        (Err(error), _) => {
            // The library's error classes do not distinguish all texts that are not JSON.
            let checked = serde_json::from_str::<IgnoredAny>(text);
            checked.map_err(|error| not_json(&error))?;
            Err(Problem::invalid_fields(
                wrong_fields::all_wrong_fields::<T>(text, error),
            ))
        }
    }
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::unreadable(&format!("the body is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderValue, StatusCode};
    use axum::response::IntoResponse;
    use control_wire::HeartbeatRequest;
    use futures_util::stream::{pending, unfold};
    use serde_json::Value;
    use std::convert::Infallible;

    fn head(headers: HeaderMap) -> Parts {
        let mut parts = axum::http::Request::new(()).into_parts().0;
        parts.headers = headers;
        parts
    }

    fn refusal(text: &str) -> (StatusCode, Value) {
        let problem = decode::<HeartbeatRequest>(text.as_bytes()).unwrap_err();
        let body = serde_json::to_value(problem.details()).unwrap();
        (problem.into_response().status(), body[0]["field"].clone())
    }

    #[test]
    fn every_field_of_a_wrong_shape_is_named() {
        let latency = |count: usize| {
            let zeros = vec!["0"; count].join(",");
            let route = format!("{{\"requests\":1,\"errors\":0,\"latency\":[{zeros}]}}");
            format!(
                "{{\"health\":{{\"cpu_percent\":1}},\"traffic\":{{\"routes\":{{\"r\":{route}}}}}}}"
            )
        };
        for (text, field) in [
            ("[]", "body"),
            ("[{\"cpu_percent\":1}]", "body"),
            ("null", "body"),
            ("{\"health\":[1]}", "health"),
            ("{\"health\":{\"cpu_percent\":1e999}}", "health.cpu_percent"),
            ("{\"health\":{\"cpu_percent\":1},\"status\":[]}", "status"),
            (
                "{\"health\":{\"cpu_percent\":1},\"status\":{\"verdict\":null,\"order\":-1}}",
                "status.order",
            ),
            (
                "{\"health\":{\"cpu_percent\":1},\"status\":{\"verdict\":1}}",
                "status.verdict",
            ),
            (&latency(11), "traffic.routes.r.latency"),
            (&latency(13), "traffic.routes.r.latency"),
        ] {
            let (status, named) = refusal(text);
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
            assert_eq!(named, field, "{text}");
        }
        assert!(decode::<HeartbeatRequest>(latency(12).as_bytes()).is_ok());
    }

    #[test]
    fn invalid_json_is_reported_with_its_place() {
        for text in ["", "{", "{\"health\":{\"cpu_percent\":1}} x", "\u{feff}{}"] {
            assert_eq!(refusal(text).0, StatusCode::BAD_REQUEST, "{text}");
        }
        let problem = decode::<HeartbeatRequest>(b"{\n x").unwrap_err();
        assert!(problem.message().contains("line 2 column 2"), "{problem:?}");
        assert!(decode::<HeartbeatRequest>(b"{\"version\":\"\xff\"}").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_arrives_times_out() {
        let body = Body::from_stream(pending::<Result<Bytes, Infallible>>());
        let read = BodyLimit(1024).read(&head(HeaderMap::new()), body).await;
        let answer = read.unwrap_err().into_response();
        assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickling_body_is_aborted_long_before_its_maximum_time() {
        let drop_by_drop = |bytes: usize| {
            Body::from_stream(unfold(0, move |sent| async move {
                let second = Duration::from_secs(1);
                timeout(second, std::future::pending::<()>())
                    .await
                    .unwrap_err();
                let piece = Bytes::from(vec![b' '; bytes]);
                (sent < 100).then_some((Ok::<_, Infallible>(piece), sent + 1))
            }))
        };
        let limit = BodyLimit(32 * 1024 * 1024);
        let none = head(HeaderMap::new());
        let read = timeout(BODY_GRACE * 2, limit.read(&none, drop_by_drop(1))).await;
        let answer = read.unwrap().unwrap_err().into_response();
        assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
        let steady = drop_by_drop(16 * 1024);
        let read = limit.read(&none, steady).await.unwrap();
        assert_eq!(read.len(), 100 * 16 * 1024);
    }

    #[tokio::test]
    async fn a_body_with_a_too_large_announced_length_is_not_read() {
        let headers = HeaderMap::from_iter([
            (header::CONTENT_LENGTH, HeaderValue::from(1025)),
            (header::EXPECT, HeaderValue::from_static("100-continue")),
        ]);
        let body = Body::from_stream(pending::<Result<Bytes, Infallible>>());
        let read = BodyLimit(1024).read(&head(headers), body).await;
        let answer = read.unwrap_err().into_response();
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let none = head(HeaderMap::new());
        let read = BodyLimit(4).read(&none, Body::from("12345")).await;
        let problem = read.unwrap_err();
        let expected = "Limit exceeded: body_size - Current value 5 exceeds limit 4";
        assert_eq!(problem.message(), expected);
        let answer = problem.into_response();
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
