//! Agents called by gRPC: `envoy.service.auth.v3.Authorization/Check`.

mod messages;
mod prefix;

use crate::call_context::CallContext;
use crate::early_denial::EarlyDenial;
use crate::error::CallError;
use crate::link::{self, AgentLink, AgentUpstream};
use agent_protocol::{Allow, Decision, Header, HeaderEdit, RequestHeaders, is_protected};
use bytes::{BufMut, Bytes};
use http::header::{CONTENT_TYPE, HeaderMap, TE};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use messages::{CheckRequest, CheckResponse, HeaderValueOption, HttpResponse, OkHttpResponse};
use prost::Message;
use proxy_plan::AgentEndpoint;
use proxy_upstream::TargetId;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

const METHOD: &str = "/envoy.service.auth.v3.Authorization/Check";
/// Length of a message's prefix: the compression flag, and the length of the message.
const PREFIX_BYTES: usize = 5;

/// The connection of one worker to one agent.
#[derive(Debug)]
pub(crate) struct ExtAuthzClient {
    endpoint: Arc<AgentEndpoint>,
    connection: RefCell<Option<GrpcConnection>>,
    /// Number of connections opened.
    opened: Cell<usize>,
    /// Held while a connection is opened, so that calls in a burst share one.
    connecting: Semaphore,
}

/// A connection, shared by all calls of the worker.
#[derive(Clone, Debug)]
struct GrpcConnection {
    sender: http2::SendRequest<Full<Bytes>>,
    /// Distinguishes it from later ones of the client.
    number: usize,
    /// The target; `None` for a Unix socket.
    target: Option<TargetId>,
    /// URL of the method.
    method: Uri,
}

/// A call in progress. If dropped after a timeout, it closes its connection to new calls, because
/// the peer may be dead.
struct PendingCall<'c> {
    client: &'c ExtAuthzClient,
    context: &'c CallContext,
    /// Number of the connection on which the call was sent.
    sent_on: Cell<Option<usize>>,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if self.context.has_expired.get() {
            self.client.leave(self.sent_on.get());
        }
    }
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
            opened: Cell::default(),
            connecting: Semaphore::new(1),
        }
    }

    /// Requests a decision on the head of a request. If the connection ends, the request is sent
    /// again once, on another one.
    pub(crate) async fn decide(
        &self,
        head: &RequestHeaders<'_>,
        upstream: Option<AgentUpstream<'_>>,
        context: &CallContext,
    ) -> Result<Decision, CallError> {
        let denial = &context.denial;
        let pending = PendingCall {
            client: self,
            context,
            sent_on: Cell::default(),
        };
        let message = CheckRequest::from(head);
        if let Some(connection) = self.usable(upstream) {
            pending.sent_on.set(Some(connection.number));
            if let Ok(response) = connection.send(&message).await {
                return self.read(head, response, denial).await;
            }
            self.leave(pending.sent_on.get());
        }
        let connection = self.connect_once(upstream).await?;
        pending.sent_on.set(Some(connection.number));
        let response = connection.send(&message).await;
        let response = response.map_err(|_| CallError::Closed)?;
        self.read(head, response, denial).await
    }

    /// The open connection, if new calls may use it.
    fn usable(&self, upstream: Option<AgentUpstream<'_>>) -> Option<GrpcConnection> {
        let known = self.connection.borrow().clone();
        known.filter(|connection| connection.is_usable(upstream))
    }

    /// Closes the connection with this number to new calls.
    fn leave(&self, number: Option<usize>) {
        let mut current = self.connection.borrow_mut();
        current.take_if(|current| Some(current.number) == number);
    }

    /// Opens a connection, or takes the one that another call has just opened.
    async fn connect_once(
        &self,
        upstream: Option<AgentUpstream<'_>>,
    ) -> Result<GrpcConnection, CallError> {
        // Never closed.
        let _turn = self.connecting.acquire().await;
        if let Some(connection) = self.usable(upstream) {
            return Ok(connection);
        }
        let connection = self.connect(upstream).await?;
        self.connection.replace(Some(connection.clone()));
        Ok(connection)
    }

    async fn connect(
        &self,
        upstream: Option<AgentUpstream<'_>>,
    ) -> Result<GrpcConnection, CallError> {
        let number = self.opened.replace(self.opened.get().wrapping_add(1));
        let AgentLink {
            stream,
            target,
            origin,
        } = link::connect(&self.endpoint, upstream, number).await?;
        let method = format!("{origin}{METHOD}").parse();
        let method = method.map_err(|_| CallError::Unreachable(format!("no host: {origin}")))?;
        let (sender, connection) = http2::handshake(LocalExecutor, TokioIo::new(stream))
            .await
            .map_err(|error| CallError::Unreachable(error.to_string()))?;
        tokio::task::spawn_local(async move {
            // The failing request reports the cause.
            connection.await.unwrap_or_default();
        });
        Ok(GrpcConnection {
            sender,
            number,
            target,
            method,
        })
    }

    /// Reads the message and, unless it denies, the gRPC status after it.
    async fn read(
        &self,
        head: &RequestHeaders<'_>,
        response: Response<Incoming>,
        denial: &EarlyDenial,
    ) -> Result<Decision, CallError> {
        let (parts, mut body) = response.into_parts();
        let limit = usize::try_from(self.endpoint.max_response_bytes).unwrap_or(usize::MAX);
        let mut message = IncomingMessage {
            bytes: Vec::new(),
            denial,
        };
        let mut trailers = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| CallError::BadReply(error.to_string()))?;
            match frame.into_data() {
                Ok(data) => message.push(&data, limit)?,
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
            if let Some(denied) = message.complete().and_then(prefix::denial) {
                return Ok(denied.into_denial());
            }
        }
        check_status(&parts.headers, trailers.as_ref())?;
        let message = message.bytes.get(PREFIX_BYTES..).unwrap_or_default();
        let response = CheckResponse::decode(message);
        let response = response.map_err(|error| CallError::BadReply(error.to_string()))?;
        decision(head, response)
    }
}

