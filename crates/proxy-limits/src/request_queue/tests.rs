//! The queue is fair, bounded in length and time, and forgets nothing.

use super::*;
use crate::client_key::ClientKey;
use crate::fair_shares::FairShares;
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

/// A request of the client for the first route.
fn claim(client: u32) -> Claim {
    to(1, client)
}

fn to(route: u64, client: u32) -> Claim {
    Claim {
        destination: Destination { route, upstream: 1 },
        client: ClientKey::V4(client),
    }
}

fn push(queue: &mut RequestQueue, client: u32, now_ns: u64) -> Ticket {
    push_to(queue, (1, client), now_ns)
}

fn push_to(queue: &mut RequestQueue, (route, client): (u64, u32), now_ns: u64) -> Ticket {
    let queued = queue.push(to(route, client), now_ns).unwrap();
    assert_eq!(queued.displaced, None);
    queued.ticket
}

/// The next request of a limit with room for all.
fn pop(queue: &mut RequestQueue) -> Option<Ticket> {
    let shares = &FairShares::new(SEED);
    let next = queue.pop(&[ShareCheck { shares, free: 1 }]);
    next.map(|(ticket, _)| ticket)
}

#[test]
fn clients_take_turns_and_each_ones_requests_stay_in_order() {
    let mut queue = queue(10);
    let [a1, a2, a3] = [0; 3].map(|_| push(&mut queue, 1, 0));
    let b1 = push(&mut queue, 2, 0);
    let c1 = push(&mut queue, 3, 0);
    let b2 = push(&mut queue, 2, 0);

    let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).collect();
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

    pop(&mut queue);
    assert_eq!(pop(&mut queue), Some(other));
}

#[test]
fn a_full_queue_refuses_its_greatest_client_to_make_room() {
    let mut queue = queue(3);
    let [_, _, newest] = [0; 3].map(|_| push(&mut queue, 1, 0));
    let full = QueueFull { max_requests: 3 };

    assert_eq!(queue.push(claim(1), 0), Err(full));
    let queued = queue.push(claim(2), 0).unwrap();
    assert_eq!(queued.displaced, Some(newest));
    // The clients have two and one: a second request of client 2 would only reverse that.
    assert_eq!(queue.push(claim(2), 0), Err(full));
    assert_eq!(queue.len(), 3);
    assert!(!queue.remove(newest));
}

#[test]
fn a_queue_of_length_0_refuses_every_request() {
    assert!(queue(0).push(claim(1), 0).is_err());
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
    assert_eq!(pop(&mut queue), Some(second));
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
    let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).collect();
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
    assert!(queue.clients.is_empty() && queue.destinations.is_empty());
}

#[test]
fn a_queue_in_use_allocates_nothing() {
    let mut queue = queue(64);
    let memory = |queue: &RequestQueue| {
        let tables = queue.clients.capacity() + queue.destinations.capacity();
        (tables, queue.slots.capacity())
    };
    let before = memory(&queue);
    for round in 0..10_000_u32 {
        let _full = queue.push(
            to(u64::from(round % 7), round.wrapping_mul(2_654_435_761)),
            u64::from(round),
        );
        if round % 3 == 0 {
            pop(&mut queue);
        }
        while queue.pop_expired(u64::from(round)).is_some() {}
    }

    // The reported capacity excludes slots that the table has yet to reclaim.
    let after = memory(&queue);
    assert!(after.0 <= before.0 && after.1 == before.1, "{after:?}");
}

#[test]
fn routes_take_turns_and_so_do_the_clients_of_each() {
    let mut queue = queue(10);
    let [a1, a2] = [(1, 1), (1, 2)].map(|at| push_to(&mut queue, at, 0));
    let a3 = push_to(&mut queue, (1, 1), 0);
    let b1 = push_to(&mut queue, (2, 1), 0);
    let b2 = push_to(&mut queue, (2, 1), 0);

    let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).collect();
    assert_eq!(order, [a1, b1, a2, b2, a3]);
}

