//! Why a target is not called: several causes, each with an owner of its own.

use std::sync::atomic::{AtomicU8, Ordering};

/// A reason not to call a target. Each is set and cleared by its owner alone; none clears another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HealthCause {
    /// Its name has never had an address. Owner: the resolver.
    Dns,
    /// Active health checks have failed. Owner: the checker.
    ActiveCheck,
    /// Requests to it have failed, and it was ejected for a time. Owner: outlier detection.
    Ejection,
    /// An operator lets its requests end and sends no new ones. Owner: the admin interface, or a
    /// weight of 0. A draining target is well, and keeps sessions bound to it.
    Draining,
}

/// Which causes hold at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HealthCauses(u8);

/// The causes that hold for one target, in one atomic: written by their owners, read by all workers.
#[derive(Debug, Default)]
pub struct HealthFlags(AtomicU8);

/// What setting or clearing a cause has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseChange {
    /// The causes before.
    pub before: HealthCauses,
    /// The causes after.
    pub after: HealthCauses,
}

impl HealthCause {
    /// Every cause, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Dns, Self::ActiveCheck, Self::Ejection, Self::Draining];

    /// The cause's name in the admin interface and in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::ActiveCheck => "active_check",
            Self::Ejection => "ejection",
            Self::Draining => "draining",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Dns => 1,
            Self::ActiveCheck => 2,
            Self::Ejection => 4,
            Self::Draining => 8,
        }
    }
}

impl HealthCauses {
    /// Whether `cause` holds.
    pub const fn contains(self, cause: HealthCause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// Whether the target is well: `healthy` in the admin interface. Draining is no illness.
    #[inline]
    pub const fn is_healthy(self) -> bool {
        self.0 & !HealthCause::Draining.bit() == 0
    }

    /// Whether the target takes requests of new sessions: no cause holds.
    #[inline]
    pub const fn takes_requests(self) -> bool {
        self.0 == 0
    }

    /// The causes that hold, in the order of [`HealthCause::ALL`].
    pub fn iter(self) -> impl Iterator<Item = HealthCause> {
        let all = HealthCause::ALL.into_iter();
        all.filter(move |cause| self.contains(*cause))
    }
}

impl HealthFlags {
    /// The causes that hold now.
    #[inline]
    pub fn causes(&self) -> HealthCauses {
        HealthCauses(self.0.load(Ordering::Acquire))
    }

    /// Sets `cause`.
    pub fn set(&self, cause: HealthCause) -> CauseChange {
        let before = self.0.fetch_or(cause.bit(), Ordering::AcqRel);
        CauseChange {
            before: HealthCauses(before),
            after: HealthCauses(before | cause.bit()),
        }
    }

    /// Clears `cause`, and no other.
    pub fn clear(&self, cause: HealthCause) -> CauseChange {
        let before = self.0.fetch_and(!cause.bit(), Ordering::AcqRel);
        CauseChange {
            before: HealthCauses(before),
            after: HealthCauses(before & !cause.bit()),
        }
    }
}

impl CauseChange {
    /// Whether the target was well before, and is not now.
    pub const fn became_unhealthy(self) -> bool {
        self.before.is_healthy() && !self.after.is_healthy()
    }

    /// Whether the target was not well before, and is now.
    pub const fn became_healthy(self) -> bool {
        !self.before.is_healthy() && self.after.is_healthy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_never_clears_another() {
        for first in HealthCause::ALL {
            for second in HealthCause::ALL {
                let flags = HealthFlags::default();
                flags.set(first);
                flags.set(second);
                flags.clear(first);

                let left: Vec<_> = flags.causes().iter().collect();
                let expected: &[_] = if first == second { &[] } else { &[second] };
                assert_eq!(left, expected);
            }
        }
    }

    #[test]
    fn a_target_is_unhealthy_from_its_first_cause_to_its_last() {
        let flags = HealthFlags::default();
        assert!(flags.set(HealthCause::Dns).became_unhealthy());
        assert!(!flags.set(HealthCause::Ejection).became_unhealthy());
        assert!(!flags.clear(HealthCause::Dns).became_healthy());
        assert!(flags.clear(HealthCause::Ejection).became_healthy());
        assert!(!flags.clear(HealthCause::Ejection).became_healthy());
    }

    #[test]
    fn a_draining_target_is_well_and_takes_no_requests() {
        let flags = HealthFlags::default();
        let change = flags.set(HealthCause::Draining);

        assert!(!change.became_unhealthy());
        assert!(flags.causes().is_healthy() && !flags.causes().takes_requests());
    }
}
