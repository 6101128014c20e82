//! Refuses requests on connections above the route's limit.

use crate::exchange::Exchange;
use crate::limits::request_permits::RoutePermit;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{ClientKey, ClientShareLimit, ClientSharePermit, LimitReached};
use std::rc::Rc;

/// Counts the connection against the route at this position, until the response's body ends.
#[inline]
pub(crate) fn admit(exchange: &mut Exchange, route: usize) -> Result<(), Problem> {
    let limits = exchange.active().limits.get(route);
    let Some(limit) = limits.and_then(|limits| limits.connections.as_ref()) else {
        return Ok(());
    };
    let client = exchange.client();
    let taken = if client.exclusive {
        acquire(exchange, limit).map(RoutePermit::Own)
    } else {
        shared(exchange, limit).map(RoutePermit::Shared)
    };
    let permit = taken.map_err(|full| {
        let (current, limit) = (u64::from(full.wanted()), u64::from(full.max));
        Problem::new(
            Reason::RouteConnectionLimit,
            Detail::Limit { current, limit },
        )
    })?;
    exchange.record().permits.route = Some(permit);
    Ok(())
}

#[inline]
fn acquire(
    exchange: &Exchange,
    limit: &ClientShareLimit,
) -> Result<ClientSharePermit, LimitReached> {
    limit.acquire(|| ClientKey::from(exchange.completion.record.client_ip))
}

fn shared(
    exchange: &Exchange,
    limit: &ClientShareLimit,
) -> Result<Rc<ClientSharePermit>, LimitReached> {
    let client = exchange.client();
    if let Some(permit) = client.route_permit(limit) {
        return Ok(permit);
    }
    let permit = Rc::new(acquire(exchange, limit)?);
    client.keep_route_permit(&permit);
    Ok(permit)
}
