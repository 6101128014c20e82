//! Memory budgets for large request bodies, held until the response is sent. Bundle uploads have a
//! separate budget.
//!
//! An organization may hold a part of the budget; its second and later bodies leave enough for the
//! largest body of another organization. While an organization without a body waits, it is served
//! next, and slow bodies are aborted.

use super::fair::{BudgetLimits, FairPermit, FairPermits};
use super::owner::OwnerPermits;
use crate::error::Error;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use uuid::Uuid;

/// Larger bodies need a permit, and are parsed outside the serving threads.
pub const MAX_SMALL_BYTES: usize = 16 * 1024;

/// Maximum number of concurrent large bodies per sender, so that a slow sender leaves room for the
/// rest of its organization.
const MAX_OF_SENDER: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// A bundle or a recording, of up to 32 MiB.
    Upload,
    /// A report of a node, a form, or another body of up to 2 MiB.
    Other,
}

/// The permits of this replica for one kind of body.
#[derive(Debug)]
pub(crate) struct BodyPermits {
    kind: BodyKind,
    all: FairPermits,
    by_sender: OwnerPermits,
}

/// A permit for a large body, released on drop.
#[derive(Debug)]
pub struct BodyPermit {
    _of_all: FairPermit,
    _of_sender: OwnedSemaphorePermit,
    admitted: AdmittedBody,
}

/// Limits that the reader of an admitted body needs.
#[derive(Clone, Debug)]
pub struct AdmittedBody {
    pub(crate) kind: BodyKind,
    pub(crate) org: Uuid,
    permits: FairPermits,
}

impl BodyKind {
    /// The budget in bytes.
    fn limits(self) -> BudgetLimits {
        let [all, each, reserve] = match self {
            Self::Upload => [96, 40, 32],
            Self::Other => [32, 12, 8],
        }
        .map(|mebibytes: usize| mebibytes << 20);
        BudgetLimits { all, each, reserve }
    }

    /// Estimated memory of a body of `bytes`. Uploads are kept as files; other bodies are kept as
    /// text and as parsed values.
    fn memory_bytes(self, bytes: usize) -> usize {
        let factor = match self {
            Self::Upload => 1,
            Self::Other => 4,
        };
        (factor * bytes).clamp(MAX_SMALL_BYTES, self.limits().each)
    }

    /// Maximum wait of an organization that already holds `held` bytes. Its first upload waits
    /// longer, until slow bodies of other organizations are aborted. The body itself is not read
    /// meanwhile.
    fn max_wait(self, held: usize) -> Duration {
        Duration::from_secs(match self {
            Self::Upload if 0 < held => 2,
            Self::Upload => 15,
            Self::Other => 10,
        })
    }

    fn refusal(self) -> Error {
        match self {
            Self::Upload => Error::TooManyUploads,
            Self::Other => Error::TooManyBodies,
        }
    }
}

impl BodyPermits {
    pub(crate) fn new(kind: BodyKind) -> Self {
        Self {
            kind,
            all: FairPermits::new(kind.limits()),
            by_sender: OwnerPermits::new(MAX_OF_SENDER),
        }
    }

    /// Acquires a permit for a body of up to `bytes` from `sender`, within the budget and its
    /// organization's share.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyUploads`] or [`Error::TooManyBodies`] if the wait is too long: 2 seconds for
    /// uploads, 15 for the first one of an organization, 10 for other bodies.
    pub(crate) async fn acquire(
        &self,
        org: Uuid,
        sender: Uuid,
        bytes: usize,
    ) -> Result<BodyPermit, Error> {
        let Self {
            kind,
            all,
            by_sender,
        } = self;
        // The sender's own limit comes first: a body that waits for it must not occupy the budget.
        let of_sender = timeout(kind.max_wait(1), by_sender.acquire(sender)).await;
        let of_sender = of_sender.map_err(|_| kind.refusal())??;
        let wait = kind.max_wait(all.held_by(org));
        let of_all = timeout(wait, all.acquire(org, kind.memory_bytes(bytes))).await;
        Ok(BodyPermit {
            _of_all: of_all.map_err(|_| kind.refusal())?,
            _of_sender: of_sender,
            admitted: AdmittedBody {
                kind: *kind,
                org,
                permits: all.clone(),
            },
        })
    }
}