/// A message being read. If it is dropped incomplete, a denial at its beginning is valid.
struct IncomingMessage<'d> {
    bytes: Vec<u8>,
    denial: &'d EarlyDenial,
}

impl IncomingMessage<'_> {
    /// Appends `data`, up to `limit`.
    fn push(&mut self, data: &[u8], limit: usize) -> Result<(), CallError> {
        let room = limit.saturating_sub(self.bytes.len());
        let fitting = data.get(..room).unwrap_or(data);
        self.bytes.extend_from_slice(fitting);
        if fitting.len() < data.len() {
            return Err(CallError::longer_than(limit));
        }
        Ok(())
    }

    /// The payload of the message, if it is complete.
    fn complete(&self) -> Option<&[u8]> {
        let (prefix, message) = self.bytes.split_first_chunk::<PREFIX_BYTES>()?;
        let [_, length @ ..] = *prefix;
        message.get(..usize::try_from(u32::from_be_bytes(length)).ok()?)
    }
}

impl Drop for IncomingMessage<'_> {
    fn drop(&mut self) {
        let message = self.bytes.get(PREFIX_BYTES..).unwrap_or_default();
        if let Some(denied) = prefix::denial(message) {
            self.denial.set(denied.into_denial());
        }
    }
}

impl GrpcConnection {
    /// Returns true if a call may use the connection: its target is still part of `upstream`.
    fn is_usable(&self, upstream: Option<AgentUpstream<'_>>) -> bool {
        let is_kept = |target| upstream.is_some_and(|one| one.keeps(target, Duration::ZERO));
        !self.sender.is_closed() && self.target.is_none_or(is_kept)
    }

    async fn send(mut self, message: &CheckRequest) -> hyper::Result<Response<Incoming>> {
        self.sender.ready().await?;
        let mut body = Vec::with_capacity(PREFIX_BYTES + message.encoded_len());
        body.put_u8(0);
        body.put_u32(u32::try_from(message.encoded_len()).unwrap_or(u32::MAX));
        body.extend_from_slice(&message.encode_to_vec());
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.method;
        let headers = request.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            http::HeaderValue::from_static("application/grpc"),
        );
        headers.insert(TE, http::HeaderValue::from_static("trailers"));
        self.sender.send_request(request).await
    }
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

