//! Permits for the uploads of bundles: few at once, and only some of them for one organization and for one user.
//!
//! Each organization has one permit, if any is free; the few permits for further uploads are shared
//! by all. Two organizations at their maximum leave two of six permits, three leave one. While an
//! organization without a permit waits, it gets the next one, and slow uploads are aborted.

use super::fair::{FairPermit, FairPermits, PermitLimits};
use super::owner::OwnerPermits;
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
/// The longest time that a further upload waits for a permit.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Maximum wait of an organization's first upload: slow uploads of other organizations are aborted
/// in that time.
const MAX_FIRST_WAIT: Duration = Duration::from_secs(15);

/// The permits of this replica.
#[derive(Debug)]
pub(crate) struct UploadPermits {
    all: FairPermits,
    by_user: OwnerPermits,
}

/// A permit among the uploads, given back when it is dropped.
#[derive(Debug)]
pub struct UploadPermit {
    _of_all: FairPermit,
    _of_user: OwnedSemaphorePermit,
    pressure: UploadPressure,
}

/// Signals that uploads keep an organization without a permit waiting.
#[derive(Clone, Debug)]
pub struct UploadPressure(FairPermits);

impl Default for UploadPermits {
    fn default() -> Self {
        Self {
            all: FairPermits::new(PermitLimits {
                all: MAX_UPLOADS,
                each: 1 + MAX_FURTHER_UPLOADS,
                further: MAX_FURTHER_UPLOADS,
            }),
            by_user: OwnerPermits::new(MAX_USER_UPLOADS),
        }
    }
}

impl UploadPermits {
    /// A permit for an upload of `user`, as [`Actor::quota_owner`](control_domain::Actor::quota_owner) names it, to a
    /// project of `org`.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyUploads`] if none is free in two seconds; in fifteen for an organization
    /// without one.
    pub(crate) async fn take(&self, org: OrgId, user: Uuid) -> Result<UploadPermit, Error> {
        let too_many = |_| Error::TooManyUploads;
        // An upload waiting for a permit of its user uses no shared permit.
        let user_permit = timeout(MAX_WAIT, self.by_user.take(user)).await;
        let user_permit = user_permit.map_err(too_many)??;
        let wait = match self.all.held_by(org.0) {
            0 => MAX_FIRST_WAIT,
            _ => MAX_WAIT,
        };
        let shared_permit = timeout(wait, self.all.take(org.0)).await;
        Ok(UploadPermit {
            _of_all: shared_permit.map_err(too_many)?,
            _of_user: user_permit,
            pressure: UploadPressure(self.all.clone()),
        })
    }
}

impl UploadPermit {
    /// The pressure on this upload, for the reader of its body.
    pub fn pressure(&self) -> UploadPressure {
        self.pressure.clone()
    }
}

impl UploadPressure {
    /// Returns true if an organization without a permit waits for one.
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
    async fn a_user_that_holds_its_permits_leaves_the_others_theirs() {
        let permits = UploadPermits::default();
        let held = [
            permits.take(SLOW, user(0)).await.unwrap(),
            permits.take(SLOW, user(0)).await.unwrap(),
        ];
        let third = permits.take(SLOW, user(0)).await;
        assert!(matches!(third, Err(Error::TooManyUploads)), "{third:?}");
        assert!(permits.take(SLOW, user(1)).await.is_ok());
        drop(held);
        assert!(permits.take(SLOW, user(0)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_that_holds_its_permits_leaves_the_others_theirs() {
        let permits = UploadPermits::default();
        let mut held = Vec::new();
        for number in 0..4 {
            held.push(permits.take(SLOW, user(number)).await);
        }
        let taken = held.iter().filter(|permit| permit.is_ok()).count();
        assert_eq!(taken, 1 + MAX_FURTHER_UPLOADS);
        let others = [
            permits.take(OTHER, user(10)).await,
            permits.take(OrgId(Uuid::from_u128(3)), user(11)).await,
        ];
        assert!(others.iter().all(Result::is_ok));
    }

    #[tokio::test(start_paused = true)]
    async fn three_organizations_that_hold_what_they_can_leave_a_permit() {
        let permits = UploadPermits::default();
        let mut held = Vec::new();
        for org in [SLOW, OTHER, OrgId(Uuid::from_u128(3))] {
            for number in 0..5 {
                held.push(permits.take(org, user(number)).await);
            }
        }
        let taken = held.iter().filter(|permit| permit.is_ok()).count();
        assert_eq!(taken, MAX_UPLOADS - 1);
        let fourth = OrgId(Uuid::from_u128(4));
        assert!(permits.take(fourth, user(10)).await.is_ok());
        drop(held);
        assert!(permits.take(SLOW, user(0)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_waits_gets_the_permit_that_becomes_free() {
        let permits = UploadPermits::default();
        let held = [
            permits.take(SLOW, user(0)).await.unwrap(),
            permits.take(SLOW, user(0)).await.unwrap(),
        ];
        let (third, ()) = tokio::join!(permits.take(SLOW, user(0)), async { drop(held) });
        assert!(third.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_without_a_permit_gets_the_next_one() {
        let permits = UploadPermits::default();
        let mut held = Vec::new();
        for number in 0..4 {
            let org = OrgId(Uuid::from_u128(number));
            for further in 0..2 {
                let taken = permits.take(org, user(10 * number + further)).await;
                held.extend(taken.ok());
            }
        }
        assert_eq!(held.len(), MAX_UPLOADS, "four organizations hold all");
        let pressure = held[0].pressure();
        assert!(!pressure.is_high());
        let next = async {
            // Owners that hold a permit wait for further ones, and were first.
            tokio::task::yield_now().await;
            let victim = OrgId(Uuid::from_u128(100));
            permits.take(victim, user(100)).await
        };
        let further = permits.take(OrgId(Uuid::from_u128(0)), user(50));
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
