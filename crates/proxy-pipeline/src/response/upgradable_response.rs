//! The reply to a request: its response, and the tunnel after a protocol switch.

use crate::headers::names;
use crate::record::completion::CompletionGuard;
use crate::record::exchange_record::AgreedUpgrade;
use crate::response::alt_svc;
use crate::response::body::Body;
use crate::response::tunnel::SwitchedConnection;
use http::header::CONNECTION;
use http::{HeaderValue, Response};
use proxy_telemetry::Protocol;

/// The reply to a request.
#[derive(Debug)]
pub struct Reply {
    /// The response.
    pub response: Response<Body>,
    /// The connection after a protocol switch: to be joined with the client's once the head of the
    /// response is sent. The exchange ends with it, not with the response, which has no body then.
    pub upgrade: Option<Box<SwitchedConnection>>,
}

impl Reply {
    /// Sets the correlation ID of `response`, and ties the end of the exchange to the end of its
    /// body, or of the tunnel after it.
    pub(crate) fn finish(
        mut completion: Box<CompletionGuard>,
        is_grpc: bool,
        mut response: Response<Body>,
    ) -> Self {
        let agreed = completion.record.upgrade.take();
        let CompletionGuard {
            client,
            worker,
            record,
            ..
        } = &mut *completion;
        let headers = response.headers_mut();
        // HTTP/1.x takes the field from the body, which saves an insertion.
        if !client.exclusive || agreed.is_some() {
            headers.insert(names::CORRELATION_ID, record.correlation_id.to_value());
        }
        if record.protocol != Protocol::Http3 {
            alt_svc::apply(client, worker, headers);
        }
        // A connection that becomes a tunnel ends with it. A 426 lists its `Upgrade` in the same
        // field.
        let may_close = client.exclusive && agreed.is_none();
        if may_close && (client.should_close(worker) || client.close.get()) {
            headers.append(CONNECTION, HeaderValue::from_static("close"));
        }
        // HTTP/1.x takes these from the body too.
        if !(client.exclusive && agreed.is_none())
            && let Some(rate) = record.rate.take()
        {
            rate.write(headers);
        }
        if record.parts.upstream.is_none() {
            client.earn_reset();
        }
        record.status = Some(response.status());
        match agreed {
            None => Self {
                response: response.map(|body| with_completion(body, completion, is_grpc)),
                upgrade: None,
            },
            Some(agreed) => Self {
                response,
                upgrade: Some(Box::new(switched(*agreed, completion))),
            },
        }
    }
}

fn with_completion(body: Body, completion: Box<CompletionGuard>, is_grpc: bool) -> Body {
    let has_trailers = matches!(
        completion.record.protocol,
        Protocol::Http2 | Protocol::Http3
    );
    let body = body.with_completion(completion);
    if has_trailers && is_grpc {
        return body.with_errors_in_trailers();
    }
    body
}

/// Keeps the exchange open until the tunnel ends, although its response has no body. It no longer
/// counts as a request in flight.
fn switched(agreed: AgreedUpgrade, mut completion: Box<CompletionGuard>) -> SwitchedConnection {
    let AgreedUpgrade {
        tunnel,
        permit,
        idle,
    } = agreed;
    completion.become_tunnel();
    completion.origin.extract(completion.record.parts);
    SwitchedConnection {
        tunnel,
        idle,
        permit,
        completion,
    }
}
