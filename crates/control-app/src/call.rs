//! Context of one request: actor, time, and parameters from header fields.

pub(crate) mod visit;

use crate::error::Error;
use control_domain::Actor;
use jiff::Timestamp;
use std::net::IpAddr;
use uuid::Uuid;

/// In [`Call::if_match`]: the resource must not exist yet. No stored version, and no tag of a client.
pub const NO_VERSION: i64 = -1;

/// Context of a request, passed to every handler.
#[derive(Clone, Debug)]
pub struct Call {
    /// Principal with the permissions that apply.
    pub actor: Actor,
    /// The address of the client.
    pub client_ip: Option<IpAddr>,
    /// The browser's name, shortened; empty for other clients.
    pub browser: String,
    /// The time of the request, in whole milliseconds, used throughout.
    pub now: Timestamp,
    /// Identifier of the request in responses, logs and the audit log.
    pub correlation_id: String,
    /// Versions listed in `If-Match`; `None` if any version is accepted.
    pub if_match: Option<Vec<i64>>,
    /// The reservation of the request's `Idempotency-Key`.
    pub reservation: Option<Uuid>,
}

impl Call {
    /// A call of the control plane itself, for background work.
    pub fn system(now: Timestamp) -> Self {
        Self {
            actor: Actor::System,
            client_ip: None,
            browser: String::new(),
            now,
            correlation_id: String::new(),
            if_match: None,
            reservation: None,
        }
    }

    /// Returns [`Error::Precondition`] unless `If-Match` permits the version `found`.
    pub(crate) fn expect_version(&self, found: i64) -> Result<(), Error> {
        match &self.if_match {
            Some(versions) if !versions.contains(&found) => Err(Error::Precondition),
            _ => Ok(()),
        }
    }

    /// Returns [`Error::Precondition`] if `If-Match` names a version of a resource that does not
    /// exist yet.
    pub(crate) fn expect_no_version(&self) -> Result<(), Error> {
        match &self.if_match {
            Some(versions) if !versions.contains(&NO_VERSION) => Err(Error::Precondition),
            _ => Ok(()),
        }
    }
}
