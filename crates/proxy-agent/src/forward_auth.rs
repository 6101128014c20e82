//! Agents called by a request over HTTP/1.1, like nginx's `auth_request` and Traefik's
//! `forwardAuth`.

use crate::early_denial::EarlyDenial;
use crate::error::CallError;
use crate::guarded_stream::{AnswerGuard, GuardedStream};
use crate::http_answer::{HttpAnswer, limited_body};
use crate::link::{self, AgentLink, AgentUpstream};
use agent_protocol::{Allow, Decision, Header, HeaderEdit, RequestHeaders, is_protected};
use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderMap};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use proxy_plan::AgentEndpoint;
use proxy_upstream::TargetId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of idle connections.
const MAX_IDLE: usize = 16;
/// The minimum buffer size of the HTTP library.
const MIN_BUFFER_BYTES: usize = 8_192;

/// Connections of one worker to one agent; each carries one request at a time.
#[derive(Debug)]
pub(crate) struct ForwardAuthClient {
    endpoint: Arc<AgentEndpoint>,
    idle: RefCell<Vec<HttpConnection>>,
    /// Number of connections opened.
    opened: Cell<usize>,
}

#[derive(Debug)]
struct HttpConnection {
    sender: http1::SendRequest<Empty<Bytes>>,
    guard: Rc<AnswerGuard>,
    /// The target; `None` for a Unix socket.
    target: Option<TargetId>,
    /// Beginning of the last request, since the worker's start.
    used_at: Duration,
}

/// A head that may never be complete. If dropped before it is, its status alone may deny.
struct AwaitedHead<'c> {
    guard: &'c AnswerGuard,
    denial: &'c EarlyDenial,
    is_whole: bool,
}

impl Drop for AwaitedHead<'_> {
    fn drop(&mut self) {
        let status = self.guard.denying_status();
        if let Some(status) = status.filter(|_| !self.is_whole) {
            let answer = HttpAnswer {
                status,
                headers: Vec::new(),
                body: Vec::new(),
            };
            self.denial.set(answer.into_denial());
        }
    }
}

impl ForwardAuthClient {
    pub(crate) fn new(endpoint: Arc<AgentEndpoint>) -> Self {
        Self {
            endpoint,
            idle: RefCell::default(),
            opened: Cell::default(),
        }
    }

