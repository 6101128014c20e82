//! A service: which requests go to which upstream. Bundles are compiled from services.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
use crate::access::{Access, Tenant};
use crate::text::Name;
use control_wire::{CertificateId, ServiceId, UpstreamId};
use jiff::Timestamp;

const MAX_HOST_BYTES: usize = 253;
const MAX_PATH_BYTES: usize = 1_000;

/// A routing rule from requests to an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// UUID of version 7.
    pub id: ServiceId,
    /// Project that the service belongs to.
    pub tenant: Tenant,
    /// Name, unique in the project; the id of the compiled route.
    pub name: Name,
    /// Host or wildcard; `None` for every host.
    pub host: Option<String>,
    /// Path prefix; `None` for every path.
    pub path_prefix: Option<String>,
    /// Services with a higher priority are matched first.
    pub priority: i32,
    /// Upstream that gets the requests.
    pub upstream: UpstreamId,
    /// Certificate for the host; `None` without TLS.
    pub certificate: Option<CertificateId>,
    /// Further settings of the route as JSON, such as `policies`, under the configuration's names.
    pub settings: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Settings of a service, as an operator submits them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// Name, unique in the project.
    pub name: String,
    /// Host or wildcard; `None` for every host.
    pub host: Option<String>,
    /// Path prefix; `None` for every path.
    pub path_prefix: Option<String>,
    /// Services with a higher priority are matched first.
    pub priority: i32,
    /// Upstream that gets the requests, in the same project.
    pub upstream: UpstreamId,
    /// Certificate for the host, in the same project.
    pub certificate: Option<CertificateId>,
    /// Further settings of the route as JSON, under the configuration's names.
    pub settings: String,
}

impl Service {
    /// Creates a service.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn create(
        actor: &Actor,
        tenant: Tenant,
        id: ServiceId,
        settings: ServiceSettings,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_SERVICES, tenant)?;
        let ServiceSettings {
            name,
            host,
            path_prefix,
            priority,
            upstream,
            certificate,
            settings,
        } = settings;
        let mut faults = Faults::default();
        let name = faults.record(Name::parse("name", &name));
        faults.check(
            host.as_deref().is_none_or(is_host),
            "host",
            "is not a host name",
        );
        faults.check(
            path_prefix.as_deref().is_none_or(is_path),
            "path_prefix",
            "does not begin with `/`, is longer than 1000 bytes, or has a space, `?` or `#`",
        );
        Ok(Self {
            id,
            tenant,
            name: faults.finish(name)?,
            host,
            path_prefix,
            priority,
            upstream,
            certificate,
            settings,
            created_at: now,
        })
    }

    /// Changes the service's settings.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn update(self, actor: &Actor, settings: ServiceSettings) -> Result<Self, Refusal> {
        Self::create(actor, self.tenant, self.id, settings, self.created_at)
    }

    /// Checks that the service may be deleted.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_delete(&self, actor: &Actor) -> Result<(), Refusal> {
        actor.require(Access::WRITE_SERVICES, self.tenant)
    }
}

fn is_host(host: &str) -> bool {
    let separator = |c: char| c.is_control() || c.is_whitespace() || c == '/';
    (1..=MAX_HOST_BYTES).contains(&host.len()) && !host.contains(separator)
}

fn is_path(path: &str) -> bool {
    let outside = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '?' | '#');
    path.starts_with('/') && path.len() <= MAX_PATH_BYTES && !path.contains(outside)
}
