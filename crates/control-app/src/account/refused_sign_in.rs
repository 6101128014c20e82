//! Refused sign-ins in the audit log: why, in clear, for administrators.

use crate::account::user_event::{UserEvent, Visitor};
use crate::app::App;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::metric;
use control_domain::User;
use jiff::SignedDuration;
use metrics::counter;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use uuid::Uuid;

/// Maximum delay of the entry: written at once, it would slow down the next request of the client
/// measurably.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Interval of records for refused sign-ins of one account and reason, per replica.
const INTERVAL: SignedDuration = SignedDuration::from_hours(1);

impl App {
    /// Records a refused sign-in concurrently with the response, which must take equally long for
    /// an unknown account. Unknown accounts are only counted, so that arbitrary names do not fill
    /// the log.
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
        let [random]: [u8; 1] = self.environment.random();
        let delay = MAX_DELAY * u32::from(random) / u32::from(u8::MAX);
        tokio::spawn(async move {
            sleep(delay).await;
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
        let tx = self.store.begin().await?;
        let after = json!({"reason": reason, "email": user.email.as_str()});
        let event = UserEvent::new("session.refused", user.id).with(&after);
        let by = Visitor {
            kind: "visitor",
            id: Uuid::nil(),
            name: &visit.browser,
        };
        self.commit_visit(tx, visit, by, event).await
    }
}
