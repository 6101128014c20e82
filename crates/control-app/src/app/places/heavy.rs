//! Places for work on whole configurations.

use super::owner::OwnerPlaces;
use crate::error::Error;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// The places of this replica for work on whole configurations.
#[derive(Debug)]
pub(crate) struct HeavyPlaces {
    all: Arc<Semaphore>,
    by_org: OwnerPlaces,
}

/// A place for work on whole configurations, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct HeavyPlace {
    _of_all: OwnedSemaphorePermit,
    _of_org: OwnedSemaphorePermit,
}

impl HeavyPlaces {
    /// `all` places, of which an organization holds one at most.
    pub(crate) fn new(all: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            by_org: OwnerPlaces::new(1),
        }
    }

    /// Waits for a place. An organization waits once for places of all, however many of its requests wait, so that
    /// organizations take turns.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`]
    pub(crate) async fn take(&self, org: Uuid) -> Result<HeavyPlace, Error> {
        let of_org = self.by_org.take(org).await?;
        let of_all = Arc::clone(&self.all).acquire_owned().await;
        Ok(HeavyPlace {
            _of_all: of_all.map_err(|_| Error::Stopped)?,
            _of_org: of_org,
        })
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
        let held = places.take(hostile).await.unwrap();
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
