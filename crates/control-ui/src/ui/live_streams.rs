//! Limits on the event streams of live pages.

use control_wire::UserId;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Maximum number of streams per replica; each occupies a connection.
const MAX_STREAMS: usize = 1_000;
/// Maximum number of streams per user. Browsers close the streams of hidden tabs.
const MAX_STREAMS_OF_USER: usize = 30;

#[expect(
    clippy::disallowed_types,
    reason = "held for a few instructions, at the start and the end of a stream"
)]
type Lock = std::sync::Mutex<HashMap<UserId, usize>>;

/// Number of open streams by user.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveStreams {
    open: Arc<Lock>,
}

/// Permit of an open stream, released on drop.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: LiveStreams,
    user: UserId,
}

impl LiveStreams {
    /// Acquires a permit; `None` if a limit is reached.
    pub(crate) fn acquire(&self, user: UserId) -> Option<StreamPermit> {
        let mut open = self.lock();
        let (total, own) = (open.values().sum::<usize>(), open.get(&user));
        let own = own.copied().unwrap_or_default();
        if MAX_STREAMS <= total || MAX_STREAMS_OF_USER <= own {
            return None;
        }
        open.insert(user, own + 1);
        Some(StreamPermit {
            streams: self.clone(),
            user,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<UserId, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        match open.get_mut(&self.user) {
            Some(own) if 1 < *own => *own -= 1,
            Some(_) | None => {
                open.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_user_with_many_live_pages_leaves_streams_to_others() {
        let streams = LiveStreams::default();
        let (greedy, other) = (UserId(Uuid::nil()), UserId(Uuid::max()));
        let mut held: Vec<StreamPermit> = (0..MAX_STREAMS)
            .map_while(|_| streams.acquire(greedy))
            .collect();
        assert_eq!(held.len(), MAX_STREAMS_OF_USER);
        assert!(streams.acquire(other).is_some());
        held.pop();
        assert!(streams.acquire(greedy).is_some());
        drop(held);
        assert!(streams.lock().is_empty());
    }

    #[test]
    fn all_users_together_have_a_maximum() {
        let streams = LiveStreams::default();
        let users = (0..=MAX_STREAMS).map(|user| UserId(Uuid::from_u128(user as u128)));
        let held: Vec<StreamPermit> = users.map_while(|user| streams.acquire(user)).collect();
        assert_eq!(held.len(), MAX_STREAMS);
    }
}
