//! HTTP client of `controld ctl`, over TCP or TLS.

use crate::ctl::error::{CtlError, Outage};
use crate::ctl::settings::Settings;
use bytes::{Bytes, BytesMut};
use control_wire::ErrorCode;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use proxy_tls::{ClientTls, ClientTlsSettings, PlatformRoots};
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use uuid::Uuid;

/// Maximum time from the start of a request to the head of its response, without its upload.
const DEADLINE: Duration = Duration::from_mins(1);
/// Minimum rate of an upload, which extends [`DEADLINE`].
const UPLOAD_BYTES_PER_SEC: usize = 64 * 1024;
/// Maximum time between two parts of a response.
const PROGRESS: Duration = Duration::from_mins(1);
/// Maximum number of attempts of a request.
const ATTEMPTS: u32 = 4;
/// Pause before another attempt if the response sets none.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum `Retry-After` to wait for; a longer one is left to the caller.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Client for one control plane, with one credential.
pub(crate) struct Client {
    base: Uri,
    authority: String,
    key: Option<String>,
    tls: Option<ClientTls>,
    /// Whether the server has answered a request. Before, a refused connection is rather a wrong URL
    /// than an outage.
    is_reached: AtomicBool,
}

/// A request, without the header fields that all requests have.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) body: Option<(String, Bytes)>,
    pub(crate) if_match: Option<String>,
    pub(crate) repetition: Repetition,
}

/// Repetition of a request after its response was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// The request changes nothing.
    Harmless,
    /// All attempts have this `Idempotency-Key`, so that the request is executed only once.
    Keyed(String),
    /// The server ignores an `Idempotency-Key` here.
    Forbidden,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        let repetition = if method.is_safe() {
            Repetition::Harmless
        } else {
            Repetition::Keyed(Uuid::new_v4().to_string())
        };
        Self {
            repetition,
            method,
            path: path.into(),
            body: None,
            if_match: None,
        }
    }

    pub(crate) fn json(mut self, value: &Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        self.body = Some(("application/json".to_owned(), bytes));
        self
    }
}

impl Client {
    /// Creates a client for the server in `settings`.
    pub(crate) fn new(settings: &Settings) -> Result<Self, CtlError> {
        let url = settings.url.trim_end_matches('/');
        let wrong = |cause: &str| CtlError::usage(format!("--url {url}: {cause}"));
        let base: Uri = url.parse().map_err(|_| wrong("is not a URL"))?;
        let is_tls = match base.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(wrong("begins neither with https:// nor with http://")),
        };
        let host = base.host().unwrap_or_default();
        if !is_tls && !is_loopback(host) && !settings.allow_plain_http {
            let remedy = "the network could read the key: use https://, or --allow-plain-http";
            return Err(wrong(remedy));
        }
        let authority = base.authority().ok_or_else(|| wrong("names no host"))?;
        let authority = authority.to_string();
        let tls = is_tls.then(|| tls(settings)).transpose()?;
        Ok(Self {
            base,
            authority,
            key: settings.key.clone(),
            tls,
            is_reached: AtomicBool::new(false),
        })
    }

    /// Sends the request; repeats it after `Retry-After`, and after an outage. Returns only
    /// successful responses.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response<Incoming>, CtlError> {
        let mut attempt = 1;
        let mut was_lost = false;
        loop {
            let (error, pause) = match self.attempt(call).await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => {
                    let (status, headers) = (response.status(), response.headers());
                    let pause = pause(call, status, headers);
                    let body = collect(response).await?;
                    let error = CtlError::refused(status.as_u16(), &body);
                    // The lost attempt may be in progress.
                    let pause = pause.or((was_lost && is_repeated(&error)).then_some(PAUSE));
                    (error, pause)
                }
                Err(error) => {
                    was_lost = true;
                    let pause = self.may_repeat(call, &error).then_some(PAUSE);
                    (error, pause)
                }
            };
            let Some(pause) = pause.filter(|_| attempt < ATTEMPTS) else {
                return Err(error);
            };
            attempt += 1;
            sleep(pause).await;
        }
    }

    /// Returns the JSON body of the response; null if it is empty.
    pub(crate) async fn json(&self, call: &Call) -> Result<Value, CtlError> {
        let mut read = collect(self.send(call).await?).await;
        if call.repetition != Repetition::Forbidden && read.is_err() {
            read = collect(self.send(call).await?).await;
        }
        let bytes = read?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|error| CtlError::failed("the answer", error))
    }

    /// Returns true if another attempt may succeed, and cannot execute the request twice.
    fn may_repeat(&self, call: &Call, error: &CtlError) -> bool {
        let CtlError::Unanswered { outage, .. } = error else {
            return false;
        };
        match outage {
            Outage::Unconnected => self.is_reached.load(Ordering::Relaxed),
            Outage::Broken => call.repetition != Repetition::Forbidden,
            Outage::Late => false,
        }
    }

    async fn attempt(&self, call: &Call) -> Result<Response<Incoming>, CtlError> {
        let request = self.request(call)?;
        let upload_bytes = call.body.as_ref().map_or(0, |(_, body)| body.len());
        let upload_secs = u64::try_from(upload_bytes / UPLOAD_BYTES_PER_SEC).unwrap_or(u64::MAX);
        let deadline = DEADLINE.saturating_add(Duration::from_secs(upload_secs));
        let answered = timeout(deadline, self.connect_and_send(request)).await;
        let cause = format!("no answer in {} s", deadline.as_secs());
        let response = answered.map_err(|_| self.unanswered(Outage::Late, cause))??;
        self.is_reached.store(true, Ordering::Relaxed);
        Ok(response)
    }

    fn unanswered(&self, outage: Outage, cause: String) -> CtlError {
        CtlError::Unanswered {
            server: self.authority.clone(),
            cause,
            outage,
        }
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, CtlError> {
        let prefix = self.base.path().trim_end_matches('/');
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{prefix}{}", call.path))
            .header(HOST, &self.authority)
            .header(
                USER_AGENT,
                concat!("controld-ctl/", env!("CARGO_PKG_VERSION")),
            );
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        if let Repetition::Keyed(key) = &call.repetition {
            request = request.header("idempotency-key", key);
        }
        if let Some(version) = &call.if_match {
            request = request.header("if-match", version);
        }
        let mut bytes = Bytes::new();
        if let Some((kind, body)) = &call.body {
            request = request.header(CONTENT_TYPE, kind);
            bytes = body.clone();
        }
        let request = request.body(Full::new(bytes));
        request.map_err(|_| CtlError::usage("the key or the URL has characters that HTTP forbids"))
    }

    async fn connect_and_send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, CtlError> {
        let unreachable = |error: io::Error| {
            let remedy = "does a control plane listen there? --url or CONTROLD_URL names another";
            self.unanswered(Outage::Unconnected, format!("{error}; {remedy}"))
        };
        let unsecured = |error: io::Error| {
            let remedy = "is it the right URL, and --ca-file the right one, for its certificate?";
            let cause = format!("TLS: {error}; {remedy}");
            // A certificate that is not trusted is no outage.
            if error.kind() == ErrorKind::InvalidData {
                return CtlError::failed(&self.authority, cause);
            }
            self.unanswered(Outage::Unconnected, cause)
        };
        let host = self.base.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let default = if self.tls.is_some() { 443 } else { 80 };
        let port = self.base.port_u16().unwrap_or(default);
        let stream = TcpStream::connect((host, port))
            .await
            .map_err(unreachable)?;
        let Some(tls) = &self.tls else {
            return self.exchange(stream, request).await;
        };
        let name = tls.server_name(host);
        let name = name.map_err(|error| CtlError::usage(format!("--url: {error}")))?;
        let connector = TlsConnector::from(tls.config());
        let stream = connector.connect(name, stream).await.map_err(unsecured)?;
        self.exchange(stream, request).await
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, CtlError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let failed = |error: hyper::Error| self.unanswered(Outage::Broken, error.to_string());
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(failed)?;
        // The task ends with the response's body, which reports its errors.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(failed)
    }
}

