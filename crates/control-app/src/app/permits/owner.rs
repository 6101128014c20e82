//! A limit on concurrent permits per owner.

use crate::error::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// A separate semaphore for each owner, such as an organization.
#[derive(Debug)]
pub(crate) struct OwnerPermits {
    max_per_owner: usize,
    /// Owners that hold a permit or wait for one.
    by_owner: Mutex<BTreeMap<Uuid, Arc<Semaphore>>>,
}

impl OwnerPermits {
    pub(crate) fn new(max_per_owner: usize) -> Self {
        Self {
            max_per_owner,
            by_owner: Mutex::default(),
        }
    }

    /// Waits for a permit of `owner`.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if the program stops in the meantime.
    pub(crate) async fn acquire(&self, owner: Uuid) -> Result<OwnedSemaphorePermit, Error> {
        let own = self.semaphore(owner).await;
        own.acquire_owned().await.map_err(|_| Error::Stopped)
    }

    /// The owner's semaphore. Removes semaphores that are neither held nor awaited.
    async fn semaphore(&self, owner: Uuid) -> Arc<Semaphore> {
        let mut by_owner = self.by_owner.lock().await;
        by_owner.retain(|_, permits| Arc::strong_count(permits) > 1);
        let permits = by_owner.entry(owner);
        Arc::clone(permits.or_insert_with(|| Arc::new(Semaphore::new(self.max_per_owner))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_owner_without_permits_is_removed() {
        let permits = OwnerPermits::new(2);
        for number in 0..100 {
            drop(permits.acquire(Uuid::from_u128(number)).await.unwrap());
        }
        assert_eq!(permits.by_owner.lock().await.len(), 1);
    }
}
