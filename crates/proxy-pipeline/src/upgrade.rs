//! `101 Switching Protocols`: the answer goes to the client, then bytes do.

use crate::body::Body;
use crate::client::{Client, Switched};
use crate::closing::Closing;
use crate::exchange::Exchange;
use crate::names;
use crate::request_body::RequestBody;
use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Response};
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::RoutePlan;
use proxy_pool::Connection;

/// Takes the stream out from under `connection` and leaves it with the client's connection.
pub(crate) fn switch(
    exchange: &Exchange,
    route: &RoutePlan,
    connection: Connection<RequestBody>,
    mut head: http::response::Parts,
    asked: Option<&HeaderValue>,
) -> Result<Response<Body>, Problem> {
    let agreed = head.headers.get(UPGRADE).cloned();
    let same = |asked: &&HeaderValue| {
        let agreed = agreed.as_ref().map(HeaderValue::as_bytes);
        agreed.is_some_and(|agreed| agreed.eq_ignore_ascii_case(asked.as_bytes()))
    };
    let Some(protocol) = asked.filter(same) else {
        return Err(Problem::new(Reason::UnaskedUpgrade, Detail::None));
    };
    let Some((tunnel, permit)) = connection.into_tunnel() else {
        return Err(Problem::new(Reason::UpstreamClosedEarly, Detail::None));
    };
    let protocol = protocol.clone();
    crate::policy::response_head::apply(route, &mut head);
    head.headers.remove(names::KEEP_ALIVE);
    head.headers
        .insert(CONNECTION, HeaderValue::from_static("upgrade"));
    head.headers.insert(UPGRADE, protocol);
    exchange
        .client()
        .offer(tunnel, permit, route.times.tunnel_idle);
    Ok(Response::from_parts(head, Body::bytes(Bytes::new())))
}

impl Client {
    /// Keeps the request open, though its response has no body, until the tunnel ends.
    pub(crate) fn hold_while_switched(
        &self,
        closing: Closing,
        response: Response<Body>,
    ) -> Response<Body> {
        match self.take_offer() {
            Some((tunnel, permit, idle)) => {
                self.switch(Switched {
                    tunnel,
                    idle,
                    permit,
                    closing,
                });
                response
            }
            None => response.map(|body| body.closing(closing)),
        }
    }
}
