//! Issuance: attempts to obtain a certificate, by one replica at a time.

use crate::app::App;
use crate::audit::value::done;
use crate::call::Call;
use crate::error::Error;
use crate::metric;
use control_domain::{IssuanceProgress, ManagedCertificate};
use control_store::{StoreError, Versioned};
use control_wire::ManagedCertificateId;
use jiff::{SignedDuration, Timestamp};
use metrics::counter;
use proxy_acme::{AcmeError, Refusal, retry_delay};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;
use uuid::Uuid;

/// Lifetime of a lease: time until another replica takes over from a crashed one.
const LEASE: SignedDuration = SignedDuration::from_secs(15);
/// Interval at which a running attempt extends its leases.
const LEASE_EXTENSION: Duration = Duration::from_secs(5);
/// Maximum number of attempts per organization in a round.
const PER_ORG: i64 = 2;
/// Maximum number of attempts in a round.
const PER_ROUND: i64 = 20;
/// Divisor of the random extra wait (up to 1/8), which spreads retries after an outage.
const SPREAD_PART: i64 = 8;

/// Reason why an attempt obtained no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IssuanceFault {
    /// Error of the authority, or of the connection to it.
    #[error(transparent)]
    Acme(#[from] AcmeError),
    /// The installation no longer permits the authority.
    #[error("the installation no longer permits this authority: choose another `directory`")]
    NotPermitted,
    /// No node serves a host.
    #[error(
        "no online node of the project serves {host} without TLS: the bundle in force needs a listener with the \
         protocol `http`, and a route of this host"
    )]
    NotServed {
        /// Host without a node.
        host: String,
    },
    /// Nodes did not confirm that they answer the challenges.
    #[error(
        "these nodes do not answer challenges: {}; a proxy of an earlier version cannot",
        .nodes.join(", ")
    )]
    Unconfirmed {
        /// Names of the nodes, at most 5.
        nodes: Vec<String>,
    },
    /// The organization exceeds its rate of orders.
    #[error("the organization's orders exceed the installation's rate")]
    Rate {
        /// Seconds until the next order is permitted.
        retry_after_secs: u64,
    },
    /// Another certificate of the project has the same name.
    #[error("another certificate of the project has the name: rename one of them")]
    NameTaken,
    /// The settings were changed or the lease was lost; another attempt follows.
    #[error("superseded")]
    Superseded,
    /// Error of the control plane itself.
    #[error(transparent)]
    Own(#[from] Error),
}

impl From<StoreError> for IssuanceFault {
    fn from(error: StoreError) -> Self {
        Self::Own(error.into())
    }
}

impl IssuanceFault {
    /// Stable name of the fault, for audit entries and logs.
    fn kind(&self) -> &str {
        match self {
            Self::Acme(error) => error.kind(),
            Self::NotPermitted => "not_permitted",
            Self::NotServed { .. } => "not_served",
            Self::Unconfirmed { .. } => "not_confirmed",
            Self::Rate { .. } => "rate",
            Self::NameTaken => "name_taken",
            Self::Superseded => "superseded",
            Self::Own(_) => "internal",
        }
    }

    /// Wait requested by the authority or by the rate limit.
    fn asked(&self) -> Option<Duration> {
        match self {
            Self::Acme(error) => error.retry_after(),
            Self::Rate { retry_after_secs } => Some(Duration::from_secs(*retry_after_secs)),
            Self::NotPermitted
            | Self::NotServed { .. }
            | Self::Unconfirmed { .. }
            | Self::NameTaken
            | Self::Superseded
            | Self::Own(_) => None,
        }
    }

    /// Returns true if the order is kept for the next attempt, because its outcome is unknown, or
    /// its certificate was issued and only could not be stored: another order would count against
    /// the authority's limits.
    fn keeps_order(&self) -> bool {
        match self {
            Self::Acme(
                AcmeError::Unreachable(_) | AcmeError::Busy { .. } | AcmeError::TimedOut,
            )
            | Self::NameTaken
            | Self::Own(_) => true,
            Self::Acme(_)
            | Self::NotPermitted
            | Self::NotServed { .. }
            | Self::Unconfirmed { .. }
            | Self::Rate { .. }
            | Self::Superseded => false,
        }
    }

    /// Returns true if the authority does not know the account any more.
    fn is_unknown_account(&self) -> bool {
        let is_unknown =
            |refusal: &Refusal| refusal.host.is_none() && refusal.kind == "accountDoesNotExist";
        let Self::Acme(error) = self else {
            return false;
        };
        if let AcmeError::Refused(refusal) = error {
            return is_unknown(refusal);
        }
        matches!(error, AcmeError::BadAccount { .. })
    }
}

