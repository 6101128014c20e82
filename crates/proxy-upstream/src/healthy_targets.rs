//! One worker's list of usable targets.

use crate::target::TargetState;

/// A target that may take requests.
#[derive(Clone, Copy, Debug)]
pub struct CandidateTarget<'t> {
    /// State shared by all workers.
    pub state: &'t TargetState,
    /// Weight of the configuration, before slow start.
    pub weight: u32,
    /// True if it takes requests only while no other target can.
    pub is_backup: bool,
}

/// The healthy targets of an upstream, as indexes into its targets; its backup targets if no other one is healthy. If
/// none is healthy, those that only could not be connected to: one of them may be back.
#[derive(Debug, Default)]
pub struct HealthyTargets {
    targets: Vec<u16>,
    backups: Vec<u16>,
    last_resorts: Vec<u16>,
    // By position of the target; 0 for one that takes no new requests.
    weights: Vec<u32>,
    has_equal_weights: bool,
}

impl HealthyTargets {
    /// The currently healthy ones of `targets`. Targets beyond 65 535 are left out.
    #[must_use]
    pub fn new<'t>(targets: impl Iterator<Item = CandidateTarget<'t>>) -> Self {
        let mut ready = Self::default();
        ready.refresh(targets);
        ready
    }

    /// Recomputes the list for `targets`, reusing its memory.
    pub fn refresh<'t>(&mut self, targets: impl Iterator<Item = CandidateTarget<'t>>) {
        self.targets.clear();
        self.backups.clear();
        self.last_resorts.clear();
        self.weights.clear();
        for (target, index) in targets.zip(0..=u16::MAX) {
            let CandidateTarget {
                state,
                weight,
                is_backup,
            } = target;
            let weight = state.overridden_weight().unwrap_or(weight);
            self.weights.push(weight);
            let causes = state.causes();
            let list = if weight == 0 {
                continue;
            } else if causes.takes_requests() && is_backup {
                &mut self.backups
            } else if causes.takes_requests() {
                &mut self.targets
            } else if causes.is_last_resort() {
                &mut self.last_resorts
            } else {
                continue;
            };
            list.push(index);
        }
        for other in [&mut self.backups, &mut self.last_resorts] {
            if self.targets.is_empty() {
                std::mem::swap(&mut self.targets, other);
            }
        }
        let mut weights = self.targets.iter().map(|target| self.weight(*target));
        let first = weights.next();
        self.has_equal_weights = weights.all(|weight| Some(weight) == first);
    }

    /// The indexes, in the order of the configuration.
    #[inline]
    #[must_use]
    pub fn targets(&self) -> &[u16] {
        &self.targets
    }

    /// The indexes of backup targets that could take requests while main targets do, in the order of the
    /// configuration.
    #[must_use]
    pub fn waiting_backups(&self) -> &[u16] {
        &self.backups
    }

    /// The target's weight, at least 1.
    #[inline]
    #[must_use]
    pub fn weight(&self, target: u16) -> u32 {
        let weight = self.weights.get(usize::from(target));
        weight.map_or(1, |weight| (*weight).max(1))
    }

    /// Returns true if all listed targets have the same weight.
    #[inline]
    #[must_use]
    pub const fn has_equal_weights(&self) -> bool {
        self.has_equal_weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_health::HealthCause;
    use std::time::SystemTime;

    fn candidate(state: &TargetState, weight: u32) -> CandidateTarget<'_> {
        CandidateTarget {
            state,
            weight,
            is_backup: false,
        }
    }

    #[test]
    fn backup_targets_serve_only_while_no_other_target_can() {
        let targets = targets();
        let all = || {
            let candidates = targets.iter().zip([false, true, true]);
            candidates.map(|(target, is_backup)| CandidateTarget {
                is_backup,
                ..candidate(target, 1)
            })
        };
        let fail = |target: usize, cause| {
            targets[target].fail(cause, "refused", SystemTime::UNIX_EPOCH);
        };
        let mut ready = HealthyTargets::new(all());
        assert_eq!(ready.targets(), [0]);

        fail(0, HealthCause::Connect);
        ready.refresh(all());
        assert_eq!(ready.targets(), [1, 2], "before a target that refuses");

        fail(1, HealthCause::ActiveCheck);
        fail(2, HealthCause::Connect);
        ready.refresh(all());
        assert_eq!(ready.targets(), [0, 2], "both may be back");

        targets[0].clear(HealthCause::Connect);
        ready.refresh(all());
        assert_eq!(ready.targets(), [0]);
    }

    fn targets() -> [TargetState; 3] {
        [(); 3].map(|()| TargetState::default())
    }

    #[test]
    fn an_unhealthy_target_is_off_the_list_until_it_recovers() {
        let targets = targets();
        let all = || targets.iter().map(|target| candidate(target, 1));
        let mut ready = HealthyTargets::new(all());
        assert_eq!(ready.targets(), [0, 1, 2]);

        let refused = "refused";
        targets[1].fail(HealthCause::Dns, refused, SystemTime::UNIX_EPOCH);
        ready.refresh(all());
        assert_eq!(ready.targets(), [0, 2]);

        targets[1].clear(HealthCause::Dns);
        ready.refresh(all());
        assert_eq!(ready.targets(), [0, 1, 2]);
    }

    #[test]
    fn targets_that_cannot_be_connected_to_serve_only_when_no_other_does() {
        let targets = targets();
        let all = || targets.iter().map(|target| candidate(target, 1));
        let fail = |target: usize, cause| {
            targets[target].fail(cause, "refused", SystemTime::UNIX_EPOCH);
        };
        fail(0, HealthCause::Connect);
        fail(1, HealthCause::Connect);
        let mut ready = HealthyTargets::new(all());
        assert_eq!(ready.targets(), [2]);

        fail(2, HealthCause::Connect);
        fail(0, HealthCause::ActiveCheck);
        ready.refresh(all());
        assert_eq!(ready.targets(), [1, 2]);
    }

    #[test]
    fn a_target_of_weight_0_or_draining_gets_no_new_requests() {
        let targets = targets();
        targets[2].drain(true);

        let ready = HealthyTargets::new(
            targets
                .iter()
                .zip([0, 5, 5])
                .map(|(target, weight)| candidate(target, weight)),
        );

        assert_eq!(ready.targets(), [1]);
        assert_eq!(ready.weight(1), 5);
        assert!(ready.has_equal_weights(), "only targets in the list count");
    }

    #[test]
    fn an_override_replaces_the_configured_weight() {
        let targets = targets();
        targets[0].override_weight(Some(0));
        targets[1].override_weight(Some(7));
        let all = || targets.iter().map(|target| candidate(target, 1));

        let mut ready = HealthyTargets::new(all());
        assert_eq!((ready.targets(), ready.weight(1)), (&[1, 2][..], 7));
        assert!(!ready.has_equal_weights());

        targets[0].override_weight(None);
        ready.refresh(all());
        assert_eq!(ready.targets(), [0, 1, 2]);
    }
}
