//! State that outlives reloads.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;
use std::sync::Arc;

/// State kept from plan to plan: one `Arc<T>` for each identity `K` of the active plan.
///
/// Only a [`StateTransaction`] changes it, owned by the reload that makes the next plan: a failed
/// reload drops its transaction, which changes nothing.
#[derive(Debug)]
pub struct StateRegistry<K, T> {
    entries: Arc<HashMap<K, Arc<T>>>,
}

/// The entries of the next plan: known ones with their state, and new ones.
#[derive(Debug)]
pub struct StateTransaction<K, T> {
    known: Arc<HashMap<K, Arc<T>>>,
    next: HashMap<K, Arc<T>>,
}

impl<K, T> Default for StateRegistry<K, T> {
    fn default() -> Self {
        Self {
            entries: Arc::default(),
        }
    }
}

impl<K: Eq + Hash, T> StateRegistry<K, T> {
    /// A transaction without entries.
    #[must_use]
    pub fn begin(&self) -> StateTransaction<K, T> {
        StateTransaction {
            known: Arc::clone(&self.entries),
            next: HashMap::new(),
        }
    }

    /// Activates the entries of `transaction`. Other identities are removed; their state is kept by
    /// earlier plans that still hold it.
    pub fn commit(&mut self, transaction: StateTransaction<K, T>) {
        self.entries = Arc::new(transaction.next);
    }

    /// The state of `identity`, if the active plan has it.
    #[must_use]
    pub fn get(&self, identity: &K) -> Option<&Arc<T>> {
        self.entries.get(identity)
    }

    /// All states with their identities, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (&K, &Arc<T>)> {
        self.entries.iter()
    }

    /// All states, in unspecified order.
    pub fn states(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.values()
    }
}

impl<K: Eq + Hash, T> StateTransaction<K, T> {
    /// Returns true if the next plan has `identity`.
    #[must_use]
    pub fn contains(&self, identity: &K) -> bool {
        self.next.contains_key(identity)
    }

    /// The state of `identity`: the active plan's, or the result of `make` for a new identity.
    pub fn enter(&mut self, identity: K, make: impl FnOnce() -> T) -> Arc<T> {
        let made: Result<_, Infallible> = self.try_enter(identity, || Ok(make()));
        match made {
            Ok(state) => state,
        }
    }

    /// A variant for states that must not be created.
    ///
    /// # Errors
    /// The error of `make`; then the transaction has no such entry.
    pub fn try_enter<E>(
        &mut self,
        identity: K,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(entered) = self.next.get(&identity) {
            return Ok(Arc::clone(entered));
        }
        let state = match self.known.get(&identity) {
            Some(known) => Arc::clone(known),
            None => Arc::new(make()?),
        };
        self.next.insert(identity, Arc::clone(&state));
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(registry: &StateRegistry<&'static str, u32>, name: &'static str) -> Option<u32> {
        registry.get(&name).map(|state| **state)
    }

    #[test]
    fn parts_of_both_plans_keep_their_state() {
        let mut registry = StateRegistry::default();
        let mut first = registry.begin();
        let kept = first.enter("a", || 1);
        first.enter("b", || 2);
        registry.commit(first);

        let mut second = registry.begin();
        assert!(Arc::ptr_eq(&second.enter("a", || 3), &kept));
        second.enter("c", || 4);
        registry.commit(second);

        assert_eq!(
            ["a", "b", "c"].map(|name| named(&registry, name)),
            [Some(1), None, Some(4)]
        );
    }

    #[test]
    fn a_transaction_that_is_dropped_changes_nothing() {
        let mut registry = StateRegistry::default();
        let mut first = registry.begin();
        first.enter("a", || 1);
        registry.commit(first);

        for state in 0..3 {
            let mut refused = registry.begin();
            assert_eq!(*refused.enter("b", || state), state);
        }

        assert_eq!(named(&registry, "a"), Some(1));
        assert_eq!(named(&registry, "b"), None);
    }

    #[test]
    fn an_identity_entered_twice_is_one_entry() {
        let registry = StateRegistry::<_, u32>::default();
        let mut transaction = registry.begin();
        let one = transaction.enter("a", || 1);

        assert!(Arc::ptr_eq(&one, &transaction.enter("a", || 2)));
    }
}
