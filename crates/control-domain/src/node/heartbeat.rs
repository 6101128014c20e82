//! Limits on the contents of heartbeats and events.

pub(crate) mod received;

use crate::access::refusal::Refusal;
use control_wire::{
    ConnectionTraffic, EventsRequest, HeartbeatRequest, NodeEvent, NodeStatus, RouteTraffic,
    Traffic,
};

const MAX_CPU_PERCENT: f64 = 100_000.0;
const VERSION_CHARS: usize = 100;
const MAX_DIAGNOSTICS: usize = 100;
const MESSAGE_CHARS: usize = 1_000;
const MAX_ROUTES: usize = 500;
const MAX_REASONS: usize = 100;
const MAX_STATUSES: usize = 100;
const MAX_SIZE_CLASS: u8 = 31;
const NAME_BYTES: usize = 256;
/// Maximum plausible count: more requests than a node serves in a year at ten million a second.
const MAX_COUNT: u64 = 1_000_000_000_000_000;
const MAX_EVENTS: usize = 100;
const KIND_BYTES: usize = 64;

/// Checks that a heartbeat is within its limits.
///
/// # Errors
///
/// [`Refusal::Invalid`] for the first field beyond its limit.
pub fn check_heartbeat(request: &HeartbeatRequest) -> Result<(), Refusal> {
    let HeartbeatRequest {
        health,
        version,
        status,
        traffic,
        instance: _,
    } = request;
    if !(0.0..=MAX_CPU_PERCENT).contains(&health.cpu_percent) {
        return Err(Refusal::invalid("health.cpu_percent", "is not 0 to 100000"));
    }
    if version
        .as_ref()
        .is_some_and(|text| !is_line(text, VERSION_CHARS))
    {
        return Err(Refusal::invalid("version", "is not up to 100 characters"));
    }
    status.as_ref().map_or(Ok(()), check_status)?;
    traffic.as_ref().map_or(Ok(()), check_traffic)
}

/// Checks that a batch of events is within its limits.
///
/// # Errors
///
/// [`Refusal::Invalid`] for an empty batch, for more than 100 events, or for a malformed event.
pub fn check_events(request: &EventsRequest) -> Result<(), Refusal> {
    let EventsRequest { events } = request;
    if !(1..=MAX_EVENTS).contains(&events.len()) {
        return Err(Refusal::invalid("events", "are not 1 to 100"));
    }
    for event in events {
        let NodeEvent { at, kind, message } = event;
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        if !(1..=KIND_BYTES).contains(&kind.len()) || !kind.bytes().all(plain) {
            let reason = "is not 1 to 64 characters of [a-z0-9._-]";
            return Err(Refusal::invalid("events.kind", reason));
        }
        if !is_text(message, MESSAGE_CHARS) {
            let reason = "is not up to 1000 characters without NUL";
            return Err(Refusal::invalid("events.message", reason));
        }
        if at.as_millisecond() < 0 {
            return Err(Refusal::invalid("events.at", "is before 1970"));
        }
    }
    Ok(())
}

fn check_status(status: &NodeStatus) -> Result<(), Refusal> {
    let NodeStatus {
        desired: _,
        staged: _,
        active: _,
        last_good: _,
        order,
        verdict,
        diagnostics,
        altered: _,
    } = status;
    if order.is_some_and(|order| i64::try_from(order).is_err()) {
        return Err(Refusal::invalid("status.order", "is too large"));
    }
    if verdict.is_some() && order.is_none() {
        return Err(Refusal::invalid("status.order", "is needed by the verdict"));
    }
    let good = |text: &String| is_text(text, MESSAGE_CHARS);
    if MAX_DIAGNOSTICS < diagnostics.len() || !diagnostics.iter().all(good) {
        let reason = "are not up to 100 texts of up to 1000 characters without NUL";
        return Err(Refusal::invalid("status.diagnostics", reason));
    }
    Ok(())
}

fn check_traffic(traffic: &Traffic) -> Result<(), Refusal> {
    let Traffic {
        routes,
        connections,
    } = traffic;
    if MAX_ROUTES < routes.len() || !routes.keys().all(|name| is_name(name)) {
        let reason = "are not up to 500 with names of 1 to 256 bytes";
        return Err(Refusal::invalid("traffic.routes", reason));
    }
    if let Some(connections) = connections {
        let ConnectionTraffic {
            accepted,
            handshakes_completed,
            handshakes_failed,
            proxy_headers_failed,
        } = connections;
        let counts = [
            accepted,
            handshakes_completed,
            handshakes_failed,
            proxy_headers_failed,
        ];
        if counts.into_iter().any(|count| MAX_COUNT < *count) {
            let reason = "has a counter above 1000000000000000";
            return Err(Refusal::invalid("traffic.connections", reason));
        }
    }
    routes.values().try_for_each(check_route)
}

fn check_route(route: &RouteTraffic) -> Result<(), Refusal> {
    let RouteTraffic {
        requests,
        errors,
        reasons,
        latency,
        statuses,
        bytes_in,
        bytes_out,
        latency_us,
        first_byte,
        sizes,
    } = route;
    let counts = [requests, errors].into_iter().chain(latency);
    let counts = counts.chain(reasons.values()).chain(statuses.values());
    let counts = counts.chain(first_byte.iter().flatten());
    let mut counts = counts.chain(sizes.values());
    if counts.any(|count| MAX_COUNT < *count) {
        let reason = "has a counter above 1000000000000000";
        return Err(Refusal::invalid("traffic.routes", reason));
    }
    let mut sums = [bytes_in, bytes_out, latency_us].into_iter().flatten();
    if sums.any(|sum| i64::try_from(*sum).is_err()) {
        return Err(Refusal::invalid(
            "traffic.routes",
            "has a sum of 2^63 or more",
        ));
    }
    if MAX_REASONS < reasons.len() || !reasons.keys().all(|name| is_name(name)) {
        let reason = "are not up to 100 with names of 1 to 256 bytes";
        return Err(Refusal::invalid("traffic.routes.reasons", reason));
    }
    let is_status = |status: &u16| (100..=999).contains(status);
    if MAX_STATUSES < statuses.len() || !statuses.keys().all(is_status) {
        let reason = "are not up to 100 of 100 to 999";
        return Err(Refusal::invalid("traffic.routes.statuses", reason));
    }
    if sizes.keys().any(|class| MAX_SIZE_CLASS < *class) {
        return Err(Refusal::invalid(
            "traffic.routes.sizes",
            "are not of 0 to 31",
        ));
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn is_line(text: &str, max_chars: usize) -> bool {
    is_text(text, max_chars) && !text.chars().any(char::is_control)
}

/// Returns true for a text within the limit and without NUL characters, which PostgreSQL cannot
/// store.
fn is_text(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars && !text.contains('\0')
}
