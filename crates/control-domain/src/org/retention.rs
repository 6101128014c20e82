//! Retention: for how long values that have ended are kept.

use jiff::{SignedDuration, Timestamp};

const DAY_HOURS: i64 = 24;

/// Retention in days after the end of a value; 0 is unlimited. Equal on all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Rollouts, after their end.
    pub rollouts: u32,
    /// Unused bundles, counted from their creation.
    pub bundles: u32,
    /// Drift events, after they were resolved.
    pub drift: u32,
    /// Enrolment tokens and API keys, after they expired or were revoked.
    pub tokens: u32,
    /// Entries of the audit log; archives of them are never deleted.
    pub audit: u32,
    /// Traffic by steps of six hours, after it was counted; shorter steps are kept for nine days at most.
    pub traffic: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            rollouts: 180,
            bundles: 180,
            drift: 90,
            tokens: 90,
            audit: 400,
            // A week, the week before it, and a margin.
            traffic: 15,
        }
    }
}

impl Retention {
    /// The time before which ended values are deleted; `None` for unlimited retention.
    pub fn cutoff(days: u32, now: Timestamp) -> Option<Timestamp> {
        let kept = SignedDuration::from_hours(i64::from(days) * DAY_HOURS);
        (0 < days).then(|| now.checked_sub(kept).ok()).flatten()
    }
}
