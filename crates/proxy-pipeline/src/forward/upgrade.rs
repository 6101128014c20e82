//! Protocol upgrades: `101 Switching Protocols`, or a 200 over HTTP/2.

use crate::exchange::Exchange;
use crate::headers::hop_by_hop::list_members;
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

/// An upgrade that a client has requested.
#[derive(Clone, Debug)]
pub(crate) struct RequestedUpgrade {
    /// Acceptable protocols, as a list without `h2c`. [RFC 9110 §7.8]
    pub(crate) protocols: HeaderValue,
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

    /// The protocol to which a target with these fields has switched; `None` if it is none of the
    /// requested ones.
    fn agreed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut lines = headers.get_all(UPGRADE).iter();
        let agreed = lines.next()?;
        // A list names layers of protocols, of which the client must have requested all.
        let mut layers = list_members(agreed).peekable();
        layers.peek()?;
        let is_requested = |layer: &[u8]| {
            let mut requested = list_members(&self.protocols);
            requested.any(|protocol| protocol.eq_ignore_ascii_case(layer))
        };
        let is_met = lines.next().is_none() && layers.all(is_requested);
        let key = self.key.as_ref();
        let answer = headers.get(SEC_WEBSOCKET_ACCEPT);
        let is_answered = key.is_none_or(|key| websocket::is_answered(key, answer));
        (is_met && is_answered).then(|| agreed.clone())
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
    let agreed = requested.and_then(|requested| {
        let protocol = requested.agreed(&head.headers)?;
        Some((requested, protocol))
    });
    let Some((requested, protocol)) = agreed else {
        return Err(Problem::new(Reason::UnaskedUpgrade, Detail::None));
    };
    let (tunnel, permit) = connection.into_tunnel();
    let agreed = Agreed {
        requested,
        protocol,
        head,
    };
    Ok(agree(exchange, route, tunnel, permit, agreed))
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
    let agreed = Agreed {
        requested,
        protocol: HeaderValue::from_static(websocket::PROTOCOL),
        head,
    };
    Ok(agree(exchange, route, tunnel, None, agreed))
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

/// A switch of protocols by the target.
struct Agreed<'r> {
    requested: &'r RequestedUpgrade,
    /// The protocol that the target has chosen.
    protocol: HeaderValue,
    head: http::response::Parts,
}

fn agree(
    exchange: &mut Exchange,
    route: &RoutePlan,
    tunnel: Tunnel,
    permit: Option<ConnectionPermit>,
    agreed: Agreed<'_>,
) -> Response<Body> {
    let Agreed {
        requested,
        protocol,
        mut head,
    } = agreed;
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
        head.headers.insert(UPGRADE, protocol);
    }
    exchange.record().upgrade = Some(Box::new(AgreedUpgrade {
        tunnel,
        permit,
        idle: route.timeouts.tunnel_idle,
    }));
    Response::from_parts(head, Body::bytes(Bytes::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_chooses_among_the_requested_protocols() {
        let requested = RequestedUpgrade {
            protocols: HeaderValue::from_static("websocket, HTTP/3.0, foo/1"),
            key: None,
            theirs: None,
        };
        let cases: &[(&[&'static str], Option<&str>)] = &[
            (&["websocket"], Some("websocket")),
            (&["WebSocket"], Some("WebSocket")),
            (&["foo/1"], Some("foo/1")),
            (&["foo/1, websocket"], Some("foo/1, websocket")),
            (&["foo/2"], None),
            (&["h2c"], None),
            (&["websocket, h2c"], None),
            (&["websocket", "foo/1"], None),
            (&[""], None),
            (&[], None),
        ];
        for (lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for line in lines.iter().copied() {
                headers.append(UPGRADE, HeaderValue::from_static(line));
            }
            let agreed = requested.agreed(&headers);
            assert_eq!(agreed.as_ref().map(|it| it.to_str().unwrap()), *expected);
        }
    }
}