/// Returns true for a loopback address or `localhost`.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().map_or_else(
        |_| host.eq_ignore_ascii_case("localhost"),
        |address| address.is_loopback(),
    )
}

/// Reads the whole body.
async fn collect(response: Response<Incoming>) -> Result<Bytes, CtlError> {
    let mut body = response.into_body();
    let mut bytes = BytesMut::new();
    while let Some(frame) = next_frame(&mut body).await? {
        if let Some(part) = frame.data_ref() {
            bytes.extend_from_slice(part);
        }
    }
    Ok(bytes.freeze())
}

/// Reads the next part of a body; `None` at its end.
///
/// # Errors
///
/// [`CtlError::Unanswered`] if the connection fails, or nothing arrives for a minute.
pub(crate) async fn next_frame(body: &mut Incoming) -> Result<Option<Frame<Bytes>>, CtlError> {
    let broken = |cause: String, outage| CtlError::Unanswered {
        server: "the answer broke off".to_owned(),
        cause,
        outage,
    };
    let frame = timeout(PROGRESS, body.frame()).await;
    let late = |_| broken("nothing arrived for 60 s".to_owned(), Outage::Late);
    let frame = frame.map_err(late)?.transpose();
    frame.map_err(|error| broken(error.to_string(), Outage::Broken))
}

/// Returns the time until the next attempt; `None` if the response is final.
fn pause(call: &Call, status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let is_final = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => false,
        // A gateway does not know whether the request was executed.
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
            call.repetition == Repetition::Forbidden
        }
        _ => true,
    };
    let named = headers.get(RETRY_AFTER);
    let named = named.and_then(|value| value.to_str().ok()?.parse().ok());
    let pause = named.map_or(PAUSE, Duration::from_secs);
    (!is_final && pause <= MAX_WAIT).then_some(pause)
}

/// Returns true if the server received an earlier attempt, and has not stored its response.
fn is_repeated(error: &CtlError) -> bool {
    let CtlError::Refused { error, .. } = error else {
        return false;
    };
    error.code == ErrorCode::IdempotencyConflict
}

fn tls(settings: &Settings) -> Result<ClientTls, CtlError> {
    let settings = ClientTlsSettings::http1(settings.ca_file.clone());
    ClientTls::load(settings, &PlatformRoots::new()).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        CtlError::usage(lines.join("\n"))
    })
}
