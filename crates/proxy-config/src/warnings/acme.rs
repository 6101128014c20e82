//! Challenges that an authority may not reach.

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::diagnostics::Diagnostics;
use proxy_model::{AcmeChallenge, BindAddress, Listener, ListenerProtocol, Model};

/// Reports `acme` blocks with a challenge on a port that no listener has.
pub(super) fn find(model: &Model, faults: &mut Diagnostics) {
    let has_port = |listener: &Listener, port| match &listener.address.value {
        BindAddress::Tcp(address) => address.port() == port,
        BindAddress::Unix(_) => false,
    };
    let mut listeners = model.listeners.iter();
    let has_http_port = listeners.any(|listener| {
        listener.protocol.value == ListenerProtocol::Http && has_port(listener, 80)
    });
    for listener in &model.listeners {
        let blocks = listener.tls.iter().flat_map(|tls| &tls.acme);
        for acme in blocks {
            let (is_reached, port) = match acme.challenge.value {
                AcmeChallenge::Http01 => (has_http_port, 80),
                AcmeChallenge::TlsAlpn01 => (has_port(listener, 443), 443),
                AcmeChallenge::Dns01 => continue,
            };
            if is_reached {
                continue;
            }
            let place = acme.challenge.place().unwrap_or(acme.place);
            let message = format!(
                "the authority proves `{}` on port {port}, where nothing listens",
                *acme.challenge
            );
            let fault = Diagnostic::new(DiagnosticCode::ChallengePort, place, message);
            faults.push(fault.help(format!(
                "forward port {port} to the listener, or give one that port"
            )));
        }
    }
}
