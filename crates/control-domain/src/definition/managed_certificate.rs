//! A managed certificate: hosts for which the control plane obtains and renews a certificate by
//! ACME.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
use crate::access::{Access, Tenant};
use crate::labels::Labels;
use crate::named::named;
use crate::text::{Email, Name};
use control_wire::{CertificateId, ManagedCertificateId, SecretId};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Maximum number of hosts per certificate: each is validated on every node that serves it.
const MAX_HOSTS: usize = 25;
const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;
/// Maximum size of a stored error message.
const MAX_ERROR_BYTES: usize = 2_000;

named! {
    /// Kind of a certificate's key.
    #[schema(as = CertificateKeyTypeName)]
    CertificateKeyType {
        /// ECDSA with P-256.
        EcdsaP256 = "ecdsa-p256",
        /// ECDSA with P-384.
        EcdsaP384 = "ecdsa-p384",
        /// RSA with 2048 bits, for old clients.
        Rsa2048 = "rsa-2048",
    }
}

named! {
    /// State of a managed certificate.
    #[schema(as = ManagedCertificateStateName)]
    ManagedCertificateState {
        /// There is no certificate yet, and the first attempt is due or in progress.
        Pending = "pending",
        /// There is a certificate, and its renewal is not due.
        Valid = "valid",
        /// There is a certificate, and its renewal is due or in progress.
        Renewing = "renewing",
        /// The last attempt has failed. A certificate that exists stays in use.
        Failing = "failing",
    }
}

/// Hosts for which a certificate is obtained and renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedCertificate {
    /// UUID of version 7.
    pub id: ManagedCertificateId,
    /// Project that the certificate belongs to.
    pub tenant: Tenant,
    /// Name, unique in the project, which the obtained certificate also has.
    pub name: Name,
    /// Hosts of the certificate in lower case; at least one.
    pub hosts: Vec<String>,
    /// URL of the authority's directory; the installation must permit it.
    pub directory: String,
    /// E-mail address for the authority's notices.
    pub email: Email,
    /// Kind of the certificate's key.
    pub key_type: CertificateKeyType,
    /// Labels that a node needs to fetch the private key; empty permits every node of the project.
    pub node_labels: Labels,
    /// The obtained certificate; `None` before the first one is issued.
    pub certificate: Option<CertificateId>,
    /// Progress of orders and renewals.
    pub progress: IssuanceProgress,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Progress of a managed certificate's orders. Changes to it do not change the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuanceProgress {
    /// URL of the order in progress; `None` without one.
    pub order_url: Option<String>,
    /// Sealed private key of the order, stored before the authority gets the signing request.
    pub order_secret: Option<SecretId>,
    /// Time of the next attempt, or of the next renewal.
    pub next_at: Timestamp,
    /// Number of failed attempts since the last success.
    pub failures: u32,
    /// The last failure; `None` after a success.
    pub error: Option<IssuanceError>,
    /// Start and end of the authority's renewal window (ARI).
    pub window: Option<(Timestamp, Timestamp)>,
    /// Time of the next request for the renewal window.
    pub window_ask_at: Option<Timestamp>,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuanceError {
    /// Stable name: the authority's problem type, or one of the control plane's.
    pub kind: String,
    /// Explanation; the authority's own text if it refused.
    pub message: String,
    /// Time of the failure.
    pub at: Timestamp,
}

/// Settings of a managed certificate, as an operator submits them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedCertificateSettings {
    /// Name, unique in the project.
    pub name: String,
    /// Hosts of the certificate.
    pub hosts: Vec<String>,
    /// URL of the authority's directory.
    pub directory: String,
    /// E-mail address for the authority's notices.
    pub email: String,
    /// Agreement to the authority's terms of service.
    pub terms_agreed: bool,
    /// Kind of the certificate's key.
    pub key_type: CertificateKeyType,
    /// Labels that a node needs to fetch the private key.
    pub node_labels: BTreeMap<String, String>,
}

