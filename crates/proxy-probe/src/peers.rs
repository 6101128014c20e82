//! The targets of one upstream, for the pace of their checks.

use proxy_upstream::TargetState;
use std::sync::Arc;
use tokio::sync::Notify;

/// The targets of one upstream: while none of them takes requests, their checks are faster.
#[derive(Debug, Default)]
pub struct Peers {
    states: Vec<Arc<TargetState>>,
    /// Wakes the checks of all targets when the last one has become unhealthy.
    all_down: Notify,
}

impl Peers {
    /// The targets with these states.
    #[must_use]
    pub fn new(states: Vec<Arc<TargetState>>) -> Self {
        Self {
            states,
            all_down: Notify::new(),
        }
    }

    /// Returns true if no target takes requests.
    pub(crate) fn are_down(&self) -> bool {
        !self
            .states
            .iter()
            .any(|state| state.causes().takes_requests())
    }

    pub(crate) fn wake_if_down(&self) {
        if self.are_down() {
            self.all_down.notify_waiters();
        }
    }

    pub(crate) async fn woken(&self) {
        self.all_down.notified().await;
    }
}

/// Peers are equal if they are the same targets.
impl PartialEq for Peers {
    fn eq(&self, other: &Self) -> bool {
        let pairs = || self.states.iter().zip(&other.states);
        self.states.len() == other.states.len() && pairs().all(|(one, two)| Arc::ptr_eq(one, two))
    }
}
