//! Refused sign-ins in the audit log: why, in clear, for administrators.

use crate::app::App;
use crate::error::Error;
use crate::metric;
use crate::visit::Visit;
use control_domain::{Tenant, User};
use control_store::{AuditChange, AuditEntry};
use jiff::SignedDuration;
use metrics::counter;
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

/// A refused sign-in of one account and reason is noted so often, by each replica.
const INTERVAL: SignedDuration = SignedDuration::from_hours(1);

impl App {
    /// Notes a refused sign-in beside the answer, which must take as long for an unknown account. Unknown accounts
    /// are counted only: names that strangers type do not fill the log.
    pub(crate) fn note_refusal(
        self: &Arc<Self>,
        visit: &Visit,
        user: Option<&User>,
        reason: &'static str,
    ) {
        counter!(metric::AUTHENTICATION_FAILURES).increment(1);
        let Some(user) = user.cloned() else { return };
        let name = format!("{} {reason}", user.id);
        let last = self.refused_sign_ins.get(&name);
        if last.is_some_and(|last| visit.now.duration_since(last) < INTERVAL) {
            return;
        }
        self.refused_sign_ins.insert(name, visit.now);
        let (app, visit) = (Arc::clone(self), visit.clone());
        tokio::spawn(async move {
            if let Err(error) = app.write_refusal(&visit, &user, reason).await {
                tracing::warn!(%error, "a refused sign-in is not in the audit log");
            }
        });
    }

    async fn write_refusal(
        &self,
        visit: &Visit,
        user: &User,
        reason: &'static str,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let key = self.audit_key(&mut tx).await?;
        let orgs = tx.roles(user.id).await?.into_keys();
        let mut places: Vec<Option<Tenant>> = orgs.map(|org| Some(Tenant::org(org))).collect();
        if places.is_empty() {
            places.push(None);
        }
        let mut head = 0;
        for tenant in places {
            let after = json!({"reason": reason, "email": user.email.as_str()});
            tx.note_change(AuditChange {
                before: None,
                after: Some(after.to_string()),
            });
            let entry = AuditEntry {
                at: visit.now,
                actor_kind: "visitor",
                actor: Uuid::nil(),
                actor_name: &visit.browser,
                client_ip: visit.client_ip,
                tenant,
                action: "session.refused",
                subject: user.id.0,
                correlation_id: &visit.correlation_id,
            };
            head = tx.append_audit(&entry, &key).await?;
        }
        tx.commit().await?;
        self.changes.publish(head);
        Ok(())
    }
}
