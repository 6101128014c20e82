//! The queue is fair, bounded in length and time, and forgets nothing.

use super::*;
use proptest::prelude::{any, prop, prop_assert_eq, proptest};
use std::collections::VecDeque;

const SEED: KeySeed = KeySeed { low: 5, high: 6 };
const WAIT: Duration = Duration::from_nanos(100);

fn queue(max_requests: u32) -> RequestQueue {
    let settings = RequestQueueSettings {
        max_requests,
        max_wait: WAIT,
    };
    RequestQueue::new(settings, SEED)
}

fn push(queue: &mut RequestQueue, client: u32, now_ns: u64) -> Ticket {
    let queued = queue.push(ClientKey::V4(client), now_ns).unwrap();
    assert_eq!(queued.displaced, None);
    queued.ticket
}

#[test]
fn clients_take_turns_and_each_ones_requests_stay_in_order() {
    let mut queue = queue(10);
    let [a1, a2, a3] = [0; 3].map(|_| push(&mut queue, 1, 0));
    let b1 = push(&mut queue, 2, 0);
    let c1 = push(&mut queue, 3, 0);
    let b2 = push(&mut queue, 2, 0);

    let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(order, [a1, b1, c1, a2, b2, a3]);
    assert!(queue.is_empty());
}

#[test]
fn one_client_with_many_delays_another_by_one() {
    let mut queue = queue(100);
    for _ in 0..99 {
        push(&mut queue, 1, 0);
    }
    let other = push(&mut queue, 2, 0);

    queue.pop();
    assert_eq!(queue.pop(), Some(other));
}

#[test]
fn a_full_queue_refuses_its_greatest_client_to_make_room() {
    let mut queue = queue(3);
    let [_, _, newest] = [0; 3].map(|_| push(&mut queue, 1, 0));
    let full = QueueFull { max_requests: 3 };

    assert_eq!(queue.push(ClientKey::V4(1), 0), Err(full));
    let queued = queue.push(ClientKey::V4(2), 0).unwrap();
    assert_eq!(queued.displaced, Some(newest));
    // Two and one: a second of the other would only turn it round.
    assert_eq!(queue.push(ClientKey::V4(2), 0), Err(full));
    assert_eq!(queue.len(), 3);
    assert!(!queue.remove(newest));
}

#[test]
fn a_queue_of_no_length_lets_none_wait() {
    assert!(queue(0).push(ClientKey::V4(1), 0).is_err());
}

#[test]
fn requests_leave_after_their_wait_and_not_before() {
    let mut queue = queue(10);
    let first = push(&mut queue, 1, 0);
    let second = push(&mut queue, 2, 50);

    assert_eq!(queue.next_deadline_ns(), Some(100));
    assert_eq!(queue.pop_expired(99), None);
    assert_eq!(queue.pop_expired(100), Some(first));
    assert_eq!(queue.pop_expired(100), None);
    assert_eq!(queue.pop(), Some(second));
    assert_eq!(queue.next_deadline_ns(), None);
}

#[test]
fn a_client_that_leaves_is_skipped_and_its_ticket_is_not_reused() {
    let mut queue = queue(10);
    let gone = push(&mut queue, 1, 0);
    let next = push(&mut queue, 1, 0);
    let other = push(&mut queue, 2, 0);

    assert!(queue.remove(gone));
    assert!(!queue.remove(gone));
    let new = push(&mut queue, 3, 0);
    assert_ne!(new, gone);
    assert!(!queue.remove(gone));
    let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(order, [next, other, new]);
}

#[test]
fn all_leave_when_the_queue_is_flushed() {
    let mut queue = queue(10);
    let tickets: Vec<_> = (0..5)
        .map(|client| push(&mut queue, client % 2, 0))
        .collect();

    let flushed: Vec<_> = std::iter::from_fn(|| queue.pop_oldest()).collect();
    assert_eq!(flushed, tickets);
    assert!(queue.clients.is_empty());
}

#[test]
fn a_queue_in_use_allocates_nothing() {
    let mut queue = queue(64);
    let memory = |queue: &RequestQueue| (queue.clients.capacity(), queue.slots.capacity());
    let before = memory(&queue);
    for round in 0..10_000_u32 {
        let _full = queue.push(
            ClientKey::V4(round.wrapping_mul(2_654_435_761)),
            u64::from(round),
        );
        if round % 3 == 0 {
            queue.pop();
        }
        while queue.pop_expired(u64::from(round)).is_some() {}
    }

    // The table counts places that it has yet to tidy as missing.
    let after = memory(&queue);
    assert!(after.0 <= before.0 && after.1 == before.1, "{after:?}");
}

/// The same queue, written plainly: a list of clients in turn, each with its list of requests.
#[derive(Default)]
struct Plain(VecDeque<(u32, VecDeque<Ticket>)>);

impl Plain {
    fn push(&mut self, client: u32, ticket: Ticket) {
        match self.0.iter_mut().find(|(key, _)| *key == client) {
            Some((_, own)) => own.push_back(ticket),
            None => self.0.push_back((client, [ticket].into())),
        }
    }

    fn pop(&mut self) -> Option<Ticket> {
        let (client, mut own) = self.0.pop_front()?;
        let ticket = own.pop_front();
        if !own.is_empty() {
            self.0.push_back((client, own));
        }
        ticket
    }

    fn remove(&mut self, ticket: Ticket) {
        for (_, own) in &mut self.0 {
            own.retain(|other| *other != ticket);
        }
        self.0.retain(|(_, own)| !own.is_empty());
    }
}

proptest! {
    #[test]
    fn the_queue_does_what_a_plain_one_does(
        steps in prop::collection::vec((0_u8..4, 0_u32..5, any::<usize>()), 1..200),
    ) {
        let mut queue = queue(1_000);
        let mut plain = Plain::default();
        let mut known: Vec<Ticket> = Vec::new();
        for (step, client, pick) in steps {
            match step {
                0 | 1 => {
                    let ticket = push(&mut queue, client, 0);
                    plain.push(client, ticket);
                    known.push(ticket);
                }
                2 => {
                    if let Some(ticket) = known.get(pick % known.len().max(1)).copied() {
                        queue.remove(ticket);
                        plain.remove(ticket);
                    }
                }
                _ => prop_assert_eq!(queue.pop(), plain.pop()),
            }
        }
        while let Some(expected) = plain.pop() {
            prop_assert_eq!(queue.pop(), Some(expected));
        }
        prop_assert_eq!(queue.len(), 0);
    }
}

#[test]
fn a_request_may_take_the_place_of_another_before_the_queue_is_full() {
    let mut queue = queue(10);
    let [_, newest] = [0; 2].map(|_| push(&mut queue, 1, 0));
    let third = push(&mut queue, 1, 0);

    let queued = queue.push_in_place(ClientKey::V4(2), 0).unwrap();
    assert_eq!(queued.displaced, Some(third));
    assert_eq!(queue.len(), 3);
    assert!(queue.push_in_place(ClientKey::V4(2), 0).is_err());
    assert!(queue.remove(newest));
}
