//! Audit entries, and the changes that they record.

use control_domain::Tenant;
use jiff::Timestamp;
use std::net::IpAddr;
use uuid::Uuid;

/// An entry of the audit log.
#[derive(Clone, Copy, Debug)]
pub struct AuditEntry<'a> {
    /// Time of the request.
    pub at: Timestamp,
    /// The kind of actor, such as `api_key`.
    pub actor_kind: &'a str,
    /// Identifier of the actor.
    pub actor: Uuid,
    /// Current name of the actor; names may change later.
    pub actor_name: &'a str,
    /// The client's IP address.
    pub client_ip: Option<IpAddr>,
    /// Tenant of the event; `None` for the installation as a whole.
    pub tenant: Option<Tenant>,
    /// The action, such as `project.created`.
    pub action: &'a str,
    /// Identifier of the changed object.
    pub subject: Uuid,
    /// Correlation ID of the request.
    pub correlation_id: &'a str,
}

/// Values before and after a change, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditChange {
    /// Value before; `None` for a created object.
    pub before: Option<String>,
    /// Value after; `None` for a deleted object.
    pub after: Option<String>,
}
