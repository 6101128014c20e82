//! Agents that are asked by a request over HTTP/1.1, as by nginx's `auth_request` and Traefik's
//! `forwardAuth`.

use crate::early_denial::EarlyDenial;
use crate::error::CallError;
use crate::guarded_stream::{AnswerGuard, GuardedStream};
use crate::http_answer::{HttpAnswer, limited_body};
use agent_protocol::{Allow, Decision, Header, HeaderEdit, RequestHeaders, is_protected};
use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderMap};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use proxy_plan::AgentEndpoint;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::UnixStream;

/// Idle connections that are kept.
const MAX_IDLE: usize = 16;
/// The least buffer that the HTTP library works with.
const MIN_BUFFER_BYTES: usize = 8_192;

/// Connections of one worker to one agent; each carries one request at a time.
#[derive(Debug)]
pub(crate) struct ForwardAuthClient {
    endpoint: Arc<AgentEndpoint>,
    idle: RefCell<Vec<HttpConnection>>,
}

#[derive(Debug)]
struct HttpConnection {
    sender: http1::SendRequest<Empty<Bytes>>,
    guard: Rc<AnswerGuard>,
}

/// A head that may not arrive whole. Dropped before, its status alone denies.
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
        }
    }

    /// Asks about the head of a request. A request on an idle connection that ends under it is sent
    /// again, on a new one.
    pub(crate) async fn decide(
        &self,
        head: &RequestHeaders<'_>,
        denial: &EarlyDenial,
    ) -> Result<Decision, CallError> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            let Some(mut connection) = idle else {
                break;
            };
            if connection.sender.ready().await.is_err() {
                continue;
            }
            match connection.send(self.request(head), denial).await {
                Ok(response) => return self.finish(connection, response, denial).await,
                Err(error @ (CallError::BadReply(_) | CallError::TooLarge(_))) => {
                    return Err(error);
                }
                Err(error) if connection.guard.denying_status().is_some() => return Err(error),
                Err(_) => {}
            }
        }
        let mut connection = self.connect().await?;
        let response = connection.send(self.request(head), denial).await?;
        self.finish(connection, response, denial).await
    }

    async fn connect(&self) -> Result<HttpConnection, CallError> {
        let stream = UnixStream::connect(&self.endpoint.socket).await;
        let stream = stream.map_err(|error| CallError::Unreachable(error.to_string()))?;
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
            // The request that fails with it tells the cause.
            connection.await.unwrap_or_default();
        });
        Ok(HttpConnection { sender, guard })
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
            return Ok(allow(&self.endpoint.copy_headers, &head.headers));
        }
        match answer(body).into_denial() {
            Decision::Block(block) if !denies => Err(CallError::ServerError(Box::new(block))),
            decision @ (Decision::Allow(_)
            | Decision::Block(_)
            | Decision::Redirect(_)
            | Decision::Challenge(_)) => Ok(decision),
        }
    }

    /// The request that asks: a GET with the client's fields, and its method, URL and address in fields
    /// of their own.
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
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let host = HeaderValue::from_bytes(authority);
        let local = HeaderValue::from_static("localhost");
        let host = host.ok().filter(|host| !host.is_empty()).unwrap_or(local);
        headers.insert(HOST, host);
        request
    }
}

/// Sets the fields of `names` that the answer has, and removes the rest: the client's own are not to
/// pass for the agent's.
fn allow(names: &[HeaderName], answered: &HeaderMap) -> Decision {
    let mut edits = Vec::new();
    for name in names {
        edits.extend(HeaderEdit::remove(name.as_str().to_owned()).ok());
        let values = answered.get_all(name).iter();
        let added =
            values.filter_map(|value| HeaderEdit::add(name.as_str().to_owned(), text(value)).ok());
        edits.extend(added);
    }
    Decision::Allow(Allow {
        request_headers: edits,
        ..Allow::default()
    })
}

fn plain_headers(headers: &HeaderMap) -> Vec<Header<'static>> {
    let plain = headers
        .iter()
        .filter(|(name, _)| !is_protected(name.as_str()) && !is_of_the_connection(headers, name));
    let plain =
        plain.filter_map(|(name, value)| Header::new(name.as_str().to_owned(), text(value)).ok());
    plain.collect()
}

/// Whether `Connection` names the field: it was meant for the proxy alone. [RFC 9110 §7.6.1]
fn is_of_the_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
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
