//! Outages of this process or its database, in which no heartbeat is stored.

use control_domain::HeartbeatInterval;
use jiff::Timestamp;
use std::sync::PoisonError;

#[expect(
    clippy::disallowed_types,
    reason = "held to copy a value, never across an await"
)]
type Lock = std::sync::Mutex<OutageState>;

/// The last outage that this replica has noticed.
#[derive(Debug, Default)]
pub(crate) struct Outage(Lock);

#[derive(Clone, Copy, Debug, Default)]
enum OutageState {
    #[default]
    None,
    UnderWay,
    EndedAt(Timestamp),
}

impl Outage {
    /// Begins an outage, or prolongs it.
    pub(crate) fn begin(&self) {
        self.set(|_| OutageState::UnderWay);
    }

    /// Ends the outage, if there is one.
    pub(crate) fn end(&self, now: Timestamp) {
        self.set(|state| match state {
            OutageState::UnderWay => OutageState::EndedAt(now),
            OutageState::None | OutageState::EndedAt(_) => state,
        });
    }

    /// True until nodes have had the time to report after an outage: before that, their silence does
    /// not prove that they are offline. False after the clock was set back.
    pub(crate) fn hides_nodes(&self, interval: HeartbeatInterval, now: Timestamp) -> bool {
        match self.state() {
            OutageState::None => false,
            OutageState::UnderWay => true,
            OutageState::EndedAt(end) => interval.online_since(now) < end && end <= now,
        }
    }

    fn state(&self) -> OutageState {
        let Self(lock) = self;
        *lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(OutageState) -> OutageState) {
        let Self(lock) = self;
        let mut state = lock.lock().unwrap_or_else(PoisonError::into_inner);
        *state = change(*state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn silence_counts_again_three_intervals_after_an_outage() {
        let interval = HeartbeatInterval::from_secs(30);
        let after = |secs| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs);
        let outage = Outage::default();
        outage.end(after(0));
        assert!(!outage.hides_nodes(interval, after(0)), "none has begun");
        outage.begin();
        assert!(outage.hides_nodes(interval, after(1_000)));
        outage.end(after(1_000));
        outage.end(after(1_050));
        for (secs, expected) in [(999, false), (1_000, true), (1_089, true), (1_090, false)] {
            assert_eq!(
                outage.hides_nodes(interval, after(secs)),
                expected,
                "{secs}"
            );
        }
    }
}
