//! Permits for work that keeps a processor busy: whole configurations, large bodies.

use super::fair::{BudgetLimits, FairPermit, FairPermits};
use crate::error::Error;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// The permits of this replica for such work. An organization holds at most one and waits once in
/// the shared queue, regardless of the number of its waiting requests.
#[derive(Debug)]
pub(crate) struct HeavyPermits(FairPermits);

/// A permit, released on drop.
pub(crate) type HeavyPermit = FairPermit;

impl HeavyPermits {
    /// `all` permits, of which an organization holds one at most.
    pub(crate) fn new(all: usize) -> Self {
        Self(FairPermits::new(BudgetLimits {
            all,
            each: 1,
            reserve: 0,
        }))
    }

    /// Waits for a permit.
    pub(crate) async fn take(&self, org: Uuid) -> HeavyPermit {
        self.0.take(org, 1).await
    }

    /// Runs a task of `org` outside the serving threads.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if the program stops in the meantime.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        org: Uuid,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let permit = self.take(org).await;
        // The work continues when its caller is cancelled, and keeps its permit.
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
        let held = permits.take(hostile).await;
        for _ in 0..10 {
            let further = timeout(short, permits.take(hostile)).await;
            assert!(further.is_err());
        }
        let of_other = timeout(short, permits.take(other)).await;
        assert!(of_other.is_ok());
        drop(held);
        assert!(timeout(short, permits.take(hostile)).await.is_ok());
    }
}
