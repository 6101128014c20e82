//! Places for the uploads of bundles: few at once, and only some of them for one organization and for one user.
//!
//! Each organization has one place, if any is free; the few places for further uploads are shared
//! by all. Two organizations at their maximum leave two of six places, three leave one. While an
//! organization without a place waits, it gets the next one, and slow uploads are aborted.

use super::fair::{FairPlace, FairPlaces, PlaceLimits};
use super::owner::OwnerPlaces;
use crate::error::Error;
use control_wire::OrgId;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use uuid::Uuid;

/// Maximum number of concurrent bundle uploads: each holds 32 MiB.
const MAX_UPLOADS: usize = 6;
/// Permits beyond the first of each organization, for all organizations together.
const MAX_FURTHER_UPLOADS: usize = 2;
/// Permits of one user: a slow sender must leave room for other users.
const MAX_USER_UPLOADS: usize = 2;
/// The longest time that a further upload waits for a place.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Maximum wait of an organization's first upload: slow uploads of other organizations are aborted
/// in that time.
const MAX_FIRST_WAIT: Duration = Duration::from_secs(15);

/// The places of this replica.
#[derive(Debug)]
pub(crate) struct UploadPlaces {
    all: FairPlaces,
    by_user: OwnerPlaces,
}

/// A place among the uploads, given back when it is dropped.
#[derive(Debug)]
pub struct UploadPlace {
    _of_all: FairPlace,
    _of_user: OwnedSemaphorePermit,
    pressure: UploadPressure,
}

/// Signals that uploads keep an organization without a place waiting.
#[derive(Clone, Debug)]
pub struct UploadPressure(FairPlaces);

impl Default for UploadPlaces {
    fn default() -> Self {
        Self {
            all: FairPlaces::new(PlaceLimits {
                all: MAX_UPLOADS,
                each: 1 + MAX_FURTHER_UPLOADS,
                further: MAX_FURTHER_UPLOADS,
            }),
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
    /// [`Error::TooManyUploads`] if none is free in two seconds; in fifteen for an organization
    /// without one.
    pub(crate) async fn take(&self, org: OrgId, user: Uuid) -> Result<UploadPlace, Error> {
        let too_many = |_| Error::TooManyUploads;
        // An upload waiting for a place of its user uses no shared place.
        let user_permit = timeout(MAX_WAIT, self.by_user.take(user)).await;
        let user_permit = user_permit.map_err(too_many)??;
        let wait = match self.all.held_by(org.0) {
            0 => MAX_FIRST_WAIT,
            _ => MAX_WAIT,
        };
        let shared_permit = timeout(wait, self.all.take(org.0)).await;
        Ok(UploadPlace {
            _of_all: shared_permit.map_err(too_many)?,
            _of_user: user_permit,
            pressure: UploadPressure(self.all.clone()),
        })
    }
}

impl UploadPlace {
    /// The pressure on this upload, for the reader of its body.
    pub fn pressure(&self) -> UploadPressure {
        self.pressure.clone()
    }
}

impl UploadPressure {
    /// Returns true if an organization without a place waits for one.
    pub fn is_high(&self) -> bool {
        self.0.are_wanted()
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

    #[tokio::test(start_paused = true)]
    async fn an_organization_without_a_place_gets_the_next_one() {
        let places = UploadPlaces::default();
        let mut held = Vec::new();
        for number in 0..4 {
            let org = OrgId(Uuid::from_u128(number));
            for further in 0..2 {
                let taken = places.take(org, user(10 * number + further)).await;
                held.extend(taken.ok());
            }
        }
        assert_eq!(held.len(), MAX_UPLOADS, "four organizations hold all");
        let pressure = held[0].pressure();
        assert!(!pressure.is_high());
        let next = async {
            // Owners that hold a place wait for further ones, and were first.
            tokio::task::yield_now().await;
            let victim = OrgId(Uuid::from_u128(100));
            places.take(victim, user(100)).await
        };
        let further = places.take(OrgId(Uuid::from_u128(0)), user(50));
        let (further, next, ()) = tokio::join!(further, next, async {
            while !pressure.is_high() {
                tokio::task::yield_now().await;
            }
            held.pop();
        });
        assert!(matches!(further, Err(Error::TooManyUploads)), "{further:?}");
        assert!(next.is_ok());
    }
}
