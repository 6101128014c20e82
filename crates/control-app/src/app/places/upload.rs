//! Places for the uploads of bundles: few at once, and only some of them for one organization and for one user.
//!
//! Each organization has one place, if any is free; the places for further uploads are few, and all share them. Two
//! organizations that hold all they can leave two of six places, three leave one.

use super::owner::OwnerPlaces;
use crate::error::Error;
use control_wire::OrgId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use uuid::Uuid;

/// Bundles that are uploaded at once: each holds 32 MiB while it comes.
const MAX_UPLOADS: usize = 6;
/// Those beyond the first of each organization, of all organizations together.
const MAX_FURTHER_UPLOADS: usize = 2;
/// Those of one user: a slow sender must leave room for other users.
const MAX_USER_UPLOADS: usize = 2;
/// The longest time that a further upload waits for a place.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The places of this replica.
#[derive(Debug)]
pub(crate) struct UploadPlaces {
    all: Arc<Semaphore>,
    /// One of each organization.
    by_org: OwnerPlaces,
    /// Those of organizations that have one already.
    further: Arc<Semaphore>,
    by_user: OwnerPlaces,
}

/// A place among the uploads, given back when it is dropped.
#[derive(Debug)]
pub struct UploadPlace {
    /// Of all uploads, of the organization, of the user.
    _permits: [OwnedSemaphorePermit; 3],
}

impl Default for UploadPlaces {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_UPLOADS)),
            by_org: OwnerPlaces::new(1),
            further: Arc::new(Semaphore::new(MAX_FURTHER_UPLOADS)),
            by_user: OwnerPlaces::new(MAX_USER_UPLOADS),
        }
    }
}

impl UploadPlaces {
    /// A place for an upload of `user`, as [`Actor::quota_owner`](control_domain::Actor::quota_owner) names it, to a
    /// project of `org`.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyUploads`] if none becomes free in two seconds.
    pub(crate) async fn take(&self, org: OrgId, user: Uuid) -> Result<UploadPlace, Error> {
        let places = async {
            // An upload that waits for a place of its user or organization takes none from the rest.
            let of_user = self.by_user.take(user).await?;
            let further = Arc::clone(&self.further);
            let of_org = tokio::select! {
                biased;
                first = self.by_org.take(org.0) => first?,
                further = further.acquire_owned() => further.map_err(|_| Error::Stopped)?,
            };
            let of_all = Arc::clone(&self.all).acquire_owned().await;
            let of_all = of_all.map_err(|_| Error::Stopped)?;
            Ok::<_, Error>(UploadPlace {
                _permits: [of_all, of_org, of_user],
            })
        };
        let taken = timeout(MAX_WAIT, places).await;
        taken.map_err(|_| Error::TooManyUploads)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: OrgId = OrgId(Uuid::from_u128(1));
    const OTHER: OrgId = OrgId(Uuid::from_u128(2));

    fn user(number: u128) -> Uuid {
        Uuid::from_u128(number + 10)
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_that_holds_its_places_leaves_the_others_theirs() {
        let places = UploadPlaces::default();
        let held = [
            places.take(SLOW, user(0)).await.unwrap(),
            places.take(SLOW, user(0)).await.unwrap(),
        ];
        let third = places.take(SLOW, user(0)).await;
        assert!(matches!(third, Err(Error::TooManyUploads)), "{third:?}");
        assert!(places.take(SLOW, user(1)).await.is_ok());
        drop(held);
        assert!(places.take(SLOW, user(0)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_that_holds_its_places_leaves_the_others_theirs() {
        let places = UploadPlaces::default();
        let mut held = Vec::new();
        for number in 0..4 {
            held.push(places.take(SLOW, user(number)).await);
        }
        let taken = held.iter().filter(|place| place.is_ok()).count();
        assert_eq!(taken, 1 + MAX_FURTHER_UPLOADS);
        let others = [
            places.take(OTHER, user(10)).await,
            places.take(OrgId(Uuid::from_u128(3)), user(11)).await,
        ];
        assert!(others.iter().all(Result::is_ok));
    }

    #[tokio::test(start_paused = true)]
    async fn three_organizations_that_hold_what_they_can_leave_a_place() {
        let places = UploadPlaces::default();
        let mut held = Vec::new();
        for org in [SLOW, OTHER, OrgId(Uuid::from_u128(3))] {
            for number in 0..5 {
                held.push(places.take(org, user(number)).await);
            }
        }
        let taken = held.iter().filter(|place| place.is_ok()).count();
        assert_eq!(taken, MAX_UPLOADS - 1);
        let fourth = OrgId(Uuid::from_u128(4));
        assert!(places.take(fourth, user(10)).await.is_ok());
        drop(held);
        assert!(places.take(SLOW, user(0)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_waits_gets_the_place_that_becomes_free() {
        let places = UploadPlaces::default();
        let held = [
            places.take(SLOW, user(0)).await.unwrap(),
            places.take(SLOW, user(0)).await.unwrap(),
        ];
        let (third, ()) = tokio::join!(places.take(SLOW, user(0)), async { drop(held) });
        assert!(third.is_ok());
    }
}
