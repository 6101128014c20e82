//! Places for the comparison of passwords, each of which takes 19 MiB and a tenth of a second of one core.

use crate::error::Error;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Maximum number of concurrent comparisons for unknown browsers.
const STRANGERS: usize = 2;
/// Permits for signed-in users and known browsers: a flood of other clients does not delay them.
const KNOWN: usize = 2;
/// Maximum number of requests waiting for a place; further ones are refused at once.
const MAX_WAITING: usize = 64;
/// The longest wait for a place.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The places of this replica.
#[derive(Debug)]
pub(crate) struct PasswordPlaces {
    strangers: Semaphore,
    known: Semaphore,
    waiting: Semaphore,
}

/// The person behind the comparison or the hash of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordOwner {
    /// A browser that never signed in.
    Stranger,
    /// A user that is signed in, or a browser that the user signed in with before.
    Known,
}

impl Default for PasswordPlaces {
    fn default() -> Self {
        Self {
            strangers: Semaphore::new(STRANGERS),
            known: Semaphore::new(KNOWN),
            waiting: Semaphore::new(MAX_WAITING),
        }
    }
}

impl PasswordPlaces {
    /// A place, to be held until the password is compared.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySignIns`] if too many wait, or none is free in ten seconds.
    pub(crate) async fn take(&self, owner: PasswordOwner) -> Result<SemaphorePermit<'_>, Error> {
        let places = match owner {
            PasswordOwner::Stranger => &self.strangers,
            PasswordOwner::Known => &self.known,
        };
        if let Ok(place) = places.try_acquire() {
            return Ok(place);
        }
        let _waiting = match owner {
            PasswordOwner::Stranger => Some(
                self.waiting
                    .try_acquire()
                    .map_err(|_| Error::TooManySignIns)?,
            ),
            PasswordOwner::Known => None,
        };
        let place = timeout(MAX_WAIT, places.acquire()).await;
        let place = place.map_err(|_| Error::TooManySignIns)?;
        place.map_err(|_| Error::Stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_strangers_is_bounded_and_leaves_the_known_their_places() {
        let places = PasswordPlaces::default();
        let mut held = Vec::new();
        for _ in 0..STRANGERS {
            held.push(places.take(PasswordOwner::Stranger).await.unwrap());
        }
        let flood = (0..MAX_WAITING).map(|_| places.take(PasswordOwner::Stranger));
        let mut flood: Vec<_> = flood.map(Box::pin).collect();
        for waiting in &mut flood {
            assert!(futures_poll(waiting).is_pending());
        }
        let refused = places.take(PasswordOwner::Stranger).await;
        assert!(matches!(refused, Err(Error::TooManySignIns)), "{refused:?}");
        assert!(places.take(PasswordOwner::Known).await.is_ok());
        held.pop();
        let first = flood.remove(0).await;
        assert!(first.is_ok(), "the place that became free");
        let second = flood.remove(0).await;
        assert!(
            matches!(second, Err(Error::TooManySignIns)),
            "waited too long"
        );
    }

    fn futures_poll<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(future).poll(&mut context)
    }
}
