//! Attribution of a failed attempt to the target or to the client.

use super::attempts::Attempts;
use proxy_clock::TICK;
use proxy_errors::{Reason, SentRequest};

impl Attempts<'_, '_> {
    /// Returns true if the target is at fault for `reason`: see [`proxy_errors::Blame`].
    pub(super) fn is_targets_fault(&self, reason: Reason) -> bool {
        !self.was_closing && reason.blame().is_target(self.sent_request())
    }

    fn sent_request(&self) -> SentRequest {
        let upload = self.upload.as_deref();
        let is_whole = upload.is_none_or(|upload| upload.complete.get());
        let completed_at = upload.map_or(self.began_at, |upload| upload.completed_at.get());
        let whole_since = self.began_at.max(completed_at);
        let ticks = self.timers.clock().now().0.saturating_sub(whole_since.0);
        let total = self.to.route.timeouts.total;
        let had_time =
            total.is_some_and(|total| total < TICK.saturating_mul(ticks).saturating_mul(2));
        SentRequest { is_whole, had_time }
    }
}
