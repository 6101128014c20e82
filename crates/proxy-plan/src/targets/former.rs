//! States of targets that the active plan no longer has.

use proxy_upstream::TargetState;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Maximum number of targets with a stored state.
const MAX_FORMER_TARGETS: usize = 1_024;

/// States of targets that the active plan no longer has, kept for a later plan or look-up that has
/// them again: an ejected target stays ejected for its time. The oldest are dropped first.
#[derive(Clone, Debug)]
pub(crate) struct FormerTargets<K> {
    /// States, each with the number of the plan that removed its target.
    states: HashMap<K, (u64, Arc<TargetState>)>,
    plans: u64,
}

impl<K> Default for FormerTargets<K> {
    fn default() -> Self {
        Self {
            states: HashMap::new(),
            plans: 0,
        }
    }
}

impl<K: Eq + Hash> FormerTargets<K> {
    /// The state of `identity`, without overrides by the admin interface, which last until a
    /// reload.
    pub(crate) fn get(&self, identity: &K) -> Option<Arc<TargetState>> {
        let (_, state) = self.states.get(identity)?;
        state.drain(false);
        state.override_weight(None);
        Some(Arc::clone(state))
    }

    /// Drops the targets that are active again, and stores the `removed` ones.
    pub(crate) fn replace(
        &mut self,
        is_active: impl Fn(&K) -> bool,
        removed: Vec<(K, Arc<TargetState>)>,
    ) {
        let Self { states, plans } = self;
        states.retain(|identity, _| !is_active(identity));
        *plans += 1;
        let numbered = removed
            .into_iter()
            .map(|(identity, state)| (identity, (*plans, state)));
        states.extend(numbered);
        let surplus = states.len().saturating_sub(MAX_FORMER_TARGETS);
        if surplus > 0 {
            let mut numbers: Vec<u64> = states.values().map(|(number, _)| *number).collect();
            numbers.sort_unstable();
            let last = numbers.get(surplus - 1).copied().unwrap_or_default();
            states.retain(|_, (number, _)| last < *number);
        }
    }
}
