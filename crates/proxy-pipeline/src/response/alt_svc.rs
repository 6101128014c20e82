//! The advertisement of HTTP/3. [RFC 7838 §3, RFC 9114 §3.1.1]

use crate::worker::connection_info::ConnectionInfo;
use crate::worker::state::Worker;
use http::header::{ALT_SVC, HeaderMap, HeaderValue};
use proxy_plan::AltSvcPlan;

/// Advertises HTTP/3 if the listener of `client` does. Replaces a field of the upstream, which is
/// about another host.
#[inline]
pub(crate) fn apply(client: &ConnectionInfo, worker: &Worker, headers: &mut HeaderMap) {
    let active = worker.active();
    let listener = active.plan.listeners().get(client.listener.get());
    if let Some(plan) = listener.and_then(|listener| listener.alt_svc.as_ref()) {
        insert(plan, client, headers);
    }
}

#[cold]
fn insert(plan: &AltSvcPlan, client: &ConnectionInfo, headers: &mut HeaderMap) {
    let local = client.peer.local.map(|local| local.port());
    // Every address of HTTP/3 has a port.
    let Some(port) = plan.port.or(local) else {
        return;
    };
    let seconds = plan.max_age.as_secs();
    if let Ok(value) = HeaderValue::try_from(format!("h3=\":{port}\"; ma={seconds}")) {
        headers.insert(ALT_SVC, value);
    }
}
