//! One worker's list of the targets that may be called.

use crate::target::TargetState;
use std::sync::Arc;

/// The healthy targets of an upstream, as indices into its targets.
#[derive(Debug, Default)]
pub struct HealthyTargets {
    targets: Vec<u16>,
}

impl HealthyTargets {
    /// Those of `targets` that are healthy now. Targets beyond 65 535 are left out.
    #[must_use]
    pub fn of<'t>(targets: impl Iterator<Item = &'t Arc<TargetState>>) -> Self {
        let mut ready = Self::default();
        ready.refresh(targets);
        ready
    }

    /// Looks at `targets` again, reusing the list's memory.
    pub fn refresh<'t>(&mut self, targets: impl Iterator<Item = &'t Arc<TargetState>>) {
        self.targets.clear();
        let healthy = targets
            .zip(0..=u16::MAX)
            .filter(|(target, _)| target.is_healthy())
            .map(|(_, index)| index);
        self.targets.extend(healthy);
    }

    /// The indices, in the order of the configuration.
    #[inline]
    #[must_use]
    pub fn targets(&self) -> &[u16] {
        &self.targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn an_unhealthy_target_leaves_the_list_and_comes_back() {
        let targets: Vec<_> = (0..3).map(|_| Arc::new(TargetState::default())).collect();
        let mut ready = HealthyTargets::of(targets.iter());
        assert_eq!(ready.targets(), [0, 1, 2]);

        targets[1].fail("refused".to_owned(), SystemTime::UNIX_EPOCH);
        ready.refresh(targets.iter());
        assert_eq!(ready.targets(), [0, 2]);

        targets[1].recover();
        ready.refresh(targets.iter());
        assert_eq!(ready.targets(), [0, 1, 2]);
    }
}
