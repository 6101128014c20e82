//! Makes a client's request head one that may go upstream.

use crate::client::Bootstrapped;
use crate::exchange::Exchange;
use crate::forward::Destination;
use crate::hop::{self, Found};
use crate::policy::header_edits;
use crate::state::Worker;
use crate::upgrade::Asked;
use crate::{forwarding, names, websocket};
use http::header::{CONNECTION, HOST, SEC_WEBSOCKET_KEY, TE, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri, Version};

const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");

/// How the body of the request is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// There is none, or its length is in the head.
    Known,
    /// It comes in chunks.
    Chunked,
}

/// Removes what concerned the client's connection, adds what upstreams are told, and applies the
/// route's edits. Gives the protocol that the client wants to switch to, if any.
pub(crate) fn apply(exchange: &mut Exchange, to: Destination<'_>, length: Length) -> Option<Asked> {
    let Exchange {
        head,
        found,
        closing,
        ..
    } = exchange;
    let upgrade = wanted(head, found, &closing.worker);
    let trailers = hop::takes_trailers(&head.headers, found);
    into_origin_form(head, found);
    let headers = &mut head.headers;
    hop::strip(headers, found);
    let host = found.host.take();
    if host.is_none() {
        headers.insert(HOST, own_host(to));
    }
    let via = forwarding::via(head.version);
    forwarding::apply(&closing.client.peer, headers, found, via, host);
    headers.insert(names::CORRELATION_ID, closing.facts.correlation_id.clone());
    header_edits::apply(&to.route.request_headers, headers);
    if let Some(Asked { protocol, key }) = &upgrade {
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
        // Said outright: hyper takes a GET without it to have no body.
        headers.insert(TRANSFER_ENCODING, CHUNKED);
    }
    upgrade
}

/// What the client wants to switch to.
fn wanted(head: &Parts, found: &Found, worker: &Worker) -> Option<Asked> {
    if head.version == Version::HTTP_11 {
        let protocol = hop::wanted_upgrade(&head.headers, found)?;
        return Some(Asked {
            protocol,
            key: None,
        });
    }
    let Bootstrapped(protocol) = head.extensions.get()?;
    Some(Asked {
        protocol: protocol.clone(),
        key: Some(websocket::key(worker.ids.random_bytes())),
    })
}

/// The target as origin servers want it, the host in `Host`. [RFC 9112 §3.2.1, §3.2.2]
fn into_origin_form(head: &mut Parts, found: &mut Found) {
    let Some(authority) = head.uri.authority() else {
        return;
    };
    if let Ok(host) = HeaderValue::from_str(without_userinfo(authority.as_str())) {
        found.host = Some(host.clone());
        head.headers.insert(HOST, host);
    }
    let path = head.uri.path_and_query().cloned();
    head.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
}

/// The target's own address, for a client of HTTP/1.0 that names no host: HTTP/1.1 asks for one.
/// [RFC 9112 §3.2]
#[cold]
fn own_host(to: Destination<'_>) -> HeaderValue {
    let target = to.upstream.targets.get(usize::from(to.target));
    let label = target.map(|target| HeaderValue::from_str(&target.label));
    label
        .and_then(Result::ok)
        .unwrap_or(HeaderValue::from_static(""))
}

fn without_userinfo(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}
