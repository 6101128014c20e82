//! Rewrites a client's request head for the upstream.

use crate::exchange::Exchange;
use crate::forward::destination::Destination;
use crate::forward::upgrade::RequestedUpgrade;
use crate::headers::forwarded_headers::{self, ForwardedHeaders};
use crate::headers::hop_by_hop::{self, EndToEndHeaders};
use crate::headers::host_value::HostValue;
use crate::headers::inbound_head::InboundHead;
use crate::headers::indexed_headers::KnownHeaders;
use crate::headers::{header_edits, names, websocket};
use crate::worker::connection_info::ExtendedConnectProtocol;
use crate::worker::state::Worker;
use h2::ext::Protocol;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, SEC_WEBSOCKET_KEY, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Uri, Version};
use proxy_http1::RawTarget;
use proxy_plan::{RoutePlan, UpstreamPlan};
use std::str::FromStr;

const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");

/// The framing of the request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// There is no body.
    None,
    /// The head has a length.
    Known,
    /// The body is sent in chunks.
    Chunked,
}

impl Length {
    /// Returns true if trailers may follow the body: over HTTP/1.1 only chunks have an end that is
    /// no byte of the connection's next message. [RFC 9110 §6.5]
    const fn takes_trailers(self, http2: bool) -> bool {
        match self {
            Self::None => false,
            Self::Known => http2,
            Self::Chunked => true,
        }
    }
}

/// Takes the fields for the target: without hop-by-hop fields, with the forwarding fields and the
/// route's edits. Returns also the protocol of a requested upgrade, if any.
pub(crate) fn apply(
    exchange: &mut Exchange,
    to: Destination<'_>,
    length: Length,
) -> (HeaderMap, Option<RequestedUpgrade>) {
    let adds_via = exchange.listener().is_some_and(|listener| listener.via);
    let Exchange {
        head,
        completion,
        forwarded,
        has_believed_claims,
        edits,
        ..
    } = exchange;
    let upgrade = wanted(head, to.upstream, &completion.worker);
    let trailers = hop_by_hop::takes_trailers(&head.headers);
    let edits = header_edits::for_request(edits.as_deref(), to.route);
    let is_traced = completion.record.trace.is_some();
    if is_traced || !edits.is_empty() || !passes_fields(head, to.upstream) {
        // The fields are edited in their map.
        head.headers.as_map();
    }
    let authority = into_origin_form(&mut head.uri, &completion.worker.host);
    rewrite_target(head, to.route);
    let EndToEndHeaders {
        map: mut headers,
        verbatim,
        host,
        has_claims,
        has_correlation_id,
    } = end_to_end(head, length.takes_trailers(to.upstream.http2));
    let has_claims = has_claims && !*has_believed_claims;
    // No field has the host of the target yet, as with HTTP/2. [RFC 9112 §3.2.2]
    let lacks_host = host.is_none() && authority.is_some();
    let host = insert_host(&mut headers, authority, host, to);
    let via = adds_via.then(|| forwarded_headers::via(head.version));
    if edits.is_empty() && !to.upstream.http2 && !has_claims && !has_correlation_id {
        *forwarded = Some(ForwardedHeaders {
            verbatim,
            via,
            host,
            lacks_host,
        });
    } else {
        if let Some(host) = host.as_ref().filter(|_| lacks_host) {
            headers.insert(HOST, host.clone());
        }
        let peer = &completion.client.peer;
        forwarded_headers::apply(peer, &mut headers, has_claims, via, host);
        let id = completion.record.correlation_id.to_value();
        headers.insert(names::CORRELATION_ID, id);
        header_edits::apply_to_request(edits, &mut headers);
    }
    if to.upstream.http2 {
        into_http2(head, &mut headers, to, upgrade.as_ref(), trailers);
    } else {
        insert_http1_fields(&mut headers, upgrade.as_ref(), trailers, length);
    }
    (headers, upgrade)
}

/// Returns true if the fields of `head` can be forwarded as received: the proxy replaces or removes
/// none of them, except `Connection`.
fn passes_fields(head: &InboundHead, upstream: &UpstreamPlan) -> bool {
    !upstream.http2
        && head.uri.authority().is_none()
        && head.headers.host().is_some()
        && !head.headers.has(KnownHeaders::REWRITTEN)
}

/// Adds the fields of this connection and of the body's framing over HTTP/1.1.
#[inline]
fn insert_http1_fields(
    headers: &mut HeaderMap,
    upgrade: Option<&RequestedUpgrade>,
    takes_trailers: bool,
    length: Length,
) {
    if let Some(RequestedUpgrade { protocols, key, .. }) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocols.clone());
        if let Some(key) = key {
            headers.insert(SEC_WEBSOCKET_KEY, key.clone());
        }
    } else if takes_trailers {
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
        headers.insert(TE, TRAILERS);
    }
    if length == Length::Chunked {
        headers.insert(TRANSFER_ENCODING, CHUNKED);
    }
}

