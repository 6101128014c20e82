//! Settings that only a route with an upstream can have.

use super::decoder::Decoder;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::{CircuitBreaker, Place, Policies, RouteTimeouts, Service, Setting};

/// Reports settings that have no effect on a route that forwards nothing.
pub(super) fn check(
    d: &mut Decoder<'_, '_>,
    service: Option<&Service>,
    policies: &Policies,
    circuit_breaker: Option<&CircuitBreaker>,
) {
    if !matches!(service, Some(Service::Builtin(_) | Service::Static(_))) {
        return;
    }
    let RouteTimeouts {
        connect,
        request: _,
        read,
        idle,
    } = &policies.timeouts;
    let switched_on = |switch: &Setting<bool>| switch.place().filter(|_| **switch);
    let written = [
        ("shadow", policies.shadow.as_ref().map(|block| block.place)),
        ("retry", policies.retry.as_ref().map(|block| block.place)),
        ("circuit-breaker", circuit_breaker.map(|block| block.place)),
        ("buffer-requests", switched_on(&policies.buffer_requests)),
        ("buffer-responses", switched_on(&policies.buffer_responses)),
        ("connect-secs", place(connect.as_ref())),
        ("read-secs", place(read.as_ref())),
        ("idle-secs", place(idle.as_ref())),
    ];
    for (name, place) in written {
        if let Some(place) = place {
            let message = format!("`{name}` goes with an `upstream`");
            d.fault(DiagnosticCode::Conflict, place, message);
        }
    }
}

fn place<T>(setting: Option<&Setting<T>>) -> Option<Place> {
    setting.and_then(Setting::place)
}
