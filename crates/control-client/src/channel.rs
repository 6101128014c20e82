//! HTTP requests to the control plane, with limits on its responses.

use crate::error::ClientError;
use crate::machine::Assignment;
use crate::settings::Settings;
use crate::state::Identity;
use control_bundle::MAX_ARCHIVE_BYTES;
use control_wire::{
    CertificateId, ChallengesRequest, DesiredState, EventsRequest, HeartbeatRequest,
    HeartbeatResponse, JsonWebKeySet, NodeCertificate, NodeEvent, Order, OrgId, RegisterRequest,
    RegisterResponse, TokenResponse,
};
use proxy_tls::{ClientTls, ClientTlsSettings, PlatformRoots};
use reqwest::header::{ETAG, IF_NONE_MATCH, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

const CONNECT_TIME: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const ARCHIVE_TIME: Duration = Duration::from_mins(5);
/// Maximum delay of a long poll's response after the requested time.
const POLL_GRACE: Duration = Duration::from_secs(15);
/// Longer trials end after this time: a week's deadline, one and a half soaks of a
/// week, and half a day for heartbeats.
const MAX_TRIAL: Duration = Duration::from_hours((7 + 7 + 4) * 24);
const MAX_JSON_BYTES: usize = 1024 * 1024;
const MAX_REASON_CHARS: usize = 200;
const MAX_FAILURE_BYTES: usize = 16 * 1024;
/// Maximum length of an `ETag`; a longer one is ignored.
const MAX_TAG_BYTES: usize = 256;

/// Error of a request without a usable response.
#[derive(Debug)]
pub(crate) enum ChannelError {
    /// 401: the credential is not accepted.
    Unauthorized,
    /// 403, 404, 409 or 410: a repeated request would get the same response.
    Refused(String),
    /// The control plane is unreachable, slow or overloaded, or its response is invalid.
    Failed(String, Option<Duration>),
}

/// Requests of one node to the control plane.
#[derive(Debug)]
pub(crate) struct Channel {
    client: Client,
    base: String,
    token: Option<String>,
}

/// Result of a long poll.
#[derive(Debug)]
pub(crate) enum Desired {
    Unchanged,
    Order(Assignment),
    /// There is no order, by a response with this `ETag`; empty without one.
    NoOrder(String),
}

/// Creates an HTTP client, which any number of channels can share.
pub(crate) fn client(settings: &Settings) -> Result<Client, ClientError> {
    let tls = ClientTlsSettings::http1(settings.ca_file.clone());
    let tls = ClientTls::load(tls, &PlatformRoots::new()).map_err(|faults| {
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        ClientError::Roots(texts.join("; "))
    })?;
    let client = Client::builder()
        .tls_backend_preconfigured((*tls.config()).clone())
        .redirect(Policy::none())
        .no_proxy()
        .http1_only()
        .connect_timeout(CONNECT_TIME)
        .timeout(RESPONSE_TIMEOUT)
        .user_agent(format!("proxyd/{}", settings.version))
        .build()?;
    Ok(client)
}

impl Channel {
    pub(crate) fn new(client: Client, url: &str) -> Self {
        Self {
            client,
            base: url.trim_end_matches('/').to_owned(),
            token: None,
        }
    }

    pub(crate) async fn enrol(
        &self,
        project: &str,
        token: &str,
        body: &RegisterRequest,
    ) -> Result<RegisterResponse, ChannelError> {
        let path = format!("projects/{project}/nodes/register");
        let request = self.client.post(self.url(&path)).bearer_auth(token);
        let sent = send(with_json(request, body)).await;
        read_json(sent.map_err(with_cure)?).await
    }

    pub(crate) async fn exchange_token(&mut self, own: &Identity) -> Result<(), ChannelError> {
        let path = format!("nodes/{}/token", own.node);
        let request = self.client.post(self.url(&path));
        let request = request.header("x-service-node-key", own.key.as_str());
        let response: TokenResponse = read_json(send(request).await?).await?;
        self.token = Some(response.token);
        Ok(())
    }

    /// Fetches the organization's published keys; needs no credential.
    pub(crate) async fn keys(&self, org: OrgId) -> Result<JsonWebKeySet, ChannelError> {
        let request = self.client.get(self.url(&format!("orgs/{org}/jwks.json")));
        read_json(send(request).await?).await
    }

    pub(crate) async fn heartbeat(
        &self,
        own: &Identity,
        body: &HeartbeatRequest,
    ) -> Result<HeartbeatResponse, ChannelError> {
        let request = self.request(Method::POST, own, "heartbeat");
        read_json(send(with_json(request, body)).await?).await
    }

    pub(crate) async fn send_events(
        &self,
        own: &Identity,
        events: &[NodeEvent],
    ) -> Result<(), ChannelError> {
        let request = self.request(Method::POST, own, "events");
        let events = events.to_vec();
        send(with_json(request, &EventsRequest { events })).await?;
        Ok(())
    }

    pub(crate) async fn desired(
        &self,
        own: &Identity,
        known: &str,
        wait: Duration,
    ) -> Result<Desired, ChannelError> {
        let path = format!("desired?wait={}", wait.as_secs());
        let request = self.request(Method::GET, own, &path);
        let request = match known {
            "" => request,
            known => request.header(IF_NONE_MATCH, known),
        };
        let response = send(request.timeout(wait + POLL_GRACE)).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            return Ok(Desired::Unchanged);
        }
        let tag = tag(&response);
        let state: DesiredState = read_json(response).await?;
        let DesiredState {
            order,
            certificates,
            trial,
            challenges,
        } = state;
        Ok(match order {
            Some(order) => Desired::Order(Assignment {
                order,
                renewals: certificates,
                trial: trial.map(|trial| Duration::from_secs(trial.confirm_secs).min(MAX_TRIAL)),
                challenges,
                tag,
            }),
            None => Desired::NoOrder(tag),
        })
    }

    pub(crate) async fn archive(
        &self,
        own: &Identity,
        order: &Order,
    ) -> Result<Vec<u8>, ChannelError> {
        let path = format!("bundles/{}/archive", order.bundle);
        let request = self.request(Method::GET, own, &path);
        let response = send(request.timeout(ARCHIVE_TIME)).await?;
        read(response, MAX_ARCHIVE_BYTES).await
    }

    /// The certificate; `None` if it is the one with the tag `known`.
    pub(crate) async fn certificate(
        &self,
        own: &Identity,
        id: CertificateId,
        known: Option<&str>,
    ) -> Result<Option<NodeCertificate>, ChannelError> {
        let mut request = self.request(Method::GET, own, &format!("certificates/{id}"));
        if let Some(known) = known {
            request = request.header(IF_NONE_MATCH, format!("\"{known}\""));
        }
        let response = send(request).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        read_json(response).await.map(Some)
    }

    /// Confirms that the node answers these challenges.
    pub(crate) async fn confirm_challenges(
        &self,
        own: &Identity,
        body: &ChallengesRequest,
    ) -> Result<(), ChannelError> {
        let request = self.request(Method::POST, own, "challenges");
        send(with_json(request, body)).await?;
        Ok(())
    }

    fn request(&self, method: Method, own: &Identity, path: &str) -> RequestBuilder {
        let url = self.url(&format!("nodes/{}/{path}", own.node));
        let request = self.client.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.base)
    }
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> RequestBuilder {
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    request
        .header(reqwest::header::CONTENT_TYPE, "application/json")
        .body(bytes)
}

