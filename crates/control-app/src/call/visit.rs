//! A request of a person that is not signed in yet.

use crate::call::Call;
use control_auth::Secret;
use control_domain::{Actor, SessionOrigin, SignInMethod};
use jiff::Timestamp;
use std::net::IpAddr;

/// A request of a person that is not signed in yet: the counterpart of [`Call`].
#[derive(Clone, Debug)]
pub struct Visit {
    /// The address of the client.
    pub client_ip: Option<IpAddr>,
    /// The browser's name, shortened; empty for other programs.
    pub browser: String,
    /// The secret of a browser that signed in before, as its cookie has it.
    pub known_browser: Option<Secret>,
    /// The time of the request, in whole milliseconds, used throughout.
    pub now: Timestamp,
    /// The name of the request in answers, logs and the audit log.
    pub correlation_id: String,
}

impl Visit {
    /// The origin of a session that begins by this request.
    pub fn origin(&self, method: SignInMethod) -> SessionOrigin {
        SessionOrigin {
            method,
            provider: None,
            address: self.client_ip,
            browser: self.browser.clone(),
        }
    }

    /// Attributes the request to the user that it turned out to come from.
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
    /// The visit that a session begins with, after its user chose a password.
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