impl App {
    /// Managed certificates with an attempt that is due, a few per organization.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn due_issuances(&self, now: Timestamp) -> Result<Vec<ManagedCertificateId>, Error> {
        if self.is_clock_wrong() {
            return Ok(Vec::new());
        }
        let mut tx = self.store.read().await?;
        let due = tx.due_managed_certificates(now, PER_ORG, PER_ROUND).await?;
        Ok(due.into_iter().map(|found| found.value.id).collect())
    }

    /// Makes one attempt for a managed certificate that is due, unless another replica is working
    /// on one of its hosts.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn issue_certificate(&self, id: ManagedCertificateId) -> Result<(), Error> {
        let now = self.now();
        let Some(found) = self.store.read().await?.managed_certificate(id).await? else {
            return Ok(());
        };
        let holder = Uuid::now_v7();
        let names = lease_names(&found.value);
        if !self.hold_leases(&names, holder).await? {
            return Ok(());
        }
        // Another replica may have finished before this one acquired the leases.
        let again = self.store.read().await?.managed_certificate(id).await?;
        let done = match again {
            // The next round acquires the leases of the new hosts.
            Some(found) if lease_names(&found.value) != names => Ok(()),
            Some(found) if found.value.progress.next_at <= now => {
                tokio::select! {
                    done = Box::pin(self.attempt_issuance(found)) => done,
                    () = self.extend_leases(&names, holder) => Ok(()),
                }
            }
            Some(found) => self.ask_window(found.value, now).await,
            None => Ok(()),
        };
        let mut tx = self.store.begin().await?;
        for name in &names {
            tx.release_lease(name, holder).await?;
        }
        tx.commit().await?;
        done
    }

    /// Acquires or extends all leases; on failure acquires none.
    async fn hold_leases(&self, names: &[String], holder: Uuid) -> Result<bool, Error> {
        let now = self.now();
        let mut tx = self.store.begin().await?;
        for name in names {
            if !tx.acquire_lease(name, holder, now, LEASE).await? {
                return Ok(false);
            }
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Extends the leases until one of them is lost.
    async fn extend_leases(&self, names: &[String], holder: Uuid) {
        loop {
            sleep(LEASE_EXTENSION).await;
            // After a database error, the next extension may still be in time.
            if matches!(self.hold_leases(names, holder).await, Ok(false)) {
                return;
            }
        }
    }

    async fn attempt_issuance(&self, found: Versioned<ManagedCertificate>) -> Result<(), Error> {
        let value = found.value.clone();
        let fault = match self.obtain(found).await {
            Ok(()) => {
                counter!(metric::ACME_ORDERS, "result" => "success").increment(1);
                return Ok(());
            }
            Err(fault) => fault,
        };
        if matches!(fault, IssuanceFault::Superseded) {
            // The next round uses the new settings.
            return self.end_validation(value.id).await;
        }
        counter!(metric::ACME_ORDERS, "result" => "failure").increment(1);
        self.note_issuance_failure(value, &fault).await
    }

    /// Records the failure and schedules the next attempt.
    async fn note_issuance_failure(
        &self,
        value: ManagedCertificate,
        fault: &IssuanceFault,
    ) -> Result<(), Error> {
        let now = self.now();
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let Some(current) = tx.managed_certificate(value.id).await? else {
            return Ok(());
        };
        let mut current = current.value;
        let waiting = tx.delete_challenges(value.id).await?;
        if !fault.keeps_order() {
            tx.forget_issuance(&current).await?;
            current.progress.order_url = None;
            current.progress.order_secret = None;
        }
        if fault.is_unknown_account()
            && let Some(secret) = tx.acme_account(&value).await?
        {
            tx.delete_acme_account(value.tenant.org, secret).await?;
        }
        let wait = self.wait_after(&current.progress, fault);
        let message = fault.to_string();
        current.progress = current.progress.failed(fault.kind(), &message, wait, now);
        tx.write_progress(&current).await?;
        let next_at = current.progress.next_at;
        let (kind, why) = (fault.kind(), &message);
        tracing::warn!(certificate = %value.name, kind, why, %next_at, "a certificate could not be obtained");
        tx.note_change(done(&json!({
            "hosts": value.hosts, "kind": kind, "message": message, "next_at": next_at,
        })));
        let (call, tenant) = (Call::system(now), value.tenant);
        let action = "managed_certificate.failed";
        self.commit(tx, &call, action, tenant, value.id.0).await?;
        self.orders.wake(&waiting);
        Ok(())
    }

    /// Wait before the next attempt: 1 minute after the first failure, four times as long after
    /// each further one, at most 6 hours; longer if the authority requests it. A random part
    /// spreads attempts.
    fn wait_after(&self, progress: &IssuanceProgress, fault: &IssuanceFault) -> SignedDuration {
        let failures = progress.failures.saturating_add(1);
        let wait = retry_delay(failures, fault.asked()).as_secs();
        let wait = i64::try_from(wait).unwrap_or(i64::MAX / SPREAD_PART / 2);
        let [random] = self.environment.random();
        let spread = wait / SPREAD_PART * i64::from(random) / i64::from(u8::MAX);
        SignedDuration::from_secs(wait + spread)
    }
}

/// Names of the leases, one per host, sorted so that all replicas acquire them in the same order.
fn lease_names(value: &ManagedCertificate) -> Vec<String> {
    let mut names: Vec<String> = value
        .hosts
        .iter()
        .map(|host| format!("certificate of {host}"))
        .collect();
    names.sort_unstable();
    names
}
