//! Responses to input that never became a request: malformed bytes, a head that timed out, a
//! rejected connection.

use crate::failure::{refused_head, waited};
use crate::headers::correlation::{CorrelationId, is_acceptable};
use crate::record::completion::CompletionGuard;
use crate::record::exchange_record::ExchangeRecord;
use crate::response::error_page;
use crate::response::local_reply::{RawAnswer, ReplyFormat, raw_answer};
use crate::worker::active_plan::ActivePlan;
use crate::worker::connection_info::ConnectionInfo;
use crate::worker::plan_parts::Origin;
use crate::worker::state::Worker;
use http::HeaderValue;
use proxy_errors::{ErrorType, Problem};
use proxy_model::PageTemplate;
use proxy_plan::ListenerPlan;
use proxy_telemetry::{AccessLogHead, Protocol};
use std::rc::Rc;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The readable parts of a malformed request.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnreadRequest<'h> {
    /// The correlation ID, if it could be read.
    pub correlation_id: Option<&'h [u8]>,
    /// The accepted bytes of its head.
    pub head: &'h [u8],
}

/// Logs the refusal and returns the bytes of the response.
#[must_use]
pub fn refuse_unread(
    worker: &Rc<Worker>,
    client: &Rc<ConnectionInfo>,
    problem: Problem,
    unread: UnreadRequest<'_>,
) -> RawAnswer {
    let active = worker.active();
    let now = worker.time.elapsed();
    let unix_time = worker.time.unix(now);
    let began = now.saturating_sub(waited(&problem));
    let sent = unread.correlation_id.filter(|id| is_acceptable(id));
    let sent = sent.and_then(|id| HeaderValue::from_bytes(id).ok());
    let correlation_id = sent.map_or_else(|| worker.ids.next(unix_time), CorrelationId::Sent);
    let problem = if active.standard_statuses {
        let status = problem.reason().standard_status();
        problem.with_status(status)
    } else {
        problem
    };
    let listener = active.plan.listeners().get(client.listener.get());
    let format = ReplyFormat {
        page: listener.and_then(|listener| page(listener, &problem)),
        form: refused_head::response_form(unread.head),
        correlation_id: &correlation_id,
        method: refused_head::method(unread.head),
        expose_reason: listener.is_some_and(|listener| listener.expose_reasons),
    };
    let answer = raw_answer(&problem, format, UNIX_EPOCH + unix_time);
    client.in_flight.set(client.in_flight.get() + 1);
    worker.metrics.requests_in_flight.add(1);
    worker.metrics.request(Protocol::Http11);
    drop(CompletionGuard {
        worker: Rc::clone(worker),
        record: ExchangeRecord {
            status: Some(answer.status),
            bytes_out: answer.body_bytes as u64,
            complete: true,
            problem: Some(Box::new(problem)),
            access_head: access_head(worker, &active, unread.head),
            error_head: error_head(worker, &active, unread.head),
            ..ExchangeRecord::new(began, correlation_id, Protocol::Http11, client.peer.ip)
        },
        origin: Origin::Plan(active),
        watch: worker.watch_reloads(),
        client: Rc::clone(client),
    });
    answer
}

/// The listener's page. Input that cannot be read as HTTP has the proxy's own.
fn page<'l>(listener: &'l ListenerPlan, problem: &Problem) -> Option<&'l Arc<PageTemplate>> {
    let is_readable = problem.error_type() != ErrorType::Parse;
    let status = problem.status().as_u16();
    is_readable
        .then(|| error_page::find(&listener.error_pages, status))
        .flatten()
}

fn access_head(worker: &Worker, active: &ActivePlan, head: &[u8]) -> Option<AccessLogHead> {
    let format = active.access_format.as_ref()?;
    let facts = refused_head::facts(head);
    worker.logs.borrow_mut().access.access_head(&facts, format)
}

/// The head for the error record, if the access log is off.
fn error_head(worker: &Worker, active: &ActivePlan, head: &[u8]) -> Option<Box<AccessLogHead>> {
    if active.access_format.is_some() || head.is_empty() {
        return None;
    }
    let facts = refused_head::facts(head);
    let errors = &mut worker.logs.borrow_mut().errors;
    let encoded = errors.access_head(&facts, &active.error_format);
    encoded.map(Box::new)
}
