//! Audit entries: their fields, and the key that authenticates the chain.

use crate::app::App;
use crate::app::audit_event::AuditEvent;
use crate::call::Call;
use crate::error::Error;
use control_auth::AuditKey;
use control_domain::{Actor, Tenant};
use control_store::{AuditEntry, AuditVerification, StoredSecret, Transaction};
use control_wire::SecretId;
use jiff::{SignedDuration, Timestamp};
use std::net::IpAddr;
use uuid::Uuid;

/// Identifier of the chain key's row. The key is sealed like every secret, so that a change of
/// master keys re-seals it.
const AUDIT_KEY: SecretId = SecretId(Uuid::from_u128(1));
/// Minimum time between two entries for uses of the same ended credential, per replica.
const REFUSAL_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// An expired or revoked credential that was presented.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedUse<'a> {
    pub(crate) kind: &'a str,
    pub(crate) id: Uuid,
    pub(crate) name: &'a str,
    pub(crate) tenant: Option<Tenant>,
}

impl App {
    /// Appends one entry with the change noted in the transaction; returns the number of the entry.
    pub(crate) async fn record(
        &self,
        tx: &mut Transaction,
        call: &Call,
        event: AuditEvent<'_>,
    ) -> Result<i64, Error> {
        let key = self.audit_key(tx).await?;
        let name = actor_name(tx, &call.actor).await?;
        let entry = AuditEntry {
            at: call.now,
            actor_kind: call.actor.kind(),
            actor: call.actor.id(),
            actor_name: &name,
            client_ip: call.client_ip,
            tenant: event.tenant,
            action: event.action,
            subject: event.subject,
            correlation_id: &call.correlation_id,
        };
        Ok(tx.append_audit(&entry, &key).await?)
    }

    /// The key that authenticates the chain, created with the first keyed entry.
    ///
    /// # Errors
    ///
    /// [`Error::Seal`] if the master keys do not open it.
    pub async fn audit_key(&self, tx: &mut Transaction) -> Result<AuditKey, Error> {
        if let Some(key) = self.audit_key.get() {
            return Ok(key.clone());
        }
        // Of two concurrent replicas, the second reads the key that the first stored.
        tx.lock_audit().await?;
        if let Some(key) = self.stored_audit_key(tx).await? {
            // Only a committed key is cached: this transaction's own insert may be rolled back.
            return Ok(self.audit_key.get_or_init(|| key).clone());
        }
        let bytes: [u8; 32] = self.environment.random();
        let place = AUDIT_KEY.to_string();
        let sealed = self
            .sealer
            .seal(&place, self.environment.random(), &bytes)?;
        let secret = StoredSecret {
            id: AUDIT_KEY,
            org: None,
            sealed,
            created_at: self.now(),
        };
        tx.insert_secret(&secret).await?;
        Ok(AuditKey::new(&bytes))
    }

    async fn stored_audit_key(&self, tx: &mut Transaction) -> Result<Option<AuditKey>, Error> {
        let Some(stored) = tx.secret(AUDIT_KEY).await? else {
            return Ok(None);
        };
        let bytes = self.sealer.open(&AUDIT_KEY.to_string(), &stored.sealed)?;
        Ok(Some(AuditKey::new(&bytes)))
    }

    /// Starts the keyed part of a log that an earlier release wrote: the first keyed entry also
    /// covers all entries before it.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn key_audit(&self, now: Timestamp) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        if tx.audit_head().await? == 0 || self.stored_audit_key(&mut tx).await?.is_some() {
            return Ok(());
        }
        let event = AuditEvent {
            action: "audit.keyed",
            tenant: None,
            subject: AUDIT_KEY.0,
        };
        self.record(&mut tx, &Call::system(now), event).await?;
        Ok(tx.commit().await?)
    }

    /// Verifies every entry of the audit log in the database.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the log cannot be read; [`Error::Seal`] if the master keys do not open
    /// its key.
    pub async fn inspect_audit(&self) -> Result<AuditVerification, Error> {
        self.store.check_schema().await?;
        let mut tx = self.store.read().await?;
        let key = self.stored_audit_key(&mut tx).await?;
        Ok(tx.verify_audit(key.as_ref()).await?)
    }

    /// Records the use of an ended credential, at most once an hour: its bearer may retry every
    /// second.
    pub(crate) async fn note_ended_use(
        &self,
        used: EndedUse<'_>,
        client_ip: Option<IpAddr>,
        now: Timestamp,
    ) {
        let last = self.ended_uses.get(&used.id);
        if last.is_some_and(|last| now.duration_since(last) < REFUSAL_INTERVAL) {
            return;
        }
        self.ended_uses.insert(used.id, now);
        if let Err(error) = self.write_ended_use(used, client_ip, now).await {
            tracing::warn!(%error, "the use of an ended credential is not in the audit log");
        }
    }

    async fn write_ended_use(
        &self,
        used: EndedUse<'_>,
        client_ip: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let key = self.audit_key(&mut tx).await?;
        let entry = AuditEntry {
            at: now,
            actor_kind: used.kind,
            actor: used.id,
            actor_name: used.name,
            client_ip,
            tenant: used.tenant,
            action: "credential.refused",
            subject: used.id,
            correlation_id: "",
        };
        let head = tx.append_audit(&entry, &key).await?;
        tx.commit().await?;
        self.changes
            .publish(head, used.tenant.map(|tenant| tenant.org));
        Ok(())
    }
}

/// The actor's current name for the entry; names change, and deleted actors have none.
async fn actor_name(tx: &mut Transaction, actor: &Actor) -> Result<String, Error> {
    Ok(match actor {
        Actor::System => "controld".to_owned(),
        Actor::SetUp { .. } => "set-up link".to_owned(),
        Actor::Invitee { .. } => "invitation".to_owned(),
        Actor::User { id, .. } => {
            let user = tx.user(*id).await?.map(|found| found.value);
            user.map(|user| format!("{} <{}>", user.name, user.email))
                .unwrap_or_default()
        }
        Actor::ApiKey { id, .. } => {
            let key = tx.api_key(*id).await?.map(|found| found.value);
            let name = key.as_ref().map(|key| key.name.to_string());
            let creator = key.and_then(|key| key.made_by);
            let creator = match creator {
                Some(creator) => tx.user(creator.user).await?.map(|found| found.value),
                None => None,
            };
            let name = name.unwrap_or_default();
            match creator {
                Some(user) => format!("{name}, a key of {} <{}>", user.name, user.email),
                None => name,
            }
        }
        Actor::Enrolment { id, .. } => {
            let token = tx.enrolment_token(*id).await?;
            token.map_or_else(String::new, |found| found.value.name.to_string())
        }
        Actor::Node { id, .. } => {
            let node = tx.node(*id).await?;
            node.map_or_else(String::new, |found| found.value.name.to_string())
        }
    })
}