impl BodyPermit {
    /// The limits for the reader of the body.
    pub fn admitted(&self) -> AdmittedBody {
        self.admitted.clone()
    }
}

impl AdmittedBody {
    /// Returns true if an organization without a body of this kind waits, so that a slow body must
    /// be aborted.
    pub fn is_contended(&self) -> bool {
        self.permits.are_wanted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
    const SLOW: Uuid = org(1);
    const OTHER: Uuid = org(2);

    const fn org(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn sender(number: u128) -> Uuid {
        Uuid::from_u128(number + 1_000)
    }

    /// Bodies of this size that `org` gets permits for, each of another sender.
    async fn hold(permits: &BodyPermits, org: Uuid, bytes: usize) -> Vec<BodyPermit> {
        let mut held = Vec::new();
        loop {
            let sender = sender(org.as_u128() * 1_000 + held.len() as u128);
            match permits.acquire(org, sender, bytes).await {
                Ok(permit) => held.push(permit),
                Err(_) => return held,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_holds_its_permits_leaves_the_others_theirs() {
        for (kind, busy) in [
            (BodyKind::Upload, Error::TooManyUploads),
            (BodyKind::Other, Error::TooManyBodies),
        ] {
            let permits = BodyPermits::new(kind);
            let held = [
                permits.acquire(SLOW, sender(0), MIB).await.unwrap(),
                permits.acquire(SLOW, sender(0), MIB).await.unwrap(),
            ];
            let third = permits.acquire(SLOW, sender(0), MIB).await.unwrap_err();
            assert_eq!(third.to_string(), busy.to_string());
            assert!(permits.acquire(SLOW, sender(1), MIB).await.is_ok());
            drop(held);
            assert!(permits.acquire(SLOW, sender(0), MIB).await.is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_of_all_organizations_take_no_more_than_the_budget() {
        let largest = [(BodyKind::Upload, 32 * MIB), (BodyKind::Other, 2 * MIB)];
        let sizes =
            largest.map(|(kind, largest)| [MIB / 16, MIB, largest].map(|bytes| (kind, bytes)));
        for (kind, bytes) in sizes.into_iter().flatten() {
            let permits = BodyPermits::new(kind);
            let (limits, memory) = (kind.limits(), kind.memory_bytes(bytes));
            let mut held = hold(&permits, SLOW, bytes).await;
            assert_eq!(held.len(), limits.each / memory, "{kind:?} of {bytes}");
            for number in 2..20 {
                held.extend(hold(&permits, org(number), bytes).await);
            }
            let bytes_held = held.len() * memory;
            assert!(bytes_held <= limits.all, "{kind:?} of {bytes}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_at_its_limit_leaves_room_to_other_ones() {
        for (kind, largest) in [(BodyKind::Upload, 32 * MIB), (BodyKind::Other, 2 * MIB)] {
            for bytes in [MIB / 2, largest] {
                let permits = BodyPermits::new(kind);
                let _held = hold(&permits, SLOW, bytes).await;
                let other = permits.acquire(OTHER, sender(0), bytes).await.unwrap();
                let third = permits.acquire(org(3), sender(1), largest / 2).await;
                assert!(third.is_ok(), "{kind:?} of {bytes}");
                drop(other);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_without_a_body_gets_the_next_room() {
        let permits = BodyPermits::new(BodyKind::Upload);
        let mut held = Vec::new();
        for number in 0..3 {
            held.extend(hold(&permits, org(number), 32 * MIB).await);
        }
        assert_eq!(held.len(), 3, "three organizations hold all");
        let slow = held[0].admitted();
        assert!(!slow.is_contended());
        let next = async {
            // Owners of bodies wait for further ones, and were first.
            tokio::task::yield_now().await;
            permits.acquire(org(100), sender(100), 32 * MIB).await
        };
        let further = permits.acquire(org(0), sender(50), MIB);
        let (further, next, ()) = tokio::join!(further, next, async {
            while !slow.is_contended() {
                tokio::task::yield_now().await;
            }
            held.pop();
        });
        assert!(matches!(further, Err(Error::TooManyUploads)), "{further:?}");
        assert!(next.is_ok());
    }
}
