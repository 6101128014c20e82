//! Memory of the responses that the program makes itself: encoders, and documents of one request.

use super::body_memory::{BodyMemory, BodyReservation};
use crate::client_key::ClientKey;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Maximum memory of one client, in bytes. Without it, a client that reads nothing could hold
/// memory for an unlimited number of streams.
const MAX_CLIENT_BYTES: u64 = 128 << 20;

/// Memory of responses by client, over all workers. It counts in the [`BodyMemory`]. All responses
/// together use at most half of it, and one client a quarter; no body is evicted for a response.
#[derive(Debug, Default)]
pub(super) struct ResponseMemory {
    held: Locked,
}

#[expect(
    clippy::disallowed_types,
    reason = "taken twice by a response that is compressed while it is sent, and by no plain one"
)]
type Locked = std::sync::Mutex<Held>;

#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    by_client: HashMap<ClientKey, u64>,
}

/// One response's share of the memory of responses; released on drop.
#[derive(Debug)]
pub struct ResponseReservation {
    memory: Arc<ResponseMemory>,
    client: ClientKey,
    bytes: u64,
    #[expect(dead_code, reason = "held to be dropped")]
    body: BodyReservation,
}

impl ResponseMemory {
    /// Memory for a response of `bytes` to `client`; `None` if it would exceed the share of the
    /// client or of all responses, or if `bodies` leave no room.
    pub(super) fn reserve(
        self: &Arc<Self>,
        bodies: &Arc<BodyMemory>,
        client: ClientKey,
        bytes: u64,
    ) -> Option<ResponseReservation> {
        let max_bytes = bodies.max_bytes();
        let mut held = self.held();
        let of_client = held.by_client.get(&client).copied().unwrap_or_default();
        let of_client = of_client.saturating_add(bytes);
        let of_all = held.bytes.saturating_add(bytes);
        if of_client > MAX_CLIENT_BYTES.min(max_bytes / 4) || of_all > max_bytes / 2 {
            return None;
        }
        let body = BodyReservation::whole(bodies, bytes)?;
        held.bytes = of_all;
        held.by_client.insert(client, of_client);
        Some(ResponseReservation {
            memory: Arc::clone(self),
            client,
            bytes,
            body,
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ResponseReservation {
    fn drop(&mut self) {
        let mut held = self.memory.held();
        held.bytes = held.bytes.saturating_sub(self.bytes);
        let of_client = held.by_client.get(&self.client).copied();
        let rest = of_client.unwrap_or_default().saturating_sub(self.bytes);
        if rest == 0 {
            held.by_client.remove(&self.client);
        } else {
            held.by_client.insert(self.client, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn reserve(
        memory: &Arc<ResponseMemory>,
        bodies: &Arc<BodyMemory>,
        client: u32,
    ) -> Vec<ResponseReservation> {
        let next = || memory.reserve(bodies, ClientKey::V4(client), MIB);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn one_client_leaves_memory_to_other_clients_and_to_bodies() {
        let (memory, bodies) = (Arc::default(), Arc::new(BodyMemory::default()));
        bodies.set_max(40 * MIB);

        let one = reserve(&memory, &bodies, 1);
        let other = reserve(&memory, &bodies, 2);
        let third = reserve(&memory, &bodies, 3);

        assert_eq!([one.len(), other.len(), third.len()], [10, 10, 0]);
        assert_eq!(bodies.held_bytes(), 20 * MIB);
        drop(one);
        assert_eq!(reserve(&memory, &bodies, 3).len(), 10);
        assert_eq!(bodies.held_bytes(), 10 * MIB);
        drop(other);
        assert_eq!(bodies.held_bytes(), 0);
        let held = memory.held();
        assert!(held.by_client.is_empty() && held.bytes == 0);
    }

    #[test]
    fn without_a_limit_a_client_is_bounded_all_the_same() {
        let (memory, bodies) = (Arc::default(), Arc::new(BodyMemory::default()));

        assert_eq!(reserve(&memory, &bodies, 1).len(), 128);
    }

    #[test]
    fn a_response_evicts_no_body_and_is_never_evicted() {
        let (memory, bodies) = (Arc::default(), Arc::new(BodyMemory::default()));
        bodies.set_max(40 * MIB);
        let body = BodyReservation::new(&bodies);
        body.grow(39 * MIB, None).unwrap();

        let responses = reserve(&memory, &bodies, 1);
        assert_eq!(responses.len(), 1);
        assert!(!body.is_evicted());
        bodies.set_max(0);

        assert!(body.is_evicted());
        assert_eq!(bodies.held_bytes(), MIB);
        assert!(reserve(&memory, &bodies, 2).is_empty());
    }
}
