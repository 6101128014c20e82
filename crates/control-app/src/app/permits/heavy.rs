//! Permits for CPU-bound work: checks of whole configurations, parsing of large bodies.

use super::fair::{BudgetLimits, FairPermit, FairPermits};
use crate::error::Error;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// The permits of this replica for CPU-bound work. An organization holds one at most; the number of
/// its waiting requests does not give it more turns.
#[derive(Debug)]
pub(crate) struct HeavyPermits(FairPermits);

/// A permit, released on drop.
pub(crate) type HeavyPermit = FairPermit;

impl HeavyPermits {
    /// Creates `all` permits; an organization holds one at most.
    pub(crate) fn new(all: usize) -> Self {
        Self(FairPermits::new(BudgetLimits {
            all,
            each: 1,
            reserve: 0,
        }))
    }

    pub(crate) async fn acquire(&self, org: Uuid) -> HeavyPermit {
        self.0.acquire(org, 1).await
    }

    /// Runs a task of `org` on a thread for blocking work, with a permit.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if the program stops before the task ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        org: Uuid,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let permit = self.acquire(org).await;
        // A cancelled caller does not stop the task, so the task keeps the permit.
        let task = spawn_blocking(move || {
            let done = task();
            drop(permit);
            done
        });
        task.await.map_err(|_| Error::Stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn an_organization_waits_for_its_own_work_alone() {
        let short = Duration::from_millis(1);
        let permits = HeavyPermits::new(2);
        let [hostile, other] = [1, 2].map(Uuid::from_u128);
        let held = permits.acquire(hostile).await;
        for _ in 0..10 {
            let further = timeout(short, permits.acquire(hostile)).await;
            assert!(further.is_err());
        }
        let of_other = timeout(short, permits.acquire(other)).await;
        assert!(of_other.is_ok());
        drop(held);
        assert!(timeout(short, permits.acquire(hostile)).await.is_ok());
    }
}