impl ManagedCertificate {
    /// Creates a managed certificate; its first order is due at once. `directories` are the
    /// permitted authorities.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn create(
        actor: &Actor,
        tenant: Tenant,
        id: ManagedCertificateId,
        settings: ManagedCertificateSettings,
        directories: &[String],
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_SERVICES, tenant)?;
        let ManagedCertificateSettings {
            name,
            hosts,
            directory,
            email,
            terms_agreed,
            key_type,
            node_labels,
        } = settings;
        let mut faults = Faults::default();
        let name = faults.record(Name::parse("name", &name));
        let hosts = faults.record(parse_hosts(&hosts));
        let email = faults.record(Email::parse("email", &email));
        let labels = faults.record(Labels::parse(node_labels));
        faults.check(
            directories.contains(&directory),
            "directory",
            "is not an authority that the installation permits",
        );
        faults.check(
            terms_agreed,
            "terms_agreed",
            "is false: the authority issues nothing without the agreement to its terms",
        );
        let parsed = name.zip(hosts).zip(email).zip(labels);
        let (((name, hosts), email), node_labels) = faults.finish(parsed)?;
        Ok(Self {
            id,
            tenant,
            name,
            hosts,
            directory,
            email,
            key_type,
            node_labels,
            certificate: None,
            progress: IssuanceProgress::due(now),
            created_at: now,
        })
    }

    /// Changes the settings. Other hosts, another directory or another key type make an order due
    /// at once.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn update(
        self,
        actor: &Actor,
        settings: ManagedCertificateSettings,
        directories: &[String],
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let changed = Self::create(actor, self.tenant, self.id, settings, directories, now)?;
        let mut progress = changed.progress;
        let is_same = changed.hosts == self.hosts
            && changed.directory == self.directory
            && changed.key_type == self.key_type;
        if is_same && self.progress.failures == 0 {
            progress = self.progress;
        }
        Ok(Self {
            certificate: self.certificate,
            created_at: self.created_at,
            progress,
            ..changed
        })
    }

    /// Makes the next attempt due at once.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn renew(mut self, actor: &Actor, now: Timestamp) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_SERVICES, self.tenant)?;
        self.progress.next_at = now;
        Ok(self)
    }

    /// Checks that the managed certificate may be deleted; its obtained certificate is kept.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_delete(&self, actor: &Actor) -> Result<(), Refusal> {
        actor.require(Access::WRITE_SERVICES, self.tenant)
    }

    /// The state at `now`.
    pub fn state(&self, now: Timestamp) -> ManagedCertificateState {
        let is_due = self.progress.next_at <= now || self.progress.order_url.is_some();
        match (&self.progress.error, self.certificate) {
            (Some(_), _) => ManagedCertificateState::Failing,
            (None, None) => ManagedCertificateState::Pending,
            (None, Some(_)) if is_due => ManagedCertificateState::Renewing,
            (None, Some(_)) => ManagedCertificateState::Valid,
        }
    }
}

impl IssuanceProgress {
    /// Progress without an order, with an attempt due at `now`.
    pub fn due(now: Timestamp) -> Self {
        Self {
            order_url: None,
            order_secret: None,
            next_at: now,
            failures: 0,
            error: None,
            window: None,
            window_ask_at: None,
        }
    }

    /// Progress after a failed attempt; the next one is due after `wait`.
    #[must_use]
    pub fn failed(
        mut self,
        kind: &str,
        message: &str,
        wait: SignedDuration,
        now: Timestamp,
    ) -> Self {
        let mut message = message.to_owned();
        let end = message.floor_char_boundary(MAX_ERROR_BYTES);
        message.truncate(end);
        self.failures = self.failures.saturating_add(1);
        self.next_at = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        self.error = Some(IssuanceError {
            kind: kind.to_owned(),
            message,
            at: now,
        });
        self
    }
}

fn parse_hosts(hosts: &[String]) -> Result<Vec<String>, Refusal> {
    let fault = |reason| Err(Refusal::invalid("hosts", reason));
    if hosts.is_empty() || MAX_HOSTS < hosts.len() {
        return fault("needs 1 to 25 names");
    }
    let lower: Vec<String> = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
    if lower.iter().any(|host| host.contains('*')) {
        return fault(
            "has a wildcard, which needs DNS-01: name each host, upload a certificate, or write an `acme` block with \
             `dns-command` into the bundle; see docs/operate/fleet-certificates.md",
        );
    }
    if !lower.iter().all(|host| is_public_name(host)) {
        return fault("has a name that is not a DNS name with two labels or more");
    }
    let distinct: BTreeSet<&String> = lower.iter().collect();
    if distinct.len() != lower.len() {
        return fault("names a host twice");
    }
    Ok(lower)
}

