//! Protocol upgrades: `101 Switching Protocols`, or a 200 over HTTP/2.

use crate::exchange::Exchange;
use crate::headers::{names, websocket};
use crate::record::exchange_record::AgreedUpgrade;
use crate::response::body::Body;
use crate::response::response_head;
use crate::upload::request_body::RequestBody;
use bytes::Bytes;
use http::header::{self, CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::RoutePlan;
use proxy_pool::{Connection, ConnectionPermit, Tunnel};

#[derive(Clone, Debug)]
pub(crate) struct RequestedUpgrade {
    pub(crate) protocol: HeaderValue,
    /// The `Sec-WebSocket-Key` that the proxy generated for an HTTP/2 client.
    pub(crate) key: Option<HeaderValue>,
    /// The key of an HTTP/1.1 client, if it is not forwarded.
    pub(crate) theirs: Option<HeaderValue>,
}

impl RequestedUpgrade {
    /// Returns true if the client takes any 2xx for the beginning of its tunnel. [RFC 8441 §4]
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

/// Takes the stream out of `connection` and stores it in the record of the exchange.
pub(crate) fn switch(
    exchange: &mut Exchange,
    route: &RoutePlan,
    connection: Connection<RequestBody>,
    head: http::response::Parts,
    requested: Option<&RequestedUpgrade>,
) -> Result<Response<Body>, Problem> {
    let Some(requested) = requested.filter(|requested| requested.is_met_by(&head.headers)) else {
        return Err(Problem::new(Reason::UnaskedUpgrade, Detail::None));
    };
    let (tunnel, permit) = connection.into_tunnel();
    Ok(agree(exchange, route, tunnel, permit, head, requested))
}

/// Stores the tunnel of a shared connection in the record of the exchange.
pub(crate) fn open(
    exchange: &mut Exchange,
    route: &RoutePlan,
    tunnel: Tunnel,
    mut head: http::response::Parts,
    requested: Option<&RequestedUpgrade>,
) -> Result<Response<Body>, Problem> {
    let Some(requested) = requested else {
        return Err(Problem::new(Reason::UnaskedUpgrade, Detail::None));
    };
    if let Some(key) = &requested.theirs {
        // The target has never received the key. [RFC 8441 §5]
        let answer = websocket::answer(key);
        head.headers.insert(SEC_WEBSOCKET_ACCEPT, answer);
    }
    Ok(agree(exchange, route, tunnel, None, head, requested))
}

/// Removes the fields that describe the body of a refused extended CONNECT, which is not forwarded.
pub(super) fn remove_content_fields(headers: &mut HeaderMap) {
    const OF_CONTENT: [HeaderName; 9] = [
        CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::CONTENT_ENCODING,
        header::CONTENT_LANGUAGE,
        header::CONTENT_RANGE,
        header::ETAG,
        header::LAST_MODIFIED,
        HeaderName::from_static("content-digest"),
        HeaderName::from_static("repr-digest"),
    ];
    for name in &OF_CONTENT {
        headers.remove(name);
    }
}

fn agree(
    exchange: &mut Exchange,
    route: &RoutePlan,
    tunnel: Tunnel,
    permit: Option<ConnectionPermit>,
    mut head: http::response::Parts,
    requested: &RequestedUpgrade,
) -> Response<Body> {
    response_head::apply(exchange.response_edits(route), &mut head);
    head.headers.remove(names::KEEP_ALIVE);
    // Some targets send a length of 0; a tunnel follows all the same. [RFC 9110 §8.6]
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
    exchange.record().upgrade = Some(Box::new(AgreedUpgrade {
        tunnel,
        permit,
        idle: route.timeouts.tunnel_idle,
    }));
    Response::from_parts(head, Body::bytes(Bytes::new()))
}
