//! The places of each owner.

use crate::error::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// The places of each owner, such as an organization.
#[derive(Debug)]
pub(crate) struct OwnerPlaces {
    each: usize,
    /// Owners that hold a place or wait for one.
    by_owner: Mutex<BTreeMap<Uuid, Arc<Semaphore>>>,
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
    /// [`Error::Stopped`] if the program stops in the meantime.
    pub(crate) async fn take(&self, owner: Uuid) -> Result<OwnedSemaphorePermit, Error> {
        let own = self.semaphore(owner).await;
        own.acquire_owned().await.map_err(|_| Error::Stopped)
    }

    /// Owners without a held or awaited place are dropped.
    async fn semaphore(&self, owner: Uuid) -> Arc<Semaphore> {
        let mut by_owner = self.by_owner.lock().await;
        by_owner.retain(|_, places| Arc::strong_count(places) > 1);
        let places = by_owner.entry(owner);
        Arc::clone(places.or_insert_with(|| Arc::new(Semaphore::new(self.each))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_owner_without_places_is_forgotten() {
        let places = OwnerPlaces::new(2);
        for number in 0..100 {
            drop(places.take(Uuid::from_u128(number)).await.unwrap());
        }
        assert_eq!(places.by_owner.lock().await.len(), 1);
    }
}
