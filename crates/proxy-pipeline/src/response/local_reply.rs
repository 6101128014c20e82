//! The proxy's own responses: problems and documents.

use crate::headers::correlation::CorrelationId;
use crate::headers::names;
use crate::record::agent_record::AgentReply;
use crate::response::body::Body;
use crate::response::error_page::PageBody;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, DATE, SERVER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body::Body as _;
use proxy_errors::{LocalReply, Problem, Reason, ResponseForm};
use proxy_model::PageTemplate;
use std::iter;
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) const OUR_NAME: HeaderValue = HeaderValue::from_static("proxyd");

/// A document for a response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// `None` for a response without a body.
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The response. For HEAD without its body, but with the body's length.
    pub(crate) fn into_response(self, method: &Method) -> Response<Body> {
        let Self {
            status,
            content_type,
            body,
        } = self;
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, content_type);
        }
        headers.insert(SERVER, OUR_NAME);
        respond(status, headers, Body::bytes(body), method)
    }
}

/// The format of an error response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyFormat<'a> {
    pub(crate) form: ResponseForm,
    pub(crate) correlation_id: &'a CorrelationId,
    pub(crate) method: &'a Method,
    /// The page in place of the proxy's own HTML.
    pub(crate) page: Option<&'a Arc<PageTemplate>>,
    /// `Proxy-Status` names the reason and the upstream.
    pub(crate) expose_reason: bool,
}

/// The error response for a request that was not served.
pub(crate) fn local_reply(problem: &Problem, format: ReplyFormat<'_>) -> Response<Body> {
    let nameless = nameless(problem, format);
    let shown = nameless.as_ref().unwrap_or(problem);
    let LocalReply {
        status,
        headers,
        body,
    } = reply(problem, shown, format);
    let body = page(shown, format).map_or_else(|| Body::bytes(body.into()), Body::page);
    respond(status, headers, body, format.method)
}

/// The page in place of the proxy's own HTML, if there is one.
fn page(shown: &Problem, format: ReplyFormat<'_>) -> Option<PageBody> {
    let template = format.page.filter(|_| format.form == ResponseForm::Html)?;
    let id = format.correlation_id.as_str();
    Some(PageBody::new(template, shown, id))
}

/// The problem for a client that must not see the name of an upstream; `None` if it may.
fn nameless(problem: &Problem, format: ReplyFormat<'_>) -> Option<Problem> {
    (!format.expose_reason).then(|| problem.without_name())
}

/// The response in the proxy's own form, in which `shown` is `problem` or its nameless form.
fn reply(problem: &Problem, shown: &Problem, format: ReplyFormat<'_>) -> LocalReply {
    let id = format.correlation_id.to_value();
    let mut reply = LocalReply::new(shown, format.form, &id);
    let headers = &mut reply.headers;
    headers.insert(SERVER, OUR_NAME);
    if let Some(methods) = allowed(problem.reason()) {
        headers.insert(http::header::ALLOW, HeaderValue::from_static(methods));
    }
    if format.expose_reason
        && let Ok(value) = HeaderValue::try_from(problem.proxy_status("proxyd"))
    {
        headers.insert(names::PROXY_STATUS, value);
    }
    reply
}

/// `Allow` of a 405. CONNECT's target has no allowed method. [RFC 9110 §15.5.6]
fn allowed(reason: Reason) -> Option<&'static str> {
    if reason == Reason::MethodNotAllowed {
        return Some("GET, HEAD");
    }
    (reason == Reason::ConnectMethodRefused).then_some("")
}

/// `response` with the headers of an agent's response, and its body if it has one; a large body
/// counts in the memory.
pub(crate) fn replace_by_agent(
    reply: AgentReply,
    mut response: Response<Body>,
    method: &Method,
) -> Response<Body> {
    let AgentReply {
        mut headers,
        body,
        memory,
    } = reply;
    let fields = response.headers_mut();
    match body {
        Some(body) => {
            fields.remove(CONTENT_TYPE);
            if *method == Method::HEAD {
                fields.insert(http::header::CONTENT_LENGTH, HeaderValue::from(body.len()));
            } else {
                *response.body_mut() = match memory {
                    Some(memory) => Body::counted(body, memory),
                    None => Body::bytes(body),
                };
            }
        }
        // The agent's fields describe a body that is not sent.
        None => headers.retain(|(name, _)| !describes_a_body(name)),
    }
    let fields = response.headers_mut();
    for (name, _) in &headers {
        fields.remove(name);
    }
    for (name, value) in headers {
        fields.append(name, value);
    }
    response
}

/// Returns true if the field describes the bytes of one body.
pub(crate) fn describes_a_body(name: &HeaderName) -> bool {
    const NAMES: [&str; 13] = [
        "accept-ranges",
        "content-digest",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-location",
        "content-md5",
        "content-range",
        "content-type",
        "digest",
        "etag",
        "last-modified",
        "repr-digest",
    ];
    NAMES.contains(&name.as_str())
}

fn respond(
    status: StatusCode,
    mut headers: HeaderMap,
    mut body: Body,
    method: &Method,
) -> Response<Body> {
    if *method == Method::HEAD {
        let length = body.size_hint().lower();
        headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
        body = Body::bytes(Bytes::new());
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// A response to a connection without a readable request.
#[derive(Debug)]
pub struct RawAnswer {
    /// Status line, header fields and body.
    pub bytes: Vec<u8>,
    /// Length of the body alone.
    pub body_bytes: usize,
    /// Status of the response.
    pub status: StatusCode,
}

/// The response to unreadable input. The connection must be closed after it.
#[must_use]
pub(crate) fn raw_answer(problem: &Problem, format: ReplyFormat<'_>, now: SystemTime) -> RawAnswer {
    let nameless = nameless(problem, format);
    let shown = nameless.as_ref().unwrap_or(problem);
    let mut reply = reply(problem, shown, format);
    if let Some(mut page) = page(shown, format) {
        reply.body = iter::from_fn(|| page.pop()).flatten().collect();
    }
    let date = httpdate::fmt_http_date(now);
    reply
        .headers
        .insert(names::CORRELATION_ID, format.correlation_id.to_value());
    if let Ok(date) = HeaderValue::try_from(date) {
        reply.headers.insert(DATE, date);
    }
    let mut bytes = reply.to_closing_message();
    let mut body_bytes = reply.body.len();
    if *format.method == Method::HEAD {
        bytes.truncate(bytes.len().saturating_sub(body_bytes));
        body_bytes = 0;
    }
    RawAnswer {
        bytes,
        body_bytes,
        status: reply.status,
    }
}
