//! Context of a request by a person that is not signed in yet.

use crate::call::Call;
use control_auth::Secret;
use control_domain::{Actor, SessionOrigin, SignInMethod};
use jiff::Timestamp;
use std::net::IpAddr;

/// Context of a request by a person that is not signed in yet, in place of a [`Call`].
#[derive(Clone, Debug)]
pub struct Visit {
    /// The address of the client.
    pub client_ip: Option<IpAddr>,
    /// The browser's name, shortened; empty for other clients.
    pub browser: String,
    /// Secret in the cookie of a browser that has signed in before.
    pub known_browser: Option<Secret>,
    /// The time of the request, in whole milliseconds, used throughout.
    pub now: Timestamp,
    /// Identifier of the request in responses, logs and the audit log.
    pub correlation_id: String,
}

impl Visit {
    /// Origin of a session that this request starts.
    pub fn origin(&self, method: SignInMethod) -> SessionOrigin {
        SessionOrigin {
            method,
            provider: None,
            address: self.client_ip,
            browser: self.browser.clone(),
        }
    }

    /// The call of `actor`, once the request is attributed to it.
    pub fn call(&self, actor: Actor) -> Call {
        Call {
            actor,
            client_ip: self.client_ip,
            browser: self.browser.clone(),
            now: self.now,
            correlation_id: self.correlation_id.clone(),
            if_match: None,
            reservation: None,
        }
    }
}

impl Call {
    /// A visit with the data of this call, to start a session after its user chose a password.
    pub(crate) fn visit(&self) -> Visit {
        Visit {
            client_ip: self.client_ip,
            browser: self.browser.clone(),
            known_browser: None,
            now: self.now,
            correlation_id: self.correlation_id.clone(),
        }
    }
}
