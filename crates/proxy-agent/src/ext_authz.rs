//! Agents that are asked by gRPC: `envoy.service.auth.v3.Authorization/Check`.

mod messages;

use crate::error::CallError;
use crate::http_answer::{HttpAnswer, limited_body_with_trailers};
use agent_protocol::{Allow, Decision, Header, HeaderEdit, RequestHeaders, is_protected};
use bytes::{BufMut, Bytes};
use http::header::{CONTENT_TYPE, HeaderMap, TE};
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use messages::{CheckRequest, CheckResponse, HeaderValueOption, HttpResponse, OkHttpResponse};
use prost::Message;
use proxy_plan::AgentEndpoint;
use std::cell::RefCell;
use std::sync::Arc;
use tokio::net::UnixStream;

const METHOD: &str = "http://localhost/envoy.service.auth.v3.Authorization/Check";
/// Bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// The status of a refusal that names none.
const FORBIDDEN: u16 = 403;

/// The connection of one worker to one agent.
#[derive(Debug)]
pub(crate) struct ExtAuthzClient {
    endpoint: Arc<AgentEndpoint>,
    connection: RefCell<Option<http2::SendRequest<Full<Bytes>>>>,
}

/// Runs the tasks of a connection on its own thread.
#[derive(Clone, Copy, Debug)]
struct LocalExecutor;

impl<F> Executor<F> for LocalExecutor
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

impl ExtAuthzClient {
    pub(crate) fn new(endpoint: Arc<AgentEndpoint>) -> Self {
        Self {
            endpoint,
            connection: RefCell::default(),
        }
    }

    /// Asks about the head of a request. One that was sent on a connection which ends under it is sent
    /// again once, on another.
    pub(crate) async fn decide(&self, head: &RequestHeaders<'_>) -> Result<Decision, CallError> {
        let message = CheckRequest::from(head);
        let known = self.connection.borrow().clone();
        if let Some(connection) = known.filter(|connection| !connection.is_closed())
            && let Ok(response) = send(connection, &message).await
        {
            return self.read(head, response).await;
        }
        let connection = self.connect().await?;
        self.connection.replace(Some(connection.clone()));
        let response = send(connection, &message).await;
        let response = response.map_err(|_| CallError::Closed)?;
        self.read(head, response).await
    }

    async fn connect(&self) -> Result<http2::SendRequest<Full<Bytes>>, CallError> {
        let stream = UnixStream::connect(&self.endpoint.socket).await;
        let stream = stream.map_err(|error| CallError::Unreachable(error.to_string()))?;
        let (sender, connection) = http2::handshake(LocalExecutor, TokioIo::new(stream))
            .await
            .map_err(|error| CallError::Unreachable(error.to_string()))?;
        tokio::task::spawn_local(async move {
            // The request that fails with it tells the cause.
            connection.await.unwrap_or_default();
        });
        Ok(sender)
    }

    async fn read(
        &self,
        head: &RequestHeaders<'_>,
        response: Response<Incoming>,
    ) -> Result<Decision, CallError> {
        let (parts, body) = response.into_parts();
        let limit = self.endpoint.max_response_bytes;
        let (body, trailers) = limited_body_with_trailers(body, limit).await?;
        check_status(&parts.headers, trailers.as_ref())?;
        let message = body.get(PREFIX_BYTES..).unwrap_or_default();
        let response = CheckResponse::decode(message);
        let response = response.map_err(|error| CallError::BadReply(error.to_string()))?;
        decision(head, response)
    }
}

async fn send(
    mut connection: http2::SendRequest<Full<Bytes>>,
    message: &CheckRequest,
) -> hyper::Result<Response<Incoming>> {
    connection.ready().await?;
    let mut body = Vec::with_capacity(PREFIX_BYTES + message.encoded_len());
    body.put_u8(0);
    body.put_u32(u32::try_from(message.encoded_len()).unwrap_or(u32::MAX));
    body.extend_from_slice(&message.encode_to_vec());
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static(METHOD);
    let headers = request.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        http::HeaderValue::from_static("application/grpc"),
    );
    headers.insert(TE, http::HeaderValue::from_static("trailers"));
    connection.send_request(request).await
}

fn check_status(headers: &HeaderMap, trailers: Option<&HeaderMap>) -> Result<(), CallError> {
    let status = trailers
        .and_then(|trailers| trailers.get("grpc-status"))
        .or_else(|| headers.get("grpc-status"));
    match status.map(http::HeaderValue::as_bytes) {
        Some(b"0") => Ok(()),
        // RESOURCE_EXHAUSTED and UNAVAILABLE.
        Some(b"8" | b"14") => Err(CallError::Overloaded(
            "the agent is not available".to_owned(),
        )),
        Some(status) => {
            let status = status.escape_ascii();
            Err(CallError::BadReply(format!("gRPC status {status}")))
        }
        None => Err(CallError::BadReply("no gRPC status".to_owned())),
    }
}