    /// Requests a decision on the head of a request, at the time `now`. If an idle connection ends,
    /// the request is sent again on a new one.
    pub(crate) async fn decide(
        &self,
        head: &RequestHeaders<'_>,
        now: Duration,
        upstream: Option<AgentUpstream<'_>>,
        denial: &EarlyDenial,
    ) -> Result<Decision, CallError> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            let Some(mut connection) = idle else {
                break;
            };
            let is_usable = connection.is_usable(now, upstream);
            if !is_usable || connection.sender.ready().await.is_err() {
                continue;
            }
            connection.used_at = now;
            match connection.send(self.request(head), denial).await {
                Ok(response) => return self.finish(connection, response, denial).await,
                Err(error @ (CallError::BadReply(_) | CallError::TooLarge { .. })) => {
                    return Err(error);
                }
                Err(error) if connection.guard.denying_status().is_some() => return Err(error),
                Err(_) => {}
            }
        }
        let mut connection = self.connect(now, upstream).await?;
        let response = connection.send(self.request(head), denial).await?;
        self.finish(connection, response, denial).await
    }

    async fn connect(
        &self,
        now: Duration,
        upstream: Option<AgentUpstream<'_>>,
    ) -> Result<HttpConnection, CallError> {
        let turn = self.opened.replace(self.opened.get().wrapping_add(1));
        let AgentLink {
            stream,
            target,
            origin: _,
        } = link::connect(&self.endpoint, upstream, turn).await?;
        let limit = usize::try_from(self.endpoint.max_response_bytes).unwrap_or(usize::MAX);
        let limit = limit.max(MIN_BUFFER_BYTES);
        let guard = Rc::new(AnswerGuard::new(limit));
        let stream = GuardedStream {
            stream,
            guard: Rc::clone(&guard),
        };
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(limit)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| CallError::Unreachable(error.to_string()))?;
        tokio::task::spawn_local(async move {
            // The failing request reports the cause.
            connection.await.unwrap_or_default();
        });
        Ok(HttpConnection {
            sender,
            guard,
            target,
            used_at: now,
        })
    }

    async fn finish(
        &self,
        connection: HttpConnection,
        response: Response<Incoming>,
        denial: &EarlyDenial,
    ) -> Result<Decision, CallError> {
        let (head, body) = response.into_parts();
        let answer = |body: Bytes| HttpAnswer {
            status: head.status.as_u16(),
            headers: plain_headers(&head.headers),
            body: body.into(),
        };
        let denies = !head.status.is_success() && !head.status.is_server_error();
        if denies {
            denial.set(answer(Bytes::new()).into_denial());
        }
        let body = limited_body(body, self.endpoint.max_response_bytes).await;
        let body = body.map_err(|error| connection.guard.bad_reply().unwrap_or(error))?;
        let mut idle = self.idle.borrow_mut();
        if !connection.sender.is_closed() && idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        drop(idle);
        if head.status.is_success() {
            return Ok(allow(&self.endpoint, &head.headers));
        }
        match answer(body).into_denial() {
            Decision::Block(block) if !denies => Err(CallError::ServerError(Box::new(block))),
            decision @ (Decision::Allow(_)
            | Decision::Block(_)
            | Decision::Redirect(_)
            | Decision::Challenge(_)) => Ok(decision),
        }
    }

    /// The authorization request: a GET with the client's fields, and its method, URL and address
    /// in separate fields.
    fn request(&self, head: &RequestHeaders<'_>) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.endpoint.request_path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        for field in head
            .headers
            .iter()
            .filter(|field| !is_protected(field.name()))
        {
            let name = HeaderName::from_bytes(field.name().as_bytes());
            let value = HeaderValue::from_bytes(field.value().as_bytes());
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        let target = head.target.as_bytes();
        let authority = head.authority.as_bytes();
        let url = [head.scheme.as_bytes(), b"://", authority, target].concat();
        for (name, value) in [
            ("x-correlation-id", head.correlation_id.as_bytes()),
            ("x-forwarded-for", head.client_ip.as_bytes()),
            ("x-forwarded-host", authority),
            ("x-forwarded-method", head.method.as_bytes()),
            ("x-forwarded-proto", head.scheme.as_bytes()),
            ("x-forwarded-uri", target),
            ("x-original-method", head.method.as_bytes()),
            ("x-original-uri", target),
            ("x-original-url", &url),
        ] {
            // A client must not be able to set these fields.
            headers.remove(name);
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let host = self.endpoint.request_host.clone();
        let host = host.or_else(|| HeaderValue::from_bytes(authority).ok());
        let local = HeaderValue::from_static("localhost");
        let host = host.filter(|host| !host.is_empty()).unwrap_or(local);
        headers.insert(HOST, host);
        request
    }
}

/// Sets the copied fields of the answer, and removes those that the answer lacks, because the
/// client may have set them. Fields of the response are added.
fn allow(endpoint: &AgentEndpoint, answered: &HeaderMap) -> Decision {
    let added = |name: &HeaderName| {
        let values = answered.get_all(name).iter();
        let edit = |value| HeaderEdit::add(name.as_str().to_owned(), text(value)).ok();
        values.filter_map(edit).collect::<Vec<_>>()
    };
    let mut edits = Vec::new();
    for name in &endpoint.copy_headers {
        edits.extend(HeaderEdit::remove(name.as_str().to_owned()).ok());
        edits.extend(added(name));
    }
    let response_edits = endpoint.copy_response_headers.iter().flat_map(added);
    Decision::Allow(Allow {
        request_headers: edits,
        response_headers: response_edits.collect(),
        ..Allow::default()
    })
}

fn plain_headers(headers: &HeaderMap) -> Vec<Header<'static>> {
    let plain = headers
        .iter()
        .filter(|(name, _)| !is_protected(name.as_str()) && !is_connection_specific(headers, name));
    let plain =
        plain.filter_map(|(name, value)| Header::new(name.as_str().to_owned(), text(value)).ok());
    plain.collect()
}

/// Returns true if `Connection` names the field: it is for the proxy only. [RFC 9110 §7.6.1]
fn is_connection_specific(headers: &HeaderMap, name: &HeaderName) -> bool {
    let lines = headers.get_all(CONNECTION).iter();
    let mut options = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    options.any(|option| {
        let option = option.trim_ascii();
        option.eq_ignore_ascii_case(name.as_str().as_bytes())
    })
}

fn text(value: &HeaderValue) -> agent_protocol::Text<'static> {
    agent_protocol::Text(value.as_bytes().to_vec().into())
}

impl HttpConnection {
    /// Returns true if the next request may use the connection: its target is still part of
    /// `upstream`.
    fn is_usable(&self, now: Duration, upstream: Option<AgentUpstream<'_>>) -> bool {
        let Some(target) = self.target else {
            return true;
        };
        let idle = now.saturating_sub(self.used_at);
        upstream.is_some_and(|upstream| upstream.keeps(target, idle))
    }

    async fn send(
        &mut self,
        request: Request<Empty<Bytes>>,
        denial: &EarlyDenial,
    ) -> Result<Response<Incoming>, CallError> {
        self.guard.expect();
        let mut awaited = AwaitedHead {
            guard: &self.guard,
            denial,
            is_whole: false,
        };
        let response = self.sender.send_request(request).await;
        awaited.is_whole = response.is_ok();
        drop(awaited);
        response.map_err(|error| match self.guard.bad_reply() {
            Some(refused) => refused,
            None if error.is_parse() => CallError::BadReply(error.to_string()),
            None => CallError::Closed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_agents_connection_are_not_the_clients() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("x-end", "2"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }

        let names: Vec<_> = plain_headers(&headers)
            .iter()
            .map(|header| header.name().to_owned())
            .collect();

        assert_eq!(names, ["x-end"]);
    }
}
