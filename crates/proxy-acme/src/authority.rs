//! HTTP requests to an authority, with limits on its responses.

use crate::address_rule::{AddressRule, FilteredResolver, check_literal};
use crate::error::AcmeError;
use crate::settings::AcmeSettings;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use proxy_tls::{ClientTls, ClientTlsSettings, PlatformRoots};
use reqwest::Client;
use reqwest::redirect::Policy;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const CONNECT_TIME: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Wait requested by the authority's last error, in seconds; 0 without one.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryAfter(Arc<AtomicU64>);

/// HTTP client for one authority.
pub(crate) struct AuthorityClient {
    client: Client,
    user_agent: HeaderValue,
    retry_after: RetryAfter,
    rule: Option<Arc<dyn AddressRule>>,
}

/// Settings to reach an authority.
#[derive(Clone)]
pub struct AuthorityAccess {
    /// URL of the authority's directory.
    pub directory: String,
    /// PEM file with root certificates for the authority's server; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Value of `User-Agent` in requests.
    pub user_agent: String,
    /// Rule for addresses; `None` permits all.
    pub rule: Option<Arc<dyn AddressRule>>,
}

impl fmt::Debug for AuthorityAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthorityAccess({})", self.directory)
    }
}

impl From<&AcmeSettings> for AuthorityAccess {
    fn from(settings: &AcmeSettings) -> Self {
        Self {
            directory: settings.directory.clone(),
            ca_file: settings.directory_ca_file.clone(),
            user_agent: settings.user_agent.clone(),
            rule: None,
        }
    }
}

impl RetryAfter {
    /// Returns the wait, and resets it.
    pub(crate) fn take(&self) -> Option<Duration> {
        let seconds = self.0.swap(0, Ordering::Relaxed);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }
}

impl AuthorityClient {
    /// Creates a client that trusts the root certificates of `access`. Blocking.
    pub(crate) fn new(access: AuthorityAccess, retry_after: RetryAfter) -> Result<Self, AcmeError> {
        let AuthorityAccess {
            directory: _, // The account has it.
            ca_file,
            user_agent,
            rule,
        } = access;
        let tls = ClientTlsSettings::http1(ca_file);
        let tls = ClientTls::load(tls, &PlatformRoots::new()).map_err(|faults| {
            let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
            AcmeError::BadRoots(texts.join("; "))
        })?;
        let client = Client::builder()
            .tls_backend_preconfigured((*tls.config()).clone())
            .redirect(Policy::none())
            .no_proxy()
            .http1_only()
            .https_only(true)
            .connect_timeout(CONNECT_TIME)
            .timeout(RESPONSE_TIMEOUT);
        let client = match &rule {
            Some(rule) => client.dns_resolver(Arc::new(FilteredResolver::new(Arc::clone(rule)))),
            None => client,
        };
        let client = client.build();
        let client = client.map_err(|error| AcmeError::Unreachable(error.to_string()))?;
        let user_agent = HeaderValue::try_from(&user_agent);
        Ok(Self {
            client,
            user_agent: user_agent.unwrap_or(HeaderValue::from_static("proxy-acme")),
            retry_after,
            rule,
        })
    }
}

impl HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.client.clone();
        let user_agent = self.user_agent.clone();
        let retry_after = self.retry_after.clone();
        let rule = self.rule.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if let Some(rule) = rule {
                check_literal(&*rule, &parts.uri).map_err(|error| Error::Other(Box::new(error)))?;
            }
            parts.headers.insert(USER_AGENT, user_agent);
            let Ok(body) = body.collect().await;
            let body = body.to_bytes();
            let request = client.request(parts.method, parts.uri.to_string());
            let sent = request.headers(parts.headers).body(body).send().await;
            let response = sent.map_err(|error| Error::Other(Box::new(error)))?;
            read(response, &retry_after).await
        })
    }
}

/// Reads a complete response of limited size.
async fn read(
    mut response: reqwest::Response,
    retry_after: &RetryAfter,
) -> Result<BytesResponse, Error> {
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|error| Error::Other(Box::new(error)))?;
        let Some(chunk) = chunk else { break };
        if MAX_BODY_BYTES < bytes.len() + chunk.len() {
            return Err("a response of at most 1 MiB".into());
        }
        bytes.extend_from_slice(&chunk);
    }
    let (status, headers) = (response.status(), response.headers());
    if status.is_client_error() || status.is_server_error() {
        let asked = headers.get(RETRY_AFTER);
        let asked = asked.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        retry_after.0.store(asked.unwrap_or(0), Ordering::Relaxed);
        let kind = headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|value| value.to_str().ok());
        if !kind.is_some_and(|kind| kind.contains("json")) {
            let message = format!("status {status} without an explanation");
            return Err(Error::Other(message.into()));
        }
    }
    let mut answer = Response::new(());
    *answer.status_mut() = status;
    headers.clone_into(answer.headers_mut());
    let (parts, ()) = answer.into_parts();
    Ok(BytesResponse {
        parts,
        body: Box::new(Bytes::from(bytes)),
    })
}