/// The decision of a message that does not deny.
fn decision(head: &RequestHeaders<'_>, response: CheckResponse) -> Result<Decision, CallError> {
    let CheckResponse {
        status,
        http_response,
    } = response;
    if status.is_none() {
        return Err(CallError::BadReply("no status".to_owned()));
    }
    let allow = match http_response {
        Some(HttpResponse::Ok(response)) => allow(head, response)?,
        Some(HttpResponse::Denied(_)) | None => Allow::default(),
    };
    Ok(Decision::Allow(allow))
}

/// Converts an allowing response. A change that cannot be applied is a bad reply, because the
/// forwarded request would differ from the one that the server has allowed.
fn allow(head: &RequestHeaders<'_>, response: OkHttpResponse) -> Result<Allow, CallError> {
    let OkHttpResponse {
        headers,
        headers_to_remove,
        response_headers_to_add,
        query_parameters_to_set,
        query_parameters_to_remove,
    } = response;
    if !query_parameters_to_set.is_empty() || !query_parameters_to_remove.is_empty() {
        let text = "changes of query parameters are not supported";
        return Err(CallError::BadReply(text.to_owned()));
    }
    let removed = headers_to_remove.into_iter().map(|name| {
        let edit = HeaderEdit::remove(name);
        let edit = edit.map_err(|error| CallError::BadReply(error.to_string()))?;
        allowed(edit.name())?;
        Ok(edit)
    });
    let removed: Result<Vec<_>, CallError> = removed.collect();
    let set = headers
        .into_iter()
        .filter_map(|option| request_edit(head, option).transpose());
    let set: Result<Vec<_>, _> = set.collect();
    let response_edits = response_headers_to_add.into_iter().map(response_edit);
    let response_edits: Result<_, _> = response_edits.collect();
    Ok(Allow {
        request_headers: removed?.into_iter().chain(set?).collect(),
        response_headers: response_edits?,
        ..Allow::default()
    })
}

/// Checks that agents may change the field `name`.
fn allowed(name: &str) -> Result<(), CallError> {
    if is_protected(name) {
        let text = format!("agents may not change the field `{name}`");
        return Err(CallError::BadReply(text));
    }
    Ok(())
}

/// The value of `append_action`, or of the older `append` if present.
#[derive(Clone, Copy)]
enum HeaderAction {
    /// Unspecified: replaces a field of a request, and adds a field to a response.
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
        (None, other) => Err(CallError::BadReply(format!(
            "unknown append_action {other}"
        ))),
    }
}

fn header(option: HeaderValueOption) -> Result<Header<'static>, CallError> {
    let header = option.into_header();
    let header = header.map_err(|error| CallError::BadReply(error.to_string()))?;
    allowed(header.name())?;
    Ok(header)
}

fn request_edit(
    head: &RequestHeaders<'_>,
    option: HeaderValueOption,
) -> Result<Option<HeaderEdit>, CallError> {
    let action = action(&option)?;
    let header = header(option)?;
    let mut fields = head.headers.iter();
    let is_present = fields.any(|one| one.name() == header.name());
    Ok(match action {
        HeaderAction::Add => Some(HeaderEdit::Add(header)),
        HeaderAction::Default | HeaderAction::Set => Some(HeaderEdit::Set(header)),
        HeaderAction::AddIfAbsent => (!is_present).then_some(HeaderEdit::Add(header)),
        HeaderAction::SetIfPresent => is_present.then_some(HeaderEdit::Set(header)),
    })
}

/// Converts an edit of the response. Its fields are not known yet, so no edit can depend on them.
fn response_edit(option: HeaderValueOption) -> Result<HeaderEdit, CallError> {
    let action = action(&option)?;
    let header = header(option)?;
    match action {
        HeaderAction::Default | HeaderAction::Add => Ok(HeaderEdit::Add(header)),
        HeaderAction::Set => Ok(HeaderEdit::Set(header)),
        HeaderAction::AddIfAbsent | HeaderAction::SetIfPresent => {
            let text = "ADD_IF_ABSENT or OVERWRITE_IF_EXISTS for a field of the response";
            Err(CallError::BadReply(text.to_owned()))
        }
    }
}
