//! HTTP client of `controld ctl`, over TCP or TLS.

use crate::ctl::error::CtlError;
use crate::ctl::settings::Settings;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use proxy_tls::{ClientTls, ClientTlsSettings, PlatformRoots};
use serde_json::Value;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use uuid::Uuid;

/// Maximum time from the start of a request to the head of its response.
const DEADLINE: Duration = Duration::from_mins(1);
/// Maximum number of attempts if responses are 429 or 503.
const ATTEMPTS: u32 = 4;
/// Maximum `Retry-After` to wait for; a longer one is left to the caller.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Client for one control plane, with one credential.
pub(crate) struct Client {
    base: Uri,
    authority: String,
    key: Option<String>,
    tls: Option<ClientTls>,
}

/// A request, without the header fields that all requests have.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) body: Option<(String, Bytes)>,
    pub(crate) if_match: Option<String>,
    /// Whether a repetition is harmless, so that no `Idempotency-Key` is needed.
    pub(crate) changes_nothing: bool,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            changes_nothing: method.is_safe(),
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
        })
    }

    /// Sends the request, with retries after `Retry-After`. Returns only successful responses.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response<Incoming>, CtlError> {
        // All attempts have the same key, so that a request with a lost response is executed only
        // once.
        let repeated = (!call.changes_nothing).then(|| Uuid::new_v4().to_string());
        let mut attempt = 1;
        loop {
            let response = self.attempt(call, repeated.as_deref()).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let wait = wait(status, response.headers()).filter(|_| attempt < ATTEMPTS);
            let Some(wait) = wait else {
                let body = collect(response).await?;
                return Err(CtlError::refused(status.as_u16(), &body));
            };
            attempt += 1;
            sleep(wait).await;
        }
    }

    /// Returns the JSON body of the response; null if it is empty.
    pub(crate) async fn json(&self, call: &Call) -> Result<Value, CtlError> {
        let bytes = collect(self.send(call).await?).await?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|error| CtlError::failed("the answer", error))
    }

    async fn attempt(
        &self,
        call: &Call,
        repeated: Option<&str>,
    ) -> Result<Response<Incoming>, CtlError> {
        let request = self.request(call, repeated)?;
        let answered = timeout(DEADLINE, self.connect_and_send(request)).await;
        answered.map_err(|_| CtlError::failed(&self.authority, "no answer in 60 s"))?
    }

    fn request(
        &self,
        call: &Call,
        repeated: Option<&str>,
    ) -> Result<Request<Full<Bytes>>, CtlError> {
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
        if let Some(id) = repeated {
            request = request.header("idempotency-key", id);
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
        let unreachable = |error: std::io::Error| {
            let remedy = "does a control plane listen there? --url or CONTROLD_URL names another";
            CtlError::failed(&self.authority, format!("{error}; {remedy}"))
        };
        let unsecured = |error: std::io::Error| {
            let remedy = "is it the right URL, and --ca-file the right one, for its certificate?";
            CtlError::failed(&self.authority, format!("TLS: {error}; {remedy}"))
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
        let failed = |error: hyper::Error| CtlError::failed(&self.authority, error);
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
    let collected = response.into_body().collect().await;
    let collected = collected.map_err(|error| CtlError::failed("the answer broke off", error))?;
    Ok(collected.to_bytes())
}

fn wait(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let busy = status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE;
    let field = headers.get(RETRY_AFTER).filter(|_| busy);
    let named = field.and_then(|value| value.to_str().ok()?.parse().ok());
    let wait = named.map_or(Duration::from_secs(1), Duration::from_secs);
    (busy && wait <= MAX_WAIT).then_some(wait)
}

fn tls(settings: &Settings) -> Result<ClientTls, CtlError> {
    let settings = ClientTlsSettings::http1(settings.ca_file.clone());
    ClientTls::load(settings, &PlatformRoots::new()).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        CtlError::usage(lines.join("\n"))
    })
}
