//! The addresses of targets that are written by name.

use proxy_model::TargetAddress;
use proxy_upstream::ResolvedAddress;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

/// Results of all DNS look-ups, by the name as configured.
///
/// Input of a plan's compilation: each address of a name becomes a target. A name that was not
/// resolved becomes one target without an address, as in `config check` and `explain`.
#[derive(Clone, Debug, Default)]
pub struct Resolution(HashMap<TargetAddress, NameResolution>);

/// The result of resolving a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameResolution {
    /// The last good answer: at least one address, sorted, none twice.
    Addresses(Arc<[ResolvedAddress]>),
    /// No look-up has succeeded yet.
    Failed {
        /// Error of the last look-up.
        error: Arc<str>,
        /// Time of the first one.
        since: SystemTime,
    },
}

impl Resolution {
    /// The result for `name`; `None` if it was not resolved.
    #[must_use]
    pub fn get(&self, name: &TargetAddress) -> Option<&NameResolution> {
        self.0.get(name)
    }

    /// Records the addresses of a successful look-up, at least one. Returns true if they differ from
    /// the last ones.
    pub fn record_addresses(
        &mut self,
        name: TargetAddress,
        mut addresses: Vec<ResolvedAddress>,
    ) -> bool {
        addresses.sort_unstable();
        addresses.dedup_by_key(|one| one.address);
        let found = NameResolution::Addresses(addresses.into());
        let before = self.0.insert(name, found.clone());
        before != Some(found)
    }

    /// Records a failure. The last good answer is kept; returns true if there is none.
    pub fn record_failure(&mut self, name: TargetAddress, error: &str, now: SystemTime) -> bool {
        let since = match self.0.get(&name) {
            Some(NameResolution::Addresses(_)) => return false,
            Some(NameResolution::Failed { since, .. }) => *since,
            None => now,
        };
        let error = error.into();
        self.0.insert(name, NameResolution::Failed { error, since });
        true
    }

    /// Drops all names except those for which `is_kept` is true.
    pub fn retain(&mut self, is_kept: impl Fn(&TargetAddress) -> bool) {
        self.0.retain(|name, _| is_kept(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> ResolvedAddress {
        ResolvedAddress {
            address: text.parse().unwrap(),
            weight: None,
        }
    }

    fn name() -> TargetAddress {
        "app:80".parse().unwrap()
    }

    #[test]
    fn an_answer_in_another_order_is_the_same_answer() {
        let mut resolution = Resolution::default();
        let [one, two] = ["10.0.0.1:80", "10.0.0.2:80"].map(at);

        assert!(resolution.record_addresses(name(), vec![two, one]));
        assert!(!resolution.record_addresses(name(), vec![one, two, one]));
        assert!(resolution.record_addresses(name(), vec![one]));
    }

    #[test]
    fn a_failure_keeps_the_last_good_answer() {
        let mut resolution = Resolution::default();
        let now = SystemTime::UNIX_EPOCH;
        assert!(resolution.record_failure(name(), "no such name", now));
        resolution.record_addresses(name(), vec![at("10.0.0.1:80")]);

        assert!(!resolution.record_failure(name(), "no answer", now));
        assert!(matches!(
            resolution.get(&name()),
            Some(NameResolution::Addresses(_))
        ));
    }
}