fn decision(head: &RequestHeaders<'_>, response: CheckResponse) -> Result<Decision, CallError> {
    let CheckResponse {
        status,
        http_response,
    } = response;
    let status = status.ok_or_else(|| CallError::BadReply("no status".to_owned()))?;
    match (status.code, http_response) {
        (0, Some(HttpResponse::Ok(response))) => Ok(Decision::Allow(allow(head, response)?)),
        (0, None) => Ok(Decision::Allow(Allow::default())),
        (0, Some(HttpResponse::Denied(_))) => {
            Err(CallError::BadReply("an allowance with a denial".to_owned()))
        }
        (_, Some(HttpResponse::Denied(denied))) => {
            let named = denied.status.map(|status| status.code);
            let named = named.and_then(|code| u16::try_from(code).ok());
            let answer = HttpAnswer {
                status: named.filter(|code| *code != 0).unwrap_or(FORBIDDEN),
                headers: denied.headers.into_iter().filter_map(field).collect(),
                body: denied.body.into_bytes(),
            };
            answer.into_decision()
        }
        (_, Some(HttpResponse::Ok(_)) | None) => {
            let answer = HttpAnswer {
                status: FORBIDDEN,
                headers: Vec::new(),
                body: Vec::new(),
            };
            answer.into_decision()
        }
    }
}

/// Fields that no agent may change are left as they are, as Envoy does.
fn allow(head: &RequestHeaders<'_>, response: OkHttpResponse) -> Result<Allow, CallError> {
    let OkHttpResponse {
        headers,
        headers_to_remove,
        response_headers_to_add,
    } = response;
    let removed = headers_to_remove.into_iter();
    let removed = removed.filter(|name| !is_protected(&name.to_ascii_lowercase()));
    let removed = removed.filter_map(|name| HeaderEdit::remove(name).ok());
    let set = headers
        .into_iter()
        .filter_map(|option| request_edit(head, option).transpose());
    let set: Result<Vec<_>, _> = set.collect();
    let of_response = response_headers_to_add
        .into_iter()
        .filter_map(|option| response_edit(option).transpose());
    let of_response: Result<_, _> = of_response.collect();
    Ok(Allow {
        request_headers: removed.chain(set?).collect(),
        response_headers: of_response?,
        ..Allow::default()
    })
}

/// What `append_action` says, unless the older `append` is there.
#[derive(Clone, Copy)]
enum HeaderAction {
    /// Neither was given: a field of the request is replaced, one of the response is added.
    Default,
    Add,
    AddIfAbsent,
    Set,
    SetIfPresent,
}

fn action(option: &HeaderValueOption) -> Result<HeaderAction, CallError> {
    match (&option.append, option.append_action) {
        (Some(append), _) if append.value => Ok(HeaderAction::Add),
        (Some(_), _) | (None, 2) => Ok(HeaderAction::Set),
        (None, 0) => Ok(HeaderAction::Default),
        (None, 1) => Ok(HeaderAction::AddIfAbsent),
        (None, 3) => Ok(HeaderAction::SetIfPresent),
        (None, other) => Err(CallError::BadReply(format!("append_action {other}"))),
    }
}

fn request_edit(
    head: &RequestHeaders<'_>,
    option: HeaderValueOption,
) -> Result<Option<HeaderEdit>, CallError> {
    let action = action(&option)?;
    let Some(header) = field(option) else {
        return Ok(None);
    };
    let mut fields = head.headers.iter();
    let is_present = fields.any(|one| one.name() == header.name());
    Ok(match action {
        HeaderAction::Add => Some(HeaderEdit::Add(header)),
        HeaderAction::Default | HeaderAction::Set => Some(HeaderEdit::Set(header)),
        HeaderAction::AddIfAbsent => (!is_present).then_some(HeaderEdit::Add(header)),
        HeaderAction::SetIfPresent => is_present.then_some(HeaderEdit::Set(header)),
    })
}

/// The fields of the response are not known yet, so that no edit can depend on them.
fn response_edit(option: HeaderValueOption) -> Result<Option<HeaderEdit>, CallError> {
    let action = action(&option)?;
    let header = field(option);
    match action {
        HeaderAction::Default | HeaderAction::Add => Ok(header.map(HeaderEdit::Add)),
        HeaderAction::Set => Ok(header.map(HeaderEdit::Set)),
        HeaderAction::AddIfAbsent | HeaderAction::SetIfPresent => {
            let text = "ADD_IF_ABSENT or OVERWRITE_IF_EXISTS for a field of the response";
            Err(CallError::BadReply(text.to_owned()))
        }
    }
}

fn field(option: HeaderValueOption) -> Option<Header<'static>> {
    let header = option.header?;
    let value = if header.raw_value.is_empty() {
        header.value.into_bytes()
    } else {
        header.raw_value
    };
    let name = header.key.to_ascii_lowercase();
    if is_protected(&name) {
        return None;
    }
    Header::new(name, agent_protocol::Text(value.into())).ok()
}
