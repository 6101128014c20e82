//! Rewrites a client's request head for the upstream.

use crate::connection_info::ExtendedConnectProtocol;
use crate::correlation::never_indexed;
use crate::exchange::Exchange;
use crate::forward::destination::Destination;
use crate::forwarded_headers::ForwardedHeaders;
use crate::host_value::HostValue;
use crate::known_headers::{self, KnownHeaders};
use crate::policy::header_edits;
use crate::state::Worker;
use crate::upgrade::RequestedUpgrade;
use crate::{forwarded_headers, names, websocket};
use h2::ext::Protocol;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, SEC_WEBSOCKET_KEY, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Uri, Version};
use proxy_plan::UpstreamPlan;
use std::str::FromStr;

const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");

/// The framing of the request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// None, or by a length in the head.
    Known,
    /// In chunks.
    Chunked,
}

/// Removes hop-by-hop fields, adds the forwarding fields, and applies the route's edits. Returns
/// the protocol of a requested upgrade, if any.
pub(crate) fn apply(
    exchange: &mut Exchange,
    to: Destination<'_>,
    length: Length,
) -> Option<RequestedUpgrade> {
    let adds_via = exchange.listener().is_some_and(|listener| listener.via);
    let Exchange {
        head,
        known,
        completion,
        forwarded,
        ..
    } = exchange;
    let upgrade = wanted(head, known, to.upstream, &completion.worker);
    let trailers = known_headers::takes_trailers(&head.headers, known);
    let lacks_host = into_origin_form(head, known, &completion.worker.host);
    let headers = &mut head.headers;
    known_headers::strip(headers, known);
    if known.has(KnownHeaders::PADDED_LENGTH)
        && let Some(length) = known.content_length
    {
        // Some servers would read it as an octal number.
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let host = known.host.take();
    if host.is_none() {
        headers.insert(HOST, own_host(to));
    }
    let via = adds_via.then(|| forwarded_headers::via(head.version));
    let edits = &to.route.request_headers;
    let named = KnownHeaders::FORWARDING | KnownHeaders::CORRELATION_ID;
    if edits.is_empty() && !to.upstream.http2 && !known.has(named) {
        *forwarded = Some(ForwardedHeaders {
            via,
            host,
            lacks_host,
        });
    } else {
        if let Some(host) = host.as_ref().filter(|_| lacks_host) {
            headers.insert(HOST, host.clone());
        }
        forwarded_headers::apply(&completion.client.peer, headers, known, via, host);
        let id = completion.record.correlation_id.clone();
        headers.insert(names::CORRELATION_ID, never_indexed(id));
        header_edits::apply(edits, headers);
    }
    if to.upstream.http2 {
        if trailers {
            headers.insert(TE, TRAILERS);
        }
        into_http2(head, to, upgrade.as_ref());
        return upgrade;
    }
    if let Some(RequestedUpgrade { protocol, key, .. }) = &upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol.clone());
        if let Some(key) = key {
            headers.insert(SEC_WEBSOCKET_KEY, key.clone());
        }
    } else if trailers {
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
        headers.insert(TE, TRAILERS);
    }
    if length == Length::Chunked {
        headers.insert(TRANSFER_ENCODING, CHUNKED);
    }
    upgrade
}

/// The requested upgrade.
fn wanted(
    head: &Parts,
    known: &KnownHeaders,
    upstream: &UpstreamPlan,
    worker: &Worker,
) -> Option<RequestedUpgrade> {
    if head.version == Version::HTTP_11 {
        if head.method == Method::HEAD {
            // The response to HEAD has no body, and so no protocol behind it.
            return None;
        }
        let protocol = known_headers::wanted_upgrade(&head.headers, known)?;
        let key = head.headers.get(SEC_WEBSOCKET_KEY);
        let theirs = key.filter(|_| upstream.http2).cloned();
        // Over HTTP/2 only WebSocket can be tunnelled; other requests are forwarded without the
        // upgrade.
        let is_known = theirs.is_some() && protocol.as_bytes().eq_ignore_ascii_case(b"websocket");
        return (is_known || !upstream.http2).then_some(RequestedUpgrade {
            protocol,
            key: None,
            theirs,
        });
    }
    let ExtendedConnectProtocol(protocol) = head.extensions.get()?;
    Some(RequestedUpgrade {
        protocol: protocol.clone(),
        key: Some(websocket::key(worker.ids.random_bytes())),
        theirs: None,
    })
}

/// Puts the host into `:authority`, as HTTP/2 requires. [RFC 9113 §8.3.1]
fn into_http2(head: &mut Parts, to: Destination<'_>, requested: Option<&RequestedUpgrade>) {
    let mut parts = std::mem::take(&mut head.uri).into_parts();
    let host = head.headers.remove(HOST);
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
        head.extensions.insert(Protocol::from_static("websocket"));
        head.headers.remove(SEC_WEBSOCKET_KEY);
        head.headers.remove(CONTENT_LENGTH);
    }
}

/// Rewrites the target to origin form, and records its host in `known`. Returns whether no field
/// has that host yet, as with HTTP/2. [RFC 9112 §3.2.1, §3.2.2]
fn into_origin_form(head: &mut Parts, known: &mut KnownHeaders, hosts: &HostValue) -> bool {
    let Some(authority) = head.uri.authority() else {
        return false;
    };
    let mut lacks_host = false;
    if let Some(host) = hosts.get(authority.as_str()) {
        match known.host.replace(host.clone()) {
            Some(_) => drop(head.headers.insert(HOST, host)),
            None => lacks_host = true,
        }
    }
    let path = head.uri.path_and_query().cloned().map(rooted);
    head.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    lacks_host
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
