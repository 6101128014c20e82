//! Requests to a collector, with bounds on its answers.

use crate::proto::{ExportMetricsServiceResponse, ExportTraceServiceResponse};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use prost::Message;
use proxy_tls::{ClientTls, ClientTlsSettings, PlatformRoots};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of a response that are read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Longest message of a collector in the log, in bytes.
const MAX_MESSAGE_BYTES: usize = 256;
/// Time for which an unused connection is kept.
const IDLE_TIME: Duration = Duration::from_secs(90);

/// Settings of requests to a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorSettings {
    /// `http://host:port` or `https://host:port`, perhaps with a path, without a slash at the end.
    pub base_url: String,
    /// Fields of each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// PEM file of trusted roots; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// True if the URL has the scheme `https`.
    pub is_tls: bool,
    /// Maximum time of a request, with its connection and its response.
    pub timeout: Duration,
    /// True if requests are compressed.
    pub gzip: bool,
}

/// A collector, with the connection that is kept for further requests.
#[derive(Clone, Debug)]
pub struct Collector {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: CollectorSettings,
    client: Client,
}

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
}

/// The reason why a collector cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The roots cannot be used.
    #[error("{}", .0.join("; "))]
    BadRoots(Vec<String>),
    /// The client cannot be made.
    #[error("{0}")]
    Client(String),
}

/// The result of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportResult {
    /// The collector accepted the data, except for `rejected` spans or points.
    Accepted {
        /// Number of rejected spans or points.
        rejected: u64,
        /// The collector's message; often empty.
        message: String,
    },
    /// The data may be sent again.
    Unavailable {
        /// The pause that the collector requests.
        retry_after: Option<Duration>,
        /// Cause of the last failed attempt.
        cause: String,
    },
    /// The data must not be sent again.
    Refused {
        /// The cause.
        cause: String,
    },
}

impl Signal {
    /// The word in labels and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }
}

/// Equal if requests are the same. The contents of a file of roots may have changed, so that a collector with one
/// equals only itself.
impl PartialEq for Collector {
    fn eq(&self, other: &Self) -> bool {
        let (own, theirs) = (&self.inner.settings, &other.inner.settings);
        Arc::ptr_eq(&self.inner, &other.inner) || own.ca_file.is_none() && own == theirs
    }
}

impl Collector {
    /// A collector without a connection. Reads the roots, which blocks.
    ///
    /// # Errors
    /// [`CollectorError::BadRoots`] if the roots cannot be read.
    pub fn new(settings: CollectorSettings) -> Result<Self, CollectorError> {
        let tls = ClientTlsSettings {
            // Without TLS no certificate is accepted at all, and no roots are read.
            verify: settings.is_tls,
            ..ClientTlsSettings::http1(settings.ca_file.clone())
        };
        let tls = ClientTls::load(tls, &PlatformRoots::new()).map_err(|faults| {
            CollectorError::BadRoots(faults.iter().map(ToString::to_string).collect())
        })?;
        let client = Client::builder()
            .tls_backend_preconfigured((*tls.config()).clone())
            .redirect(Policy::none())
            .no_proxy()
            .http1_only()
            .https_only(settings.is_tls)
            .pool_max_idle_per_host(2)
            .pool_idle_timeout(IDLE_TIME)
            .timeout(settings.timeout)
            .build();
        let client = client.map_err(|error| CollectorError::Client(causes(&error)))?;
        Ok(Self {
            inner: Arc::new(Inner { settings, client }),
        })
    }

    /// Sends the body of an export once.
    pub async fn export(&self, signal: Signal, body: impl Into<Bytes>) -> ExportResult {
        let Inner { settings, client } = &*self.inner;
        let mut headers: HeaderMap = settings.headers.iter().cloned().collect();
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        headers.insert(CONTENT_TYPE, protobuf);
        let mut body: Bytes = body.into();
        if settings.gzip
            && let Some(compressed) = gzip(&body)
        {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            body = compressed;
        }
        let url = format!("{}{}", settings.base_url, signal.path());
        let sent = client.post(url).headers(headers).body(body).send().await;
        match sent {
            Ok(response) => result(signal, response).await,
            Err(error) => ExportResult::Unavailable {
                retry_after: None,
                cause: causes(&error.without_url()),
            },
        }
    }
}

async fn result(signal: Signal, response: Response) -> ExportResult {
    let status = response.status();
    if status.is_success() {
        // The data has arrived, even if the rest of the answer is invalid.
        let body = read(response).await;
        let (rejected, message) = partial_success(signal, &body.unwrap_or_default());
        return ExportResult::Accepted { rejected, message };
    }
    let cause = format!("status {status}");
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => ExportResult::Unavailable {
            retry_after: retry_after(response.headers()),
            cause,
        },
        _ => ExportResult::Refused { cause },
    }
}

/// The whole body; `None` if it is too long or breaks off.
async fn read(mut response: Response) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if MAX_RESPONSE_BYTES < bytes.len() + chunk.len() {
            return None;
        }
        bytes.extend_from_slice(&chunk);
    }
    Some(bytes)
}

/// Number of rejected spans or points, and the collector's message, in the body of a success.
fn partial_success(signal: Signal, body: &[u8]) -> (u64, String) {
    let partial = match signal {
        Signal::Traces => ExportTraceServiceResponse::decode(body)
            .ok()
            .and_then(|response| response.partial_success)
            .map(|partial| (partial.rejected_spans, partial.error_message)),
        Signal::Metrics => ExportMetricsServiceResponse::decode(body)
            .ok()
            .and_then(|response| response.partial_success)
            .map(|partial| (partial.rejected_data_points, partial.error_message)),
    };
    let (rejected, message) = partial.unwrap_or_default();
    let message = message.get(..message.floor_char_boundary(MAX_MESSAGE_BYTES));
    let message = message.unwrap_or_default().to_owned();
    (u64::try_from(rejected).unwrap_or(0), message)
}

/// `Retry-After` in seconds. A date is ignored: the times of the usual back-off are close to it.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(value.trim().parse().ok()?))
}

/// `None` if the body cannot be compressed.
fn gzip(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 2), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// An error with its sources.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        if write!(text, ": {error}").is_err() {
            break;
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{ExportMetricsPartialSuccess, ExportTracePartialSuccess};

    #[test]
    fn rejected_data_is_counted_and_other_answers_are_none() {
        let traces = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans: 3,
                error_message: "ä".repeat(1_000),
            }),
        };
        let (rejected, message) = partial_success(Signal::Traces, &traces.encode_to_vec());
        assert_eq!((rejected, message.len()), (3, MAX_MESSAGE_BYTES));
        let metrics = ExportMetricsServiceResponse {
            partial_success: Some(ExportMetricsPartialSuccess {
                rejected_data_points: -1,
                error_message: "warning".to_owned(),
            }),
        };
        let partial = partial_success(Signal::Metrics, &metrics.encode_to_vec());
        assert_eq!(partial, (0, "warning".to_owned()));
        for body in [&b""[..], b"{}", b"<html>"] {
            assert_eq!(partial_success(Signal::Traces, body), (0, String::new()));
        }
    }

    #[test]
    fn a_pause_is_a_number_of_seconds() {
        let pause = |value| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value)]));
        assert_eq!(
            pause(HeaderValue::from_static(" 7 ")),
            Some(Duration::from_secs(7))
        );
        let date = HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT");
        assert_eq!(pause(date), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