/// The `Host` for the target: the authority of the request target if present, else the client's
/// `Host`. Without either, the target's own address.
#[inline]
fn insert_host(
    headers: &mut HeaderMap,
    authority: Option<HeaderValue>,
    host: Option<HeaderValue>,
    to: Destination<'_>,
) -> Option<HeaderValue> {
    let host = match (authority, host) {
        (Some(authority), Some(_)) => {
            headers.insert(HOST, authority.clone());
            Some(authority)
        }
        (authority, host) => authority.or(host),
    };
    if host.is_none() {
        headers.insert(HOST, own_host(to));
    }
    host
}

/// Takes the fields of `head` that are forwarded to the target: without `Trailer` unless trailers
/// may follow.
#[inline]
fn end_to_end(head: &mut InboundHead, takes_trailers: bool) -> EndToEndHeaders {
    let mut headers = std::mem::take(&mut head.headers);
    if headers.has(KnownHeaders::TRAILER) && !takes_trailers {
        headers.remove(&TRAILER);
    }
    if headers.has(KnownHeaders::PADDED_LENGTH)
        && let Some(length) = headers.content_length()
    {
        // Some servers would read it as an octal number.
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    hop_by_hop::end_to_end(headers)
}

/// The requested upgrade.
fn wanted(
    head: &InboundHead,
    upstream: &UpstreamPlan,
    worker: &Worker,
) -> Option<RequestedUpgrade> {
    if head.version == Version::HTTP_11 {
        if head.method == Method::HEAD {
            // The response to HEAD has no body, and so no protocol after it.
            return None;
        }
        let protocols = hop_by_hop::wanted_upgrade(&head.headers)?;
        let key = head.headers.as_map().get(SEC_WEBSOCKET_KEY);
        let theirs = key.filter(|_| upstream.http2).cloned();
        // Over HTTP/2 only WebSocket can be tunnelled; other requests are forwarded without the
        // upgrade.
        let is_websocket = |name: &[u8]| name.eq_ignore_ascii_case(websocket::PROTOCOL.as_bytes());
        let is_known = theirs.is_some() && hop_by_hop::list_members(&protocols).any(is_websocket);
        return (is_known || !upstream.http2).then_some(RequestedUpgrade {
            protocols,
            key: None,
            theirs,
        });
    }
    let ExtendedConnectProtocol(protocol) = head.extensions.get()?;
    Some(RequestedUpgrade {
        protocols: protocol.clone(),
        key: Some(websocket::key(worker.ids.random_bytes())),
        theirs: None,
    })
}

/// Puts the host into `:authority`, as HTTP/2 requires. [RFC 9113 §8.3.1]
fn into_http2(
    head: &mut InboundHead,
    headers: &mut HeaderMap,
    to: Destination<'_>,
    requested: Option<&RequestedUpgrade>,
    takes_trailers: bool,
) {
    if takes_trailers {
        headers.insert(TE, TRAILERS);
    }
    let mut parts = std::mem::take(&mut head.uri).into_parts();
    let host = headers.remove(HOST);
    let authority = host.and_then(|host| Authority::from_maybe_shared(host).ok());
    parts.authority = authority.or_else(|| {
        let target = to.upstream.targets.get(usize::from(to.choice.target))?;
        Authority::from_str(&target.authority).ok()
    });
    parts.scheme = Some(if to.upstream.tls {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    });
    if parts.path_and_query.is_none() {
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
    }
    head.uri = Uri::from_parts(parts).unwrap_or_default();
    if requested.is_some() {
        head.method = Method::CONNECT;
        head.extensions
            .insert(Protocol::from_static(websocket::PROTOCOL));
        headers.remove(SEC_WEBSOCKET_KEY);
        headers.remove(CONTENT_LENGTH);
    }
}

/// Rewrites the target to origin form. Returns its host, if it had one. [RFC 9112 §3.2.1]
fn into_origin_form(target: &mut Uri, hosts: &HostValue) -> Option<HeaderValue> {
    let host = hosts.get(target.authority()?.as_str());
    let path = target.path_and_query().cloned().map(rooted);
    *target = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    host
}

/// Replaces the client's path by the upstream's path, if the route rewrites it.
#[inline]
fn rewrite_target(head: &mut InboundHead, route: &RoutePlan) {
    let Some(rewrite) = &route.rewrite else {
        return;
    };
    let target = head.uri.path_and_query();
    if let Some(target) = target.and_then(|target| rewrite.target(target)) {
        head.uri = Uri::from(target);
        head.extensions.remove::<RawTarget>();
    }
}

/// Inserts the missing path of a target with only a query.
fn rooted(target: PathAndQuery) -> PathAndQuery {
    if !target.as_str().starts_with('?') {
        return target;
    }
    let whole = ["/", target.as_str()].concat();
    PathAndQuery::try_from(whole).unwrap_or(target)
}

/// The target's own address, for an HTTP/1.0 client without a host: HTTP/1.1 requires one. [RFC
/// 9112 §3.2]
#[cold]
fn own_host(to: Destination<'_>) -> HeaderValue {
    let target = to.upstream.targets.get(usize::from(to.choice.target));
    let label = target.map(|target| HeaderValue::from_str(&target.authority));
    label
        .and_then(Result::ok)
        .unwrap_or(HeaderValue::from_static(""))
}
