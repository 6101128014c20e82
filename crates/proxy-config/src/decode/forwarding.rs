//! Settings that have no effect on a route without an upstream.

use super::decoder::Decoder;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::{CircuitBreaker, HeaderEdits, Place, Policies, RouteTimeouts, Service, Setting};

/// Reports settings without effect on a route that does not forward.
pub(super) fn check(
    d: &mut Decoder<'_, '_>,
    service: Option<&Service>,
    policies: &Policies,
    circuit_breaker: Option<&CircuitBreaker>,
) {
    let forwards = match service {
        None | Some(Service::Upstream(_)) => true,
        Some(
            Service::Builtin(_) | Service::Static(_) | Service::Redirect(_) | Service::Respond(_),
        ) => false,
    };
    if forwards {
        return;
    }
    let RouteTimeouts {
        connect,
        request: _,
        read,
        idle,
    } = &policies.timeouts;
    let HeaderEdits { remove, set, add } = &policies.request_headers;
    let edits = set.iter().chain(add).filter_map(Setting::place);
    let edits = edits.chain(remove.iter().filter_map(Setting::place));
    let switched_on = |switch: &Setting<bool>| switch.place().filter(|_| **switch);
    let written = [
        ("shadow", policies.shadow.as_ref().map(|block| block.place)),
        (
            "rewrite",
            policies.rewrite.as_ref().map(|block| block.place),
        ),
        ("cache", policies.cache.as_ref().map(|block| block.place)),
        ("retry", policies.retry.as_ref().map(|block| block.place)),
        ("circuit-breaker", circuit_breaker.map(|block| block.place)),
        ("request-headers", edits.min()),
        ("buffer-requests", switched_on(&policies.buffer_requests)),
        ("buffer-responses", switched_on(&policies.buffer_responses)),
        ("connect-secs", place(connect.as_ref())),
        ("read-secs", place(read.as_ref())),
        ("idle-secs", place(idle.as_ref())),
    ];
    for (name, place) in written {
        if let Some(place) = place {
            let message = format!("`{name}` requires an `upstream`");
            d.fault(DiagnosticCode::Conflict, place, message);
        }
    }
}

/// Reports a total request timeout on a route without anything to wait for: it has no agents
/// either.
pub(super) fn check_time(d: &mut Decoder<'_, '_>, service: Option<&Service>, policies: &Policies) {
    let kind = match service {
        Some(Service::Builtin(_)) => "`builtin`",
        Some(Service::Redirect(_)) => "`redirect`",
        Some(Service::Respond(_)) => "`respond`",
        None | Some(Service::Upstream(_) | Service::Static(_)) => return,
    };
    if let Some(place) = place(policies.timeouts.request.as_ref()) {
        let message = format!("`request-secs` has no effect on a {kind} route without agents");
        d.fault(DiagnosticCode::Conflict, place, message);
    }
}

fn place<T>(setting: Option<&Setting<T>>) -> Option<Place> {
    setting.and_then(Setting::place)
}
