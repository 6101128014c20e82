//! Entries of the audit log about a user: each organization of the user sees them.

use crate::app::App;
use crate::audit_event::AuditEvent;
use crate::call::Call;
use crate::error::Error;
use control_domain::Tenant;
use control_store::{AuditChange, Transaction};
use control_wire::UserId;
use serde_json::Value;
use uuid::Uuid;

/// What was done to a user, or to what belongs to one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserEvent<'a> {
    /// The noun and what was done, such as `session.started`.
    pub(crate) action: &'a str,
    pub(crate) user: UserId,
    pub(crate) subject: Uuid,
    pub(crate) before: Option<&'a Value>,
    pub(crate) after: Option<&'a Value>,
}

impl App {
    /// Writes an entry for each organization of the user, or else one of the installation; gives the number of the
    /// last one.
    pub(crate) async fn record_for_user(
        &self,
        tx: &mut Transaction,
        call: &Call,
        event: UserEvent<'_>,
    ) -> Result<i64, Error> {
        let orgs = tx.roles(event.user).await?.into_keys();
        let mut places: Vec<Option<Tenant>> = orgs.map(|org| Some(Tenant::org(org))).collect();
        if places.is_empty() {
            places.push(None);
        }
        let mut head = 0;
        for tenant in places {
            tx.note_change(AuditChange {
                before: event.before.map(Value::to_string),
                after: event.after.map(Value::to_string),
            });
            let entry = AuditEvent {
                action: event.action,
                tenant,
                subject: event.subject,
            };
            head = self.record(tx, call, entry).await?;
        }
        Ok(head)
    }

    /// Writes the entries, commits, and wakes long polls.
    pub(crate) async fn commit_for_user(
        &self,
        mut tx: Transaction,
        call: &Call,
        event: UserEvent<'_>,
    ) -> Result<(), Error> {
        if let Some(reservation) = call.reservation {
            tx.commit_reply(reservation).await?;
        }
        let head = self.record_for_user(&mut tx, call, event).await?;
        let committed = tx.commit().await;
        self.note_write(&committed);
        committed?;
        self.changes.publish(head);
        Ok(())
    }
}
