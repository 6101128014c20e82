//! Reads a request's body completely before connecting to its target.

use crate::exchange::Exchange;
use crate::failure::{exchange_problem, timeout_problem};
use crate::upload::body_buffer::memory_problem;
use crate::upload::client_body::ClientBody;
use crate::upload::request_body::{HeldRequest, HoldError, RequestBody};
use http::HeaderValue;
use http::header::CONTENT_LENGTH;
use proxy_errors::{Detail, Problem, Reason};
use proxy_pool::SendError;
use std::future::poll_fn;

/// Reads `body` for `upstream` whole, at most `limit` bytes. Sets `Content-Length`, which the
/// client may not have sent.
pub(crate) async fn buffer_request(
    exchange: &mut Exchange,
    limit: u64,
    upstream: &str,
    mut body: RequestBody,
) -> Result<ClientBody, Problem> {
    let announced = exchange.head.headers.content_length();
    if let Some(announced) = announced.filter(|length| *length > limit) {
        return Err(too_large(announced, limit));
    }
    let mut held = HeldRequest::new(exchange.worker().body_buffer());
    let read = poll_fn(|cx| body.poll_hold(cx, &mut held, limit)).await;
    read.map_err(|fault| match fault {
        HoldError::TooLarge(current) => too_large(current, limit),
        HoldError::MemoryFull => memory_problem(),
        HoldError::Late(timer, after) => timeout_problem(timer, after),
        HoldError::Body(fault) => {
            let unread = exchange.client().fault.get();
            exchange_problem(&SendError::RequestBody, upstream, Some(fault), unread)
        }
    })?;
    let held = held.into_body();
    if held.trailers.is_none() {
        let length = held.bytes.len();
        let headers = &mut exchange.head.headers;
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(ClientBody::Held(held))
}

fn too_large(current: u64, limit: u64) -> Problem {
    Problem::new(Reason::BufferSizeLimit, Detail::Limit { current, limit })
}
