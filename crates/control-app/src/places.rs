//! Places for work that takes long or much memory: few at once, and only some of them for one owner.

mod upload;

use crate::error::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
pub use upload::UploadPlace;
pub(crate) use upload::UploadPlaces;
use uuid::Uuid;

/// The places of each owner, such as an organization.
#[derive(Debug)]
pub(crate) struct OwnerPlaces {
    each: usize,
    /// Owners that hold a place or wait for one.
    by_owner: Mutex<BTreeMap<Uuid, Arc<Semaphore>>>,
}

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

impl OwnerPlaces {
    pub(crate) fn new(each: usize) -> Self {
        Self {
            each,
            by_owner: Mutex::default(),
        }
    }

    /// Waits for a place of `owner`.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`]
    pub(crate) async fn take(&self, owner: Uuid) -> Result<OwnedSemaphorePermit, Error> {
        let own = self.of(owner).await;
        own.acquire_owned().await.map_err(|_| Error::Stopped)
    }

    /// Owners without a place that is held or waited for are forgotten.
    async fn of(&self, owner: Uuid) -> Arc<Semaphore> {
        let mut by_owner = self.by_owner.lock().await;
        by_owner.retain(|_, places| Arc::strong_count(places) > 1);
        let places = by_owner.entry(owner);
        Arc::clone(places.or_insert_with(|| Arc::new(Semaphore::new(self.each))))
    }
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

    const SHORT: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn an_organization_waits_for_its_own_work_alone() {
        let places = HeavyPlaces::new(2);
        let [hostile, other] = [1, 2].map(Uuid::from_u128);
        let held = places.take(hostile).await.unwrap();
        for _ in 0..10 {
            let further = timeout(SHORT, places.take(hostile)).await;
            assert!(further.is_err());
        }
        let of_other = timeout(SHORT, places.take(other)).await;
        assert!(of_other.is_ok());
        drop(held);
        assert!(timeout(SHORT, places.take(hostile)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_without_places_is_forgotten() {
        let places = OwnerPlaces::new(2);
        for number in 0..100 {
            drop(places.take(Uuid::from_u128(number)).await.unwrap());
        }
        assert_eq!(places.by_owner.lock().await.len(), 1);
    }
}
