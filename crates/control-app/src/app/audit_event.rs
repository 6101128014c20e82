//! Action and subject of an entry of the audit log.

use control_domain::Tenant;
use uuid::Uuid;

/// Action, tenant and subject of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditEvent<'a> {
    /// Noun and verb, such as `project.created`.
    pub(crate) action: &'a str,
    /// `None` for the installation as a whole.
    pub(crate) tenant: Option<Tenant>,
    pub(crate) subject: Uuid,
}
