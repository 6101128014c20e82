//! What an entry of the audit log is about.

use control_domain::Tenant;
use uuid::Uuid;

/// What was done, where, to what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditEvent<'a> {
    /// The noun and what was done, such as `project.created`.
    pub(crate) action: &'a str,
    /// `None` for the installation as a whole.
    pub(crate) tenant: Option<Tenant>,
    pub(crate) subject: Uuid,
}
