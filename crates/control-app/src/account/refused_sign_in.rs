//! Audit entries for refused sign-ins, with the reason that the response does not reveal.

use crate::account::user_event::{UserEvent, Visitor};
use crate::app::App;
use crate::app::refusal_windows::{FoldedRefusals, RefusalKey};
use crate::call::visit::Visit;
use crate::error::Error;
use crate::metric;
use control_domain::{Email, User};
use control_wire::UserId;
use jiff::Timestamp;
use metrics::counter;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use uuid::Uuid;

/// Maximum random delay of the entry: an immediate write would measurably slow the client's next
/// request, and so reveal that the account exists.
const MAX_DELAY: Duration = Duration::from_secs(2);
const ACTION: &str = "session.refused";
/// Reason for attempts that were refused before any password or code was compared.
pub(super) const TOO_MANY_ATTEMPTS: &str = "too many tries";

impl App {
    /// Records a refused sign-in in a separate task, so that the response takes as long as for an
    /// unknown account. Only the first refusal per minute with the same account, reason and client
    /// has an entry; [`Self::write_folded_refusals`] writes the number of further ones. Entries for
    /// unknown accounts are in the installation's log.
    pub(crate) fn note_refusal(
        self: &Arc<Self>,
        visit: &Visit,
        email: &str,
        user: Option<&User>,
        reason: &'static str,
    ) {
        if reason != TOO_MANY_ATTEMPTS {
            counter!(metric::AUTHENTICATION_FAILURES).increment(1);
        }
        let user = user.map(|user| user.id);
        let key = RefusalKey::new(user, reason, visit);
        if !self.refused_sign_ins.begin_or_count(key, visit) {
            return;
        }
        // Other text may be a password in the wrong field.
        let email = Email::parse("email", email).ok();
        let after = json!({"reason": reason, "email": email.as_ref().map(Email::as_str)});
        let (app, visit) = (Arc::clone(self), visit.clone());
        let [random]: [u8; 1] = self.environment.random();
        let delay = MAX_DELAY * u32::from(random) / u32::from(u8::MAX);
        tokio::spawn(async move {
            sleep(delay).await;
            if let Err(error) = app.write_refusal(&visit, user, &after).await {
                tracing::warn!(%error, "a refused sign-in is not in the audit log");
            }
        });
    }

    /// Writes the counts of refused sign-ins that have no entry of their own, for minutes that have
    /// ended.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer; the counts are then in the error log.
    pub async fn write_folded_refusals(&self, now: Timestamp) -> Result<(), Error> {
        let mut done = Ok(());
        for folded in self.refused_sign_ins.take_ended(now) {
            let FoldedRefusals {
                key,
                count,
                since,
                visit,
            } = folded;
            let reason = key.reason;
            let after = json!({"reason": reason, "more": count, "since": since});
            if let Err(error) = self.write_refusal(&visit, key.user, &after).await {
                tracing::warn!(%error, count, "refused sign-ins are not in the audit log");
                done = Err(error);
            }
        }
        done
    }

    async fn write_refusal(
        &self,
        visit: &Visit,
        user: Option<UserId>,
        after: &Value,
    ) -> Result<(), Error> {
        let tx = self.store.begin().await?;
        let by = Visitor {
            kind: "visitor",
            id: Uuid::nil(),
            name: &visit.browser,
        };
        match user {
            Some(user) => {
                let event = UserEvent::new(ACTION, user).with(after);
                self.commit_visit(tx, visit, by, event).await
            }
            None => self.commit_unknown(tx, visit, by, ACTION, after).await,
        }
    }
}
