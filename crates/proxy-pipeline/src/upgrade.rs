//! `101 Switching Protocols`: the answer goes to the client, then bytes do. By HTTP/2 it is a 200.

use crate::body::Body;
use crate::exchange::Exchange;
use crate::names;
use crate::policy::response_head;
use crate::request_body::RequestBody;
use crate::websocket;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::RoutePlan;
use proxy_pool::{Connection, ConnectionPermit, Tunnel};

/// What a client asked to switch to.
#[derive(Clone, Debug)]
pub(crate) struct RequestedUpgrade {
    pub(crate) protocol: HeaderValue,
    /// The key that was sent in the client's stead, which knows none.
    pub(crate) key: Option<HeaderValue>,
    /// The client's own key, where it is not sent on.
    pub(crate) theirs: Option<HeaderValue>,
}

impl RequestedUpgrade {
    /// Whether the client takes any success for the beginning of its tunnel. [RFC 8441 §4]
    pub(crate) fn is_bootstrapped(&self) -> bool {
        self.key.is_some()
    }

    fn is_met_by(&self, headers: &HeaderMap) -> bool {
        let agreed = headers.get(UPGRADE).map(HeaderValue::as_bytes);
        let same = agreed.is_some_and(|it| it.eq_ignore_ascii_case(self.protocol.as_bytes()));
        let key = self.key.as_ref();
        let answer = headers.get(SEC_WEBSOCKET_ACCEPT);
        same && key.is_none_or(|key| websocket::is_answered(key, answer))
    }
}

/// Takes the stream out from under `connection` and leaves it with the client's connection.
pub(crate) fn switch(
    exchange: &Exchange,
    route: &RoutePlan,
    connection: Connection<RequestBody>,
    head: http::response::Parts,
    requested: Option<&RequestedUpgrade>,
) -> Result<Response<Body>, Problem> {
    let Some(requested) = requested.filter(|requested| requested.is_met_by(&head.headers)) else {
        return Err(Problem::new(Reason::UnaskedUpgrade, Detail::None));
    };
    Ok(agree(
        exchange,
        route,
        connection.into_tunnel(),
        head,
        requested,
    ))
}

/// Leaves the tunnel that a shared connection has opened with the client's connection.
pub(crate) fn open(
    exchange: &Exchange,
    route: &RoutePlan,
    tunnel: Tunnel,
    mut head: http::response::Parts,
    requested: Option<&RequestedUpgrade>,
) -> Result<Response<Body>, Problem> {
    let Some(requested) = requested else {
        return Err(Problem::new(Reason::UnaskedUpgrade, Detail::None));
    };
    if let Some(key) = &requested.theirs {
        // The target has never seen the key. [RFC 8441 §5]
        let answer = websocket::answer(key);
        head.headers.insert(SEC_WEBSOCKET_ACCEPT, answer);
    }
    Ok(agree(exchange, route, (tunnel, None), head, requested))
}

fn agree(
    exchange: &Exchange,
    route: &RoutePlan,
    (tunnel, permit): (Tunnel, Option<ConnectionPermit>),
    mut head: http::response::Parts,
    requested: &RequestedUpgrade,
) -> Response<Body> {
    response_head::apply(route, &mut head);
    head.headers.remove(names::KEEP_ALIVE);
    // Some say 0 and mean the answer; what follows is a tunnel all the same. [RFC 9110 §8.6]
    head.headers.remove(CONTENT_LENGTH);
    if requested.is_bootstrapped() {
        head.status = StatusCode::OK;
        head.headers.remove(SEC_WEBSOCKET_ACCEPT);
    } else {
        let upgrade = HeaderValue::from_static("upgrade");
        head.status = StatusCode::SWITCHING_PROTOCOLS;
        head.headers.insert(CONNECTION, upgrade);
        head.headers.insert(UPGRADE, requested.protocol.clone());
    }
    exchange
        .client()
        .offer_upgrade(tunnel, permit, route.times.tunnel_idle);
    Response::from_parts(head, Body::bytes(Bytes::new()))
}
