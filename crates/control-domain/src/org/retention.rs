//! Retention: how long ended values are kept.

use jiff::{SignedDuration, Timestamp};

const DAY_HOURS: i64 = 24;

/// Retention in days after the end of a value; 0 keeps it for ever. Must be equal on all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Rollouts, after their end.
    pub rollouts: u32,
    /// Unused bundles, after their creation.
    pub bundles: u32,
    /// Drifts, after they were resolved.
    pub drift: u32,
    /// Enrolment tokens and API keys, after they expired or were revoked.
    pub tokens: u32,
    /// Entries of the audit log in the database; their archives are never deleted.
    pub audit: u32,
    /// Traffic in steps of six hours; shorter steps are kept for at most nine days.
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
            // A week, the week before, and a margin.
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
