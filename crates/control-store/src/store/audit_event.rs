//! An action for the audit log, and the change that it made.

use control_domain::Tenant;
use jiff::Timestamp;
use std::net::IpAddr;
use uuid::Uuid;

/// An entry of the audit log.
#[derive(Clone, Copy, Debug)]
pub struct AuditEntry<'a> {
    /// When.
    pub at: Timestamp,
    /// The kind of actor, such as `api_key`.
    pub actor_kind: &'a str,
    /// Identifier of the actor.
    pub actor: Uuid,
    /// The actor as it is called now; its names may change.
    pub actor_name: &'a str,
    /// The address of its client.
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

/// Change of a command, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditChange {
    /// The value before; `None` for a new one.
    pub before: Option<String>,
    /// The value after; `None` for a deleted one.
    pub after: Option<String>,
}
