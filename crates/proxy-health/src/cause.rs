//! Causes for which a target gets no requests; each has its own owner.

use std::sync::atomic::{AtomicU8, Ordering};

/// A cause for which a target gets no requests. Only its owner sets and clears it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HealthCause {
    /// Its name has never had an address. Owner: the resolver.
    Dns,
    /// Active health checks failed. Owner: the checker.
    ActiveCheck,
    /// Requests to it failed, and it was ejected for a time. Owner: outlier detection.
    Ejection,
    /// It could not be connected to. It is left out while another target serves. Owner: passive health.
    Connect,
    /// An operator drains it: requests in flight finish, new ones go elsewhere. Owner: the admin
    /// interface, or a weight of 0. A draining target is healthy, and keeps sessions bound to it.
    Draining,
}

/// A set of causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HealthCauses(u8);

/// The causes of one target, in one atomic: written by their owners, read by all workers.
#[derive(Debug, Default)]
pub struct HealthFlags(AtomicU8);

/// The effect of setting or clearing a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseChange {
    /// Causes before the change.
    pub before: HealthCauses,
    /// Causes after the change; empty if the target is healthy.
    pub after: HealthCauses,
}

impl HealthCause {
    /// Every cause, in display order.
    pub const ALL: [Self; 5] = [
        Self::Dns,
        Self::ActiveCheck,
        Self::Ejection,
        Self::Connect,
        Self::Draining,
    ];

    /// The cause's name in the admin interface and in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::ActiveCheck => "active_check",
            Self::Ejection => "ejection",
            Self::Connect => "connect",
            Self::Draining => "draining",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Dns => 1,
            Self::ActiveCheck => 2,
            Self::Ejection => 4,
            Self::Draining => 8,
            Self::Connect => 16,
        }
    }
}

impl HealthCauses {
    /// Returns true if the set contains `cause`.
    pub const fn contains(self, cause: HealthCause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// Returns true if the target is healthy: `healthy` in the admin interface. A draining target
    /// is.
    #[inline]
    pub const fn is_healthy(self) -> bool {
        self.0 & !HealthCause::Draining.bit() == 0
    }

    /// Returns true if the target takes requests of new sessions: the set is empty.
    #[inline]
    pub const fn takes_requests(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the target could only not be connected to: it takes requests if no target
    /// takes any.
    #[inline]
    pub const fn is_last_resort(self) -> bool {
        self.0 == HealthCause::Connect.bit()
    }

    /// The causes in the set, in the order of [`HealthCause::ALL`].
    pub fn iter(self) -> impl Iterator<Item = HealthCause> {
        let all = HealthCause::ALL.into_iter();
        all.filter(move |cause| self.contains(*cause))
    }
}

impl HealthFlags {
    /// Active causes; empty if the target is healthy.
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

    /// Clears only `cause`.
    pub fn clear(&self, cause: HealthCause) -> CauseChange {
        let before = self.0.fetch_and(!cause.bit(), Ordering::AcqRel);
        CauseChange {
            before: HealthCauses(before),
            after: HealthCauses(before & !cause.bit()),
        }
    }
}

impl CauseChange {
    /// Returns true if the target became unhealthy by the change.
    pub const fn became_unhealthy(self) -> bool {
        self.before.is_healthy() && !self.after.is_healthy()
    }

    /// Returns true if the target became healthy by the change.
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
    fn a_draining_target_is_healthy_and_gets_no_requests() {
        let flags = HealthFlags::default();
        let change = flags.set(HealthCause::Draining);

        assert!(!change.became_unhealthy());
        assert!(flags.causes().is_healthy() && !flags.causes().takes_requests());
    }
}
