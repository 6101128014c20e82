//! Entries of the audit log about a user, visible to each of the user's organizations.

use crate::app::App;
use crate::app::audit_event::AuditEvent;
use crate::call::Call;
use crate::call::visit::Visit;
use crate::error::Error;
use control_domain::Tenant;
use control_store::{AuditChange, AuditEntry, Transaction};
use control_wire::{OrgId, UserId};
use serde_json::Value;
use uuid::Uuid;

/// An action on a user, or on one of the user's objects, for the audit log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserEvent<'a> {
    /// Noun and verb, such as `session.started`.
    pub(crate) action: &'a str,
    pub(crate) user: UserId,
    pub(crate) subject: Uuid,
    pub(crate) before: Option<&'a Value>,
    pub(crate) after: Option<&'a Value>,
}

/// A requester without an [`Actor`](control_domain::Actor): the bearer of a link, or a person that
/// failed to sign in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor<'a> {
    pub(crate) kind: &'a str,
    pub(crate) id: Uuid,
    pub(crate) name: &'a str,
}

impl<'a> Visitor<'a> {
    fn entry(
        self,
        visit: &'a Visit,
        action: &'a str,
        subject: Uuid,
        tenant: Option<Tenant>,
    ) -> AuditEntry<'a> {
        AuditEntry {
            at: visit.now,
            actor_kind: self.kind,
            actor: self.id,
            actor_name: self.name,
            client_ip: visit.client_ip,
            tenant,
            action,
            subject,
            correlation_id: &visit.correlation_id,
        }
    }
}

impl<'a> UserEvent<'a> {
    /// An action on the user itself.
    pub(crate) fn new(action: &'a str, user: UserId) -> Self {
        Self {
            action,
            user,
            subject: user.0,
            before: None,
            after: None,
        }
    }

    /// Adds the values after the change.
    pub(crate) fn with(self, after: &'a Value) -> Self {
        Self {
            after: Some(after),
            ..self
        }
    }

    fn change(&self) -> AuditChange {
        AuditChange {
            before: self.before.map(Value::to_string),
            after: self.after.map(Value::to_string),
        }
    }
}

impl App {
    /// Writes an entry for each organization of the user, or one for the installation if there is
    /// none; returns the number of the last entry, and the organizations.
    pub(crate) async fn record_for_user(
        &self,
        tx: &mut Transaction,
        call: &Call,
        event: UserEvent<'_>,
    ) -> Result<(i64, Vec<OrgId>), Error> {
        let mut head = 0;
        let places = places(tx, event.user).await?;
        for tenant in &places {
            tx.note_change(event.change());
            let entry = AuditEvent {
                action: event.action,
                tenant: *tenant,
                subject: event.subject,
            };
            head = self.record(tx, call, entry).await?;
        }
        Ok((head, orgs(&places)))
    }

    /// Writes the entries, commits, and wakes long polls.
    pub(crate) async fn commit_for_user(
        &self,
        mut tx: Transaction,
        call: &Call,
        event: UserEvent<'_>,
    ) -> Result<(), Error> {
        if let Some(reservation) = call.reservation {
            // No stored reply: it belongs to one tenant, and the user may belong to several.
            tx.commit_reply(reservation, None).await?;
        }
        let (head, orgs) = self.record_for_user(&mut tx, call, event).await?;
        self.finish_entries(tx, head, orgs).await
    }

    /// Commits the event of a request without a session.
    pub(crate) async fn commit_visit(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        by: Visitor<'_>,
        event: UserEvent<'_>,
    ) -> Result<(), Error> {
        let key = self.audit_key(&mut tx).await?;
        let mut head = 0;
        let places = places(&mut tx, event.user).await?;
        for tenant in &places {
            tx.note_change(event.change());
            let entry = by.entry(visit, event.action, event.subject, *tenant);
            head = tx.append_audit(&entry, &key).await?;
        }
        self.finish_entries(tx, head, orgs(&places)).await
    }

    /// Commits an action without a known user, with the values `after`, as an entry of the installation.
    pub(crate) async fn commit_unknown(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        by: Visitor<'_>,
        action: &str,
        after: &Value,
    ) -> Result<(), Error> {
        let key = self.audit_key(&mut tx).await?;
        tx.note_change(AuditChange {
            before: None,
            after: Some(after.to_string()),
        });
        let entry = by.entry(visit, action, Uuid::nil(), None);
        let head = tx.append_audit(&entry, &key).await?;
        self.finish_entries(tx, head, Vec::new()).await
    }

    async fn finish_entries(
        &self,
        tx: Transaction,
        head: i64,
        orgs: Vec<OrgId>,
    ) -> Result<(), Error> {
        let committed = tx.commit().await;
        self.note_write(&committed);
        committed?;
        self.changes.publish(head, orgs);
        Ok(())
    }
}

fn orgs(places: &[Option<Tenant>]) -> Vec<OrgId> {
    let orgs = places.iter().flatten().map(|tenant| tenant.org);
    orgs.collect()
}

/// Tenants with a view of events of the user: each organization, or the installation if there is
/// none.
async fn places(tx: &mut Transaction, user: UserId) -> Result<Vec<Option<Tenant>>, Error> {
    let orgs = tx.roles(user).await?.into_keys();
    let mut places: Vec<Option<Tenant>> = orgs.map(|org| Some(Tenant::org(org))).collect();
    if places.is_empty() {
        places.push(None);
    }
    Ok(places)
}
