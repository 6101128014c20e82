//! Places for large bodies that are no uploads, such as reports of nodes: they are in memory until they are answered.

use super::owner::OwnerPlaces;
use crate::error::Error;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use uuid::Uuid;

/// Large bodies of one organization. Each has at most 1 MiB.
const MAX_ORG_BODIES: usize = 16;
/// Large bodies of one actor, such as a node: one that sends slowly leaves the rest of its organization theirs.
const MAX_ACTOR_BODIES: usize = 2;
/// The longest wait for a place. The body waits in the client and in its connection.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The places of this replica.
#[derive(Debug)]
pub(crate) struct BodyPlaces {
    by_org: OwnerPlaces,
    by_actor: OwnerPlaces,
}

/// A place for a large body, given back when it is dropped.
#[derive(Debug)]
pub struct BodyPlace {
    /// Of the actor, of the organization.
    _permits: [OwnedSemaphorePermit; 2],
}

impl Default for BodyPlaces {
    fn default() -> Self {
        Self {
            by_org: OwnerPlaces::new(MAX_ORG_BODIES),
            by_actor: OwnerPlaces::new(MAX_ACTOR_BODIES),
        }
    }
}

impl BodyPlaces {
    /// A place for a large body of `actor`, shared with its organization.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyBodies`] if none is free in ten seconds.
    pub(crate) async fn take(&self, org: Uuid, actor: Uuid) -> Result<BodyPlace, Error> {
        let places = async {
            let actor_permit = self.by_actor.take(actor).await?;
            let org_permit = self.by_org.take(org).await?;
            Ok(BodyPlace {
                _permits: [actor_permit, org_permit],
            })
        };
        let taken = timeout(MAX_WAIT, places).await;
        taken.map_err(|_| Error::TooManyBodies)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn large_bodies_of_an_actor_and_of_an_organization_leave_places_to_others() {
        let places = BodyPlaces::default();
        let [org, other] = [1, 2].map(Uuid::from_u128);
        let actor = |number: usize| Uuid::from_u128(10 + number as u128);
        let mut held = Vec::new();
        for number in 0..MAX_ORG_BODIES {
            held.push(
                places
                    .take(org, actor(number / MAX_ACTOR_BODIES))
                    .await
                    .unwrap(),
            );
        }
        let further = places.take(org, actor(100)).await;
        assert!(matches!(further, Err(Error::TooManyBodies)), "{further:?}");
        let actor_permit = places.take(other, actor(0)).await;
        assert!(
            matches!(actor_permit, Err(Error::TooManyBodies)),
            "{actor_permit:?}"
        );
        assert!(places.take(other, actor(101)).await.is_ok());
        held.pop();
        assert!(places.take(org, actor(100)).await.is_ok());
    }
}
