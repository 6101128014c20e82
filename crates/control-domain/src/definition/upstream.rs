//! An upstream: a group of targets. Bundles are compiled from upstreams.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
use crate::access::{Access, Tenant};
use crate::named::named;
use crate::text::Name;
use control_wire::UpstreamId;
use jiff::Timestamp;
use std::collections::BTreeSet;

const MAX_TARGETS: usize = 200;
const MAX_ADDRESS_BYTES: usize = 300;
const MAX_WEIGHT: u32 = 10_000;
const MAX_SERVER_NAME_BYTES: usize = 253;

named! {
    /// Algorithm of load balancing.
    #[schema(as = LoadBalancingName)]
    LoadBalancing {
        /// Each target in turn.
        RoundRobin = "round_robin",
        /// The one with the fewest requests in flight.
        LeastConnections = "least_connections",
        /// In proportion to their weights.
        Weighted = "weighted",
        /// By the client's address.
        IpHash = "ip_hash",
    }
}

/// A group of targets that share requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// UUID of version 7.
    pub id: UpstreamId,
    /// Project that the upstream belongs to.
    pub tenant: Tenant,
    /// Name, unique in the project.
    pub name: Name,
    /// Algorithm of load balancing.
    pub load_balancing: LoadBalancing,
    /// Targets; at least one, each address once.
    pub targets: Vec<Target>,
    /// TLS to the targets; `None` for plaintext.
    pub tls: Option<UpstreamTls>,
    /// Further settings as JSON, such as `health-check`, under the configuration's names.
    pub settings: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// One address that gets requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host and port.
    pub address: String,
    /// Share of the requests under [`LoadBalancing::Weighted`].
    pub weight: u32,
}

/// TLS settings for connections to targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Server name for SNI and verification; `None` for the target's host.
    pub server_name: Option<String>,
}

/// Settings of an upstream, as an operator submits them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamSettings {
    /// Name, unique in the project.
    pub name: String,
    /// Algorithm of load balancing.
    pub load_balancing: LoadBalancing,
    /// Targets; at least one, each address once.
    pub targets: Vec<Target>,
    /// TLS to the targets; `None` for plaintext.
    pub tls: Option<UpstreamTls>,
    /// Further settings as JSON, under the configuration's names.
    pub settings: String,
}

impl Upstream {
    /// Creates an upstream.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn create(
        actor: &Actor,
        tenant: Tenant,
        id: UpstreamId,
        settings: UpstreamSettings,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_SERVICES, tenant)?;
        let mut faults = Faults::default();
        let parsed = faults.record(Name::parse("name", &settings.name));
        settings.check(&mut faults);
        let parsed = faults.finish(parsed)?;
        let UpstreamSettings {
            name: _,
            load_balancing,
            targets,
            tls,
            settings,
        } = settings;
        Ok(Self {
            id,
            tenant,
            name: parsed,
            load_balancing,
            targets,
            tls,
            settings,
            created_at: now,
        })
    }

    /// Changes the upstream's settings.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn update(self, actor: &Actor, settings: UpstreamSettings) -> Result<Self, Refusal> {
        Self::create(actor, self.tenant, self.id, settings, self.created_at)
    }

    /// Checks that the upstream may be deleted.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or while a service sends requests to it.
    pub fn check_delete(&self, actor: &Actor, has_services: bool) -> Result<(), Refusal> {
        actor.require(Access::WRITE_SERVICES, self.tenant)?;
        let in_use = Refusal::InUse("services");
        (!has_services).then_some(()).ok_or(in_use)
    }
}

impl UpstreamSettings {
    /// Records at most one fault per field, the first.
    fn check(&self, faults: &mut Faults) {
        let targets = &self.targets;
        let is_count = (1..=MAX_TARGETS).contains(&targets.len());
        faults.check(is_count, "targets", "needs 1 to 200 targets");
        let mut seen = BTreeSet::new();
        let mut addresses = targets.iter().map(|target| &target.address);
        let wrong = addresses.find_map(|address| {
            if !is_address(address) {
                return Some("is not a host:port");
            }
            (!seen.insert(address.to_lowercase())).then_some("is listed twice")
        });
        faults.check(
            wrong.is_none(),
            "targets.address",
            wrong.unwrap_or_default(),
        );
        let are_weights = targets.iter().all(|target| target.weight <= MAX_WEIGHT);
        faults.check(are_weights, "targets.weight", "is above 10000");
        let server_name = self.tls.as_ref().and_then(|tls| tls.server_name.as_ref());
        let is_name = |name: &String| {
            (1..=MAX_SERVER_NAME_BYTES).contains(&name.len()) && !name.contains(is_separator)
        };
        faults.check(
            server_name.is_none_or(is_name),
            "tls.server_name",
            "is not a host name",
        );
    }
}

/// Coarse check of an address; the check of the configuration is exact.
fn is_address(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else {
        return false;
    };
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    is_port
        && !host.is_empty()
        && address.len() <= MAX_ADDRESS_BYTES
        && !host.contains(is_separator)
}

fn is_separator(c: char) -> bool {
    c.is_control() || c.is_whitespace() || matches!(c, '/' | '"' | '\\' | '@')
}
