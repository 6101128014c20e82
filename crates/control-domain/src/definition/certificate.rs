//! A certificate: a public chain, and a private key that no user can read.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Tenant};
use crate::labels::Labels;
use crate::named::named;
use crate::text::Name;
use control_wire::{CertificateId, SecretId};
use jiff::Timestamp;

named! {
    /// Validity of a certificate.
    #[schema(as = CertificateStateName)]
    CertificateState {
        /// Its time has not begun.
        Pending = "pending",
        /// The certificate is valid now.
        Valid = "valid",
        /// Its time has passed.
        Expired = "expired",
    }
}

/// A certificate; its private key is a sealed secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// UUID of version 7, by which bundles and files refer to the certificate.
    pub id: CertificateId,
    /// Project that the certificate belongs to.
    pub tenant: Tenant,
    /// Name, unique in the project.
    pub name: Name,
    /// Properties of the chain.
    pub facts: CertificateFacts,
    /// Certificate chain as PEM, leaf first.
    pub chain_pem: String,
    /// The sealed private key.
    pub secret: SecretId,
    /// Labels that a node needs to fetch the private key; empty permits every node of the project.
    pub node_labels: Labels,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Properties of a validated chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Hosts that the leaf covers, in lower case.
    pub hosts: Vec<String>,
    /// Start of the validity.
    pub not_before: Timestamp,
    /// Earliest expiry of the chain's certificates.
    pub not_after: Timestamp,
    /// SHA-256 of the leaf, in hexadecimal.
    pub fingerprint: String,
}

impl CertificateFacts {
    /// Returns true if the certificate can replace `old` without effect on clients: valid at `now`,
    /// for all of its hosts, and for at least as long.
    #[must_use]
    pub fn renews(&self, old: &Self, now: Timestamp) -> bool {
        let has_hosts = old.hosts.iter().all(|host| self.hosts.contains(host));
        has_hosts && self.not_before <= now && old.not_after <= self.not_after
    }
}

impl Certificate {
    /// Checks permission and name before the key is parsed.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad name.
    pub fn prepare(actor: &Actor, tenant: Tenant, name: &str) -> Result<Name, Refusal> {
        actor.require(Access::WRITE_SERVICES, tenant)?;
        Name::parse("name", name)
    }

    /// Checks that the certificate may be deleted.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or while a service uses it.
    pub fn check_delete(&self, actor: &Actor, has_services: bool) -> Result<(), Refusal> {
        actor.require(Access::WRITE_SERVICES, self.tenant)?;
        let in_use = Refusal::InUse("services");
        (!has_services).then_some(()).ok_or(in_use)
    }

    /// Returns true if a node with these labels may fetch the private key.
    #[must_use]
    pub fn may_be_held_with(&self, labels: &Labels) -> bool {
        labels.contain(&self.node_labels)
    }

    /// The state at `now`.
    pub fn state(&self, now: Timestamp) -> CertificateState {
        if now < self.facts.not_before {
            CertificateState::Pending
        } else if self.facts.not_after < now {
            CertificateState::Expired
        } else {
            CertificateState::Valid
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(hosts: &[&str], not_before: i64, not_after: i64) -> CertificateFacts {
        let at = |second| Timestamp::from_second(second).unwrap();
        CertificateFacts {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            not_before: at(not_before),
            not_after: at(not_after),
            fingerprint: String::new(),
        }
    }

    #[test]
    fn a_renewal_has_the_same_hosts_for_as_long_and_is_valid_now() {
        let old = facts(&["a.test", "b.test"], 0, 100);
        let now = Timestamp::from_second(50).unwrap();
        for (hosts, begin, end, is_renewal) in [
            (&["a.test", "b.test"][..], 50, 100, true),
            (&["b.test", "c.test", "a.test"], 40, 200, true),
            (&["a.test"], 40, 200, false),
            (&["c.test"], 40, 200, false),
            (&["a.test", "b.test"], 40, 99, false),
            (&["a.test", "b.test"], 51, 200, false),
        ] {
            let new = facts(hosts, begin, end);
            assert_eq!(new.renews(&old, now), is_renewal, "{new:?}");
        }
    }
}
