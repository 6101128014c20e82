//! The trace of a request, and its span if traces are exported.

use crate::headers::correlation::IdSource;
use crate::headers::inbound_head::{InboundHead, path_as_sent};
use crate::headers::{names, trace_context};
use crate::worker::active_plan::ActivePlan;
use crate::worker::state::Worker;
use http::header::USER_AGENT;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};
use proxy_model::RetryCause;
use proxy_telemetry::{AttemptSpan, Protocol, RequestSpan, TraceId};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct RequestTrace {
    pub(crate) id: TraceId,
    /// The span of the request; `None` if the trace is not sampled, or traces are not exported.
    pub(crate) span: Option<OpenSpan>,
}

/// The span of a request in flight. Its times are by the worker's clock until it ends.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    span: Box<RequestSpan>,
    /// Flags in the `traceparent` fields of the request's spans.
    flags: u8,
    /// The `traceparent` that was last written into the head.
    parent_field: HeaderValue,
}

impl RequestTrace {
    /// The trace of the request with `head`; `None` if it has none. If its spans are exported, the
    /// `traceparent` in the head names the request's span afterwards.
    pub(crate) fn begin(
        worker: &Worker,
        active: &ActivePlan,
        head: &mut InboundHead,
        is_tls: bool,
    ) -> Option<Box<Self>> {
        let context = trace_context::apply(&mut head.headers, active.traces, &worker.ids)?;
        let id = context.trace_id;
        let span = if active.exports_spans && context.is_sampled() {
            OpenSpan::begin(&context, head, active, &worker.ids, is_tls)
        } else {
            None
        };
        Some(Box::new(Self { id, span }))
    }
}

impl OpenSpan {
    fn begin(
        context: &trace_context::TraceContext,
        head: &mut InboundHead,
        active: &ActivePlan,
        ids: &IdSource,
        is_tls: bool,
    ) -> Option<Self> {
        let trace_context::TraceContext {
            trace_id,
            parent,
            own,
            flags,
        } = *context;
        let span_id = own.unwrap_or_else(|| trace_context::span_id(ids));
        let parent_field = trace_context::field(&trace_id, &span_id, flags)?;
        head.headers
            .insert(names::TRACE_PARENT, parent_field.clone());
        let target = path_as_sent(&head.uri, &head.extensions);
        let redact = &active.error_format.redact_query;
        let (path, query) = RequestSpan::path_and_query(target, redact);
        let authority = head.uri.authority().map(Authority::as_str);
        let host = head.headers.host().map(HeaderValue::as_bytes);
        let authority = host.or(authority.map(str::as_bytes));
        let user_agent = head.headers.as_map().get(USER_AGENT);
        let text = |value: &HeaderValue| RequestSpan::attribute(value.as_bytes());
        let unset = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Some(Self {
            span: Box::new(RequestSpan {
                trace_id,
                span_id,
                parent_id: parent,
                method: RequestSpan::attribute(head.method.as_str().as_bytes()),
                is_tls,
                path,
                query,
                authority: authority.map(RequestSpan::attribute),
                user_agent: user_agent.map(text),
                attempts: Vec::new(),
                // The rest is known at the end.
                started: Duration::ZERO,
                ended: Duration::ZERO,
                protocol: Protocol::Http11,
                client_ip: unset,
                peer_ip: unset,
                correlation_id: Box::default(),
                route: None,
                upstream: None,
                status: None,
                reason: None,
                is_error: false,
                bytes_in: 0,
                bytes_out: 0,
                queued: None,
                connecting: None,
                upstream_took: None,
            }),
            flags,
            parent_field,
        })
    }

    /// The span, with times of the worker's clock.
    pub(crate) fn into_span(self) -> Box<RequestSpan> {
        self.span
    }

    /// Ends the span of the last attempt after `cause`, and begins the span of the next one.
    pub(crate) fn begin_attempt(
        &mut self,
        now: Duration,
        upstream: &str,
        target: &str,
        cause: Option<RetryCause>,
        ids: &IdSource,
    ) {
        if let Some(last) = self.span.attempts.last_mut() {
            last.ended = now;
            last.status = cause.and_then(status_of);
            last.error = match last.status {
                Some(_) => None,
                None => cause.map(RetryCause::name),
            };
        }
        self.span.attempts.push(AttemptSpan {
            span_id: trace_context::span_id(ids),
            started: now,
            ended: now,
            upstream: upstream.into(),
            target: target.into(),
            status: None,
            error: None,
        });
    }

    /// Changes the target of the last attempt.
    pub(crate) fn move_attempt(&mut self, target: &str) {
        if let Some(last) = self.span.attempts.last_mut() {
            last.target = target.into();
        }
    }

    /// Makes the last attempt's span the parent in `headers`, unless the route or an agent has set
    /// the field.
    pub(crate) fn write_parent(&mut self, headers: &mut HeaderMap) {
        let Some(last) = self.span.attempts.last() else {
            return;
        };
        if headers.get(names::TRACE_PARENT) != Some(&self.parent_field) {
            return;
        }
        let field = trace_context::field(&self.span.trace_id, &last.span_id, self.flags);
        if let Some(field) = field {
            headers.insert(names::TRACE_PARENT, field.clone());
            self.parent_field = field;
        }
    }
}

/// The status that a target answered with before a retry.
fn status_of(cause: RetryCause) -> Option<u16> {
    match cause {
        RetryCause::BadGateway => Some(502),
        RetryCause::ServiceUnavailable => Some(503),
        RetryCause::GatewayTimeout => Some(504),
        RetryCause::ConnectFailure | RetryCause::Reset | RetryCause::Timeout => None,
    }
}