#[test]
fn routes_and_clients_with_their_share_are_passed_over_and_keep_their_turn() {
    let elsewhere = |route, upstream, client| Claim {
        destination: Destination { route, upstream },
        client: ClientKey::V4(client),
    };
    let other = |route, client| elsewhere(route, 2, client);
    let mut shares = FairShares::new(SEED);
    // The maximum share of a holder with one free place, or two: of a route by many clients, and of
    // one client.
    for number in 0..16 {
        shares.enter(to(1, 10 + number));
        shares.enter(elsewhere(9, 9, 1));
    }
    let mut queue = queue(10);
    let [route, upstream, client, served] = [to(1, 2), to(2, 2), other(3, 1), other(3, 2)]
        .map(|claim| queue.push(claim, 0).unwrap().ticket);
    let mut next = |free| {
        let shares = &shares;
        let next = queue.pop(&[ShareCheck { shares, free }]);
        next.map(|(ticket, _)| ticket)
    };

    assert_eq!(next(0), None);
    assert_eq!(next(2), Some(served));
    assert_eq!(next(2), None);
    assert_eq!([next(3), next(3)], [Some(route), Some(upstream)]);
    assert_eq!(next(3), Some(client));
}

#[test]
fn a_full_queue_refuses_its_greatest_route_to_make_room() {
    let mut queue = queue(4);
    for client in 0..3 {
        push_to(&mut queue, (1, client), 0);
    }
    push_to(&mut queue, (2, 9), 0);

    let queued = queue.push(to(2, 9), 0).unwrap();
    assert!(queued.displaced.is_some());
    assert_eq!(queue.len(), 4);
    // The routes have two requests each, so only the clients of the route are compared.
    let queued_last = queued.ticket;
    let queued = queue.push(to(2, 8), 0).unwrap();
    assert_eq!(queued.displaced, Some(queued_last));
    assert!(queue.push(to(2, 7), 0).is_err());
}

/// A simple implementation of the same queue: a list of routes in turn, each with a list of clients
/// in turn, each with its list of requests.
#[derive(Default)]
struct Plain(VecDeque<(u64, Clients)>);

type Clients = VecDeque<(u32, VecDeque<Ticket>)>;

impl Plain {
    fn push(&mut self, route: u64, client: u32, ticket: Ticket) {
        if self.0.iter().all(|(key, _)| *key != route) {
            self.0.push_back((route, Clients::default()));
        }
        let (_, clients) = self.0.iter_mut().find(|(key, _)| *key == route).unwrap();
        match clients.iter_mut().find(|(key, _)| *key == client) {
            Some((_, own)) => own.push_back(ticket),
            None => clients.push_back((client, [ticket].into())),
        }
    }

    fn pop(&mut self) -> Option<Ticket> {
        let (route, mut clients) = self.0.pop_front()?;
        let (client, mut own) = clients.pop_front()?;
        let ticket = own.pop_front();
        if !own.is_empty() {
            clients.push_back((client, own));
        }
        if !clients.is_empty() {
            self.0.push_back((route, clients));
        }
        ticket
    }

    fn remove(&mut self, ticket: Ticket) {
        for (_, clients) in &mut self.0 {
            for (_, own) in clients.iter_mut() {
                own.retain(|other| *other != ticket);
            }
            clients.retain(|(_, own)| !own.is_empty());
        }
        self.0.retain(|(_, clients)| !clients.is_empty());
    }
}

proptest! {
    #[test]
    fn the_queue_agrees_with_a_simple_model(
        steps in prop::collection::vec((0_u8..4, 0_u64..3, 0_u32..5, any::<usize>()), 1..200),
    ) {
        let mut queue = queue(1_000);
        let mut plain = Plain::default();
        let mut known: Vec<Ticket> = Vec::new();
        for (step, route, client, pick) in steps {
            match step {
                0 | 1 => {
                    let ticket = push_to(&mut queue, (route, client), 0);
                    plain.push(route, client, ticket);
                    known.push(ticket);
                }
                2 => {
                    if let Some(ticket) = known.get(pick % known.len().max(1)).copied() {
                        queue.remove(ticket);
                        plain.remove(ticket);
                    }
                }
                _ => prop_assert_eq!(pop(&mut queue), plain.pop()),
            }
        }
        while let Some(expected) = plain.pop() {
            prop_assert_eq!(pop(&mut queue), Some(expected));
        }
        prop_assert_eq!(queue.len(), 0);
    }
}

#[test]
fn a_request_may_take_the_place_of_another_before_the_queue_is_full() {
    let mut queue = queue(10);
    let [_, newest] = [0; 2].map(|_| push(&mut queue, 1, 0));
    let third = push(&mut queue, 1, 0);

    let queued = queue.push_in_place(claim(2), 0).unwrap();
    assert_eq!(queued.displaced, Some(third));
    assert_eq!(queue.len(), 3);
    assert!(queue.push_in_place(claim(2), 0).is_err());
    assert!(queue.remove(newest));
}