async fn send(request: RequestBuilder) -> Result<Response, ChannelError> {
    let response = request.send().await.map_err(|error| failed(&error))?;
    let status = response.status();
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(response);
    }
    let retry_after = response.headers().get(RETRY_AFTER);
    let seconds = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    let mut why = format!("the control plane answered {status}");
    if let Some(message) = message(response).await {
        why = format!("{why}: {message}");
    }
    Err(match status.as_u16() {
        401 => ChannelError::Unauthorized,
        403 | 404 | 409 | 410 | 422 => ChannelError::Refused(why),
        _ => ChannelError::Failed(why, seconds.map(Duration::from_secs)),
    })
}

/// Message of a failed response, limited in length and without control characters; `None` without
/// one.
async fn message(response: Response) -> Option<String> {
    let bytes = read(response, MAX_FAILURE_BYTES).await.ok()?;
    let body: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let message = body.pointer("/error/message")?.as_str()?;
    let message = message.chars().filter(|char| !char.is_control());
    let message: String = message.take(MAX_REASON_CHARS).collect();
    Some(message).filter(|message| !message.is_empty())
}

/// For a refused enrolment because of the node's name, as of a cloned machine: adds which setting
/// to change.
fn with_cure(error: ChannelError) -> ChannelError {
    let ChannelError::Refused(why) = error else {
        return error;
    };
    if !why.ends_with("name is taken") {
        return ChannelError::Refused(why);
    }
    let remedy = "`control-plane { node-name \"…\" }` gives this node another name than its host's";
    ChannelError::Refused(format!("{why}; {remedy}"))
}

/// `ETag` of a response, unchanged; empty without one.
fn tag(response: &Response) -> String {
    let value = response.headers().get(ETAG);
    let text = value.and_then(|value| value.to_str().ok());
    let text = text.filter(|text| text.len() <= MAX_TAG_BYTES);
    text.unwrap_or_default().to_owned()
}

async fn read_json<T: DeserializeOwned>(response: Response) -> Result<T, ChannelError> {
    let bytes = read(response, MAX_JSON_BYTES).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        ChannelError::Failed(format!("the answer cannot be understood: {error}"), None)
    })
}

async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, ChannelError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        if most < bytes.len() + chunk.len() {
            let why = format!("the answer is larger than {most} bytes");
            return Err(ChannelError::Failed(why, None));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Innermost cause of the error; the URL contains no secret.
fn failed(error: &reqwest::Error) -> ChannelError {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let why: String = reason.to_string().chars().take(MAX_REASON_CHARS).collect();
    ChannelError::Failed(why, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// The fault after an answer with this body.
    async fn fault(body: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let head = "HTTP/1.1 409 Conflict\r\ncontent-type: application/json\r\ncontent-length: ";
        let answer = format!("{head}{}\r\n\r\n{body}", body.len());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let client = Client::builder().no_proxy().build().unwrap();
        let sent = send(client.get(format!("http://{address}/"))).await;
        server.await.unwrap();
        match sent.map_err(with_cure) {
            Err(ChannelError::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_refusal_has_the_sentence_of_the_control_plane_and_a_cure() {
        let taken = fault(r#"{"error": {"code": "CONFLICT", "message": "name is taken"}}"#).await;
        assert!(
            taken.starts_with(
                "the control plane answered 409 Conflict: name is taken; `control-plane"
            ),
            "{taken}"
        );
        let odd = fault("{\"error\": {\"message\": \"a\\u001b[2Jb\"}}").await;
        assert_eq!(odd, "the control plane answered 409 Conflict: a[2Jb");
        assert_eq!(
            fault("no JSON").await,
            "the control plane answered 409 Conflict"
        );
    }
}