fn is_public_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= MAX_HOST_BYTES
        && host.contains('.')
        && host.split('.').all(is_label)
        && host.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_wire::{ApiKeyId, OrgId, ProjectId};
    use uuid::Uuid;

    fn settings(hosts: &[&str]) -> ManagedCertificateSettings {
        ManagedCertificateSettings {
            name: "shop".to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            directory: "https://ca.example/dir".to_owned(),
            email: "ops@example.com".to_owned(),
            terms_agreed: true,
            key_type: CertificateKeyType::EcdsaP256,
            node_labels: BTreeMap::new(),
        }
    }

    fn made(settings: ManagedCertificateSettings) -> Result<ManagedCertificate, Refusal> {
        let tenant = Tenant::project(OrgId(Uuid::nil()), ProjectId(Uuid::nil()));
        let directories = ["https://ca.example/dir".to_owned()];
        let id = ManagedCertificateId(Uuid::nil());
        let now = Timestamp::UNIX_EPOCH;
        ManagedCertificate::create(&operator(), tenant, id, settings, &directories, now)
    }

    /// A key with full access.
    fn operator() -> Actor {
        Actor::ApiKey {
            id: ApiKeyId(Uuid::nil()),
            tenant: Tenant::org(OrgId(Uuid::nil())),
            scopes: BTreeSet::new(),
            expires_at: None,
            made_by: None,
        }
    }

    #[test]
    fn hosts_are_public_dns_names() {
        let fine = made(settings(&["Shop.Example.com", "a-1.example"])).unwrap();
        assert_eq!(fine.hosts, ["shop.example.com", "a-1.example"]);
        for hosts in [
            &[][..],
            &["localhost"],
            &["127.0.0.1"],
            &["*.example.com"],
            &["a..example"],
            &["-a.example"],
            &["a_b.example"],
            &["a.example:80"],
            &["a.example", "A.example"],
            &["é.example"],
        ] {
            let refused = made(settings(hosts)).unwrap_err();
            let is_of_hosts = matches!(refused, Refusal::Invalid { field: "hosts", .. });
            assert!(is_of_hosts, "{hosts:?}: {refused}");
        }
    }

    #[test]
    fn a_wildcard_is_refused_with_the_ways_to_have_one() {
        let refused = made(settings(&["*.example.com"])).unwrap_err().to_string();
        for way in ["name each host", "upload a certificate", "`dns-command`"] {
            assert!(refused.contains(way), "{refused}");
        }
    }

    #[test]
    fn an_authority_has_to_be_permitted_and_its_terms_agreed_to() {
        let other = ManagedCertificateSettings {
            directory: "https://169.254.169.254/latest".to_owned(),
            ..settings(&["a.example"])
        };
        assert!(matches!(
            made(other),
            Err(Refusal::Invalid {
                field: "directory",
                ..
            })
        ));
        let silent = ManagedCertificateSettings {
            terms_agreed: false,
            ..settings(&["a.example"])
        };
        assert!(matches!(
            made(silent),
            Err(Refusal::Invalid {
                field: "terms_agreed",
                ..
            })
        ));
    }

    #[test]
    fn the_state_follows_from_the_progress() {
        let now = Timestamp::UNIX_EPOCH;
        let later = now + SignedDuration::from_hours(1);
        let mut own = made(settings(&["a.example"])).unwrap();
        assert_eq!(own.state(now), ManagedCertificateState::Pending);
        own.certificate = Some(CertificateId(Uuid::nil()));
        own.progress.next_at = later;
        assert_eq!(own.state(now), ManagedCertificateState::Valid);
        assert_eq!(own.state(later), ManagedCertificateState::Renewing);
        let wait = SignedDuration::from_mins(1);
        own.progress = own
            .progress
            .clone()
            .failed("dns", "no such name", wait, later);
        assert_eq!(own.state(later), ManagedCertificateState::Failing);
        assert_eq!(own.progress.next_at, later + wait);
    }

    #[test]
    fn other_hosts_are_ordered_at_once_and_another_name_is_not() {
        let now = Timestamp::UNIX_EPOCH;
        let later = now + SignedDuration::from_hours(1);
        let directories = ["https://ca.example/dir".to_owned()];
        let mut own = made(settings(&["a.example"])).unwrap();
        own.progress.next_at = later;
        let renamed = ManagedCertificateSettings {
            name: "other".to_owned(),
            ..settings(&["a.example"])
        };
        let same = own.clone().update(&operator(), renamed, &directories, now);
        assert_eq!(same.unwrap().progress.next_at, later);
        let moved = settings(&["b.example"]);
        let other = own.update(&operator(), moved, &directories, now);
        assert_eq!(other.unwrap().progress.next_at, now);
    }
}
