//! Places for the uploads of bundles: few at once, and half of them at most for one user with all keys.

use crate::error::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use uuid::Uuid;

/// Bundles that are uploaded at once: each may take 100 MiB until it is stored.
const MAX_UPLOADS: usize = 4;
/// Those of one user: one that sends slowly must not keep other users out.
const MAX_USER_UPLOADS: usize = 2;
/// The longest time that a further upload waits for a place.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The places of this replica.
#[derive(Debug)]
pub(crate) struct UploadPlaces {
    all: Arc<Semaphore>,
    /// Users that upload or wait, by their keys too.
    by_owner: Mutex<BTreeMap<Uuid, Arc<Semaphore>>>,
}

/// A place among the uploads, given back when it is dropped.
#[derive(Debug)]
pub struct UploadPlace {
    _of_all: OwnedSemaphorePermit,
    _of_owner: OwnedSemaphorePermit,
}

impl Default for UploadPlaces {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_UPLOADS)),
            by_owner: Mutex::default(),
        }
    }
}

impl UploadPlaces {
    /// A place for an upload of `owner`, as [`Actor::quota_owner`](control_domain::Actor::quota_owner) names it.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyUploads`] if none becomes free in two seconds.
    pub(crate) async fn take(&self, owner: Uuid) -> Result<UploadPlace, Error> {
        let own = self.of_owner(owner).await;
        let places = async {
            // An upload that waits for its own user's place takes none from others.
            let of_owner = own.acquire_owned().await.map_err(|_| Error::Stopped)?;
            let of_all = Arc::clone(&self.all).acquire_owned().await;
            Ok::<_, Error>(UploadPlace {
                _of_all: of_all.map_err(|_| Error::Stopped)?,
                _of_owner: of_owner,
            })
        };
        let taken = timeout(MAX_WAIT, places).await;
        taken.map_err(|_| Error::TooManyUploads)?
    }

    /// The places of one user. Those that no upload holds or waits for are forgotten.
    async fn of_owner(&self, owner: Uuid) -> Arc<Semaphore> {
        let mut by_owner = self.by_owner.lock().await;
        by_owner.retain(|_, places| Arc::strong_count(places) > 1);
        let places = by_owner.entry(owner);
        let places = places.or_insert_with(|| Arc::new(Semaphore::new(MAX_USER_UPLOADS)));
        Arc::clone(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Uuid = Uuid::from_u128(1);

    fn other(number: u128) -> Uuid {
        Uuid::from_u128(number + 10)
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_that_holds_its_places_leaves_the_others_theirs() {
        let places = UploadPlaces::default();
        let held = [
            places.take(SLOW).await.unwrap(),
            places.take(SLOW).await.unwrap(),
        ];
        let third = places.take(SLOW).await;
        assert!(matches!(third, Err(Error::TooManyUploads)), "{third:?}");
        let others = [
            places.take(other(1)).await.unwrap(),
            places.take(other(2)).await.unwrap(),
        ];
        let fifth = places.take(other(3)).await;
        assert!(matches!(fifth, Err(Error::TooManyUploads)), "{fifth:?}");
        drop(others);
        assert!(places.take(other(3)).await.is_ok());
        drop(held);
        assert!(places.take(SLOW).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_waits_gets_the_place_that_becomes_free() {
        let places = UploadPlaces::default();
        let held = [
            places.take(SLOW).await.unwrap(),
            places.take(SLOW).await.unwrap(),
        ];
        let (third, ()) = tokio::join!(places.take(SLOW), async { drop(held) });
        assert!(third.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_without_uploads_is_forgotten() {
        let places = UploadPlaces::default();
        for number in 0..100 {
            drop(places.take(other(number)).await.unwrap());
        }
        assert_eq!(places.by_owner.lock().await.len(), 1);
    }
}
