//! Counts a tunnel through a stream of HTTP/2 as a connection of its client, as it would count over
//! HTTP/1.1.

use crate::exchange::Exchange;
use crate::headers::inbound_head::InboundHead;
use crate::limits::request_permits::TunnelPermits;
use crate::worker::connection_info::ExtendedConnectProtocol;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{ClientKey, LimitReached};

/// Returns true for an extended CONNECT: a 2xx response to it opens a tunnel. [RFC 8441 §4]
#[inline]
pub(crate) fn is_wanted(head: &InboundHead) -> bool {
    head.extensions.get::<ExtendedConnectProtocol>().is_some()
}

/// Takes the permits of a tunnel that the request wants, until the tunnel ends; without a tunnel,
/// until the response's body ends.
#[inline]
pub(crate) fn admit(exchange: &mut Exchange) -> Result<(), Problem> {
    if exchange.client().exclusive || !is_wanted(&exchange.head) {
        return Ok(());
    }
    take(exchange)
}

/// Takes the connection's permit, and the client's unless it is behind a trusted proxy, which
/// connects for many clients.
#[cold]
fn take(exchange: &mut Exchange) -> Result<(), Problem> {
    let shared = &exchange.worker().shared;
    let connection = shared.connections.acquire();
    let connection = connection.map_err(|full| over(Reason::ConnectionLimit, full))?;
    let peer = &exchange.client().peer;
    let client = (!peer.trusted.get()).then(|| shared.clients.acquire(ClientKey::from(peer.ip)));
    let client = client.transpose();
    let client = client.map_err(|full| over(Reason::ClientConnectionLimit, full))?;
    let permits = TunnelPermits { connection, client };
    exchange.record().permits.tunnel = Some(Box::new(permits));
    Ok(())
}

fn over(reason: Reason, full: LimitReached) -> Problem {
    let (current, limit) = (u64::from(full.wanted()), u64::from(full.max));
    Problem::new(reason, Detail::Limit { current, limit })
}
