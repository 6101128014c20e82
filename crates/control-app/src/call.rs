//! One request: the actor, the time, and parameters from the request's headers.

pub(crate) mod visit;

use crate::error::Error;
use control_domain::Actor;
use jiff::Timestamp;
use std::net::IpAddr;
use uuid::Uuid;

/// Context that every handler gets besides its own arguments.
#[derive(Clone, Debug)]
pub struct Call {
    /// Principal whose permissions apply.
    pub actor: Actor,
    /// The address of the client.
    pub client_ip: Option<IpAddr>,
    /// The browser's name, shortened; empty for other programs.
    pub browser: String,
    /// The time of the request, in whole milliseconds, used throughout.
    pub now: Timestamp,
    /// The name of the request in answers, logs and the audit log.
    pub correlation_id: String,
    /// The versions in `If-Match`; `None`: any.
    pub if_match: Option<Vec<i64>>,
    /// The reservation of the request's `Idempotency-Key`.
    pub reservation: Option<Uuid>,
}

impl Call {
    /// The control plane's own work.
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

    /// [`Error::Precondition`] unless `If-Match` names the version that was found.
    pub(crate) fn expect_version(&self, found: i64) -> Result<(), Error> {
        match &self.if_match {
            Some(versions) if !versions.contains(&found) => Err(Error::Precondition),
            _ => Ok(()),
        }
    }

    /// [`Error::Precondition`] if `If-Match` names a version: the resource does not exist yet.
    pub(crate) fn expect_no_version(&self) -> Result<(), Error> {
        match self.if_match {
            Some(_) => Err(Error::Precondition),
            None => Ok(()),
        }
    }
}
