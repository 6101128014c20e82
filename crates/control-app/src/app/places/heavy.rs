//! Places for work that keeps a processor busy: whole configurations, large bodies.

use super::fair::{FairPlace, FairPlaces, PlaceLimits};
use crate::error::Error;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// The places of this replica for such work. An organization holds at most one and waits once in
/// the shared queue, regardless of the number of its waiting requests.
#[derive(Debug)]
pub(crate) struct HeavyPlaces(FairPlaces);

/// A place, given back when it is dropped.
pub(crate) type HeavyPlace = FairPlace;

impl HeavyPlaces {
    /// `all` places, of which an organization holds one at most.
    pub(crate) fn new(all: usize) -> Self {
        Self(FairPlaces::new(PlaceLimits {
            all,
            each: 1,
            further: 0,
        }))
    }

    /// Waits for a place.
    pub(crate) async fn take(&self, org: Uuid) -> HeavyPlace {
        self.0.take(org).await
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
        let place = self.take(org).await;
        // The work continues when its caller is cancelled, and keeps its place.
        let task = spawn_blocking(move || {
            let done = task();
            drop(place);
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
        let places = HeavyPlaces::new(2);
        let [hostile, other] = [1, 2].map(Uuid::from_u128);
        let held = places.take(hostile).await;
        for _ in 0..10 {
            let further = timeout(short, places.take(hostile)).await;
            assert!(further.is_err());
        }
        let of_other = timeout(short, places.take(other)).await;
        assert!(of_other.is_ok());
        drop(held);
        assert!(timeout(short, places.take(hostile)).await.is_ok());
    }
}
