//! Permits for large bodies that are no uploads, such as reports of nodes: they are in memory until they are answered.

use super::owner::OwnerPermits;
use crate::error::Error;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use uuid::Uuid;

/// Large bodies of one organization. Each has at most 1 MiB.
const MAX_ORG_BODIES: usize = 16;
/// Large bodies of one actor, such as a node: one that sends slowly leaves the rest of its organization theirs.
const MAX_ACTOR_BODIES: usize = 2;
/// The longest wait for a permit. The body waits in the client and in its connection.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The permits of this replica.
#[derive(Debug)]
pub(crate) struct BodyPermits {
    by_org: OwnerPermits,
    by_actor: OwnerPermits,
}

/// A permit for a large body, given back when it is dropped.
#[derive(Debug)]
pub struct BodyPermit {
    /// The permits of the actor and of the organization.
    _permits: [OwnedSemaphorePermit; 2],
}

impl Default for BodyPermits {
    fn default() -> Self {
        Self {
            by_org: OwnerPermits::new(MAX_ORG_BODIES),
            by_actor: OwnerPermits::new(MAX_ACTOR_BODIES),
        }
    }
}

impl BodyPermits {
    /// A permit for a large body of `actor`, shared with its organization.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyBodies`] if none is free in ten seconds.
    pub(crate) async fn take(&self, org: Uuid, actor: Uuid) -> Result<BodyPermit, Error> {
        let permits = async {
            let actor_permit = self.by_actor.take(actor).await?;
            let org_permit = self.by_org.take(org).await?;
            Ok(BodyPermit {
                _permits: [actor_permit, org_permit],
            })
        };
        let taken = timeout(MAX_WAIT, permits).await;
        taken.map_err(|_| Error::TooManyBodies)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn large_bodies_of_an_actor_and_of_an_organization_leave_permits_to_others() {
        let permits = BodyPermits::default();
        let [org, other] = [1, 2].map(Uuid::from_u128);
        let actor = |number: usize| Uuid::from_u128(10 + number as u128);
        let mut held = Vec::new();
        for number in 0..MAX_ORG_BODIES {
            held.push(
                permits
                    .take(org, actor(number / MAX_ACTOR_BODIES))
                    .await
                    .unwrap(),
            );
        }
        let further = permits.take(org, actor(100)).await;
        assert!(matches!(further, Err(Error::TooManyBodies)), "{further:?}");
        let actor_permit = permits.take(other, actor(0)).await;
        assert!(
            matches!(actor_permit, Err(Error::TooManyBodies)),
            "{actor_permit:?}"
        );
        assert!(permits.take(other, actor(101)).await.is_ok());
        held.pop();
        assert!(permits.take(org, actor(100)).await.is_ok());
    }
}
