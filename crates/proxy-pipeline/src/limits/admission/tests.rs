//! Permits are shared between workers, routes and clients.

use super::*;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

const START: Duration = Duration::ZERO;

/// `workers` workers of a process with these limits.
fn workers(workers: u64, limits: &str) -> Vec<Rc<Admission>> {
    let text = format!(
        "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
         routes {{ route \"r\" {{ upstream \"u\" }} }}\n\
         upstreams {{ upstream \"u\" {{ target \"127.0.0.1:81\" }} }}\n\
         limits {{ {limits} }}"
    );
    let limits = proxy_config::parse(&text, "test.kdl").unwrap().model.limits;
    let (max, max_waiting) = (*limits.max_in_flight_requests, *limits.max_queued_requests);
    let seed = KeySeed { low: 3, high: 4 };
    let shared = Arc::new(InFlightLimit::new(max, max_waiting, seed));
    // Each worker of a process has its own seed.
    let seed = |low| KeySeed { low, high: 5 };
    let worker = |low| Rc::new(Admission::new(Arc::clone(&shared), &limits, seed(low)));
    (0..workers).map(worker).collect()
}

fn claim(worker: &Admission, route: &str, client: u32) -> Claim {
    worker.claim(route, route, Ipv4Addr::from_bits(client).into())
}

fn enter(worker: &Rc<Admission>, route: &str, client: u32) -> Option<InFlightPermit> {
    worker.try_enter(|| claim(worker, route, client))
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<InFlightPermit, Refusal>> + 'a>>;

/// A request that waits; polled once.
fn wait<'a>(worker: &'a Rc<Admission>, route: &str, client: u32) -> Waiting<'a> {
    let mut waiting: Waiting<'a> = Box::pin(worker.wait(claim(worker, route, client), START));
    assert!(poll(&mut waiting).is_pending());
    waiting
}

fn poll(waiting: &mut Waiting<'_>) -> Poll<Result<InFlightPermit, Refusal>> {
    waiting
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
fn refusal(polled: Poll<Result<InFlightPermit, Refusal>>) -> Refusal {
    match polled {
        Poll::Ready(Err(refusal)) => refusal,
        other @ (Poll::Ready(Ok(_)) | Poll::Pending) => panic!("{other:?}"),
    }
}

#[test]
fn a_worker_with_room_serves_while_another_is_full_and_its_queue_too() {
    let workers = workers(
        2,
        "max-in-flight-requests-per-worker 1; max-queued-requests 1",
    );
    let [full, idle] = &workers[..] else { panic!() };
    let _served = enter(full, "r", 1).unwrap();
    let _waiting = wait(full, "r", 1);

    assert!(enter(idle, "r", 1).is_some());
}

#[test]
fn a_hung_route_with_many_clients_leaves_places_and_the_queue_serves_others_first() {
    let workers = workers(1, "max-in-flight-requests-per-worker 100");
    let worker = &workers[0];
    let hung: Vec<_> = (0..200)
        .map_while(|client| enter(worker, "hung", client))
        .collect();
    let _waiting: Vec<_> = (200..300)
        .map(|client| wait(worker, "hung", client))
        .collect();

    assert_eq!(hung.len(), 95);
    for client in 300..400 {
        assert!(enter(worker, "healthy", client).is_some());
    }
}

#[test]
fn one_client_on_all_routes_leaves_places_to_others() {
    let workers = workers(1, "max-in-flight-requests-per-worker 100");
    let worker = &workers[0];
    let taken = (0..200).map_while(|route| enter(worker, &format!("route {route}"), 7));
    let taken: Vec<_> = taken.collect();

    assert_eq!(taken.len(), 95);
    assert!(enter(worker, "route 1", 8).is_some());
}

#[test]
fn all_workers_together_leave_places_too() {
    let workers = workers(2, "max-in-flight-requests 200");
    let mut hung = Vec::new();
    for client in 0..500_u32 {
        let worker = &workers[usize::try_from(client % 2).unwrap()];
        hung.extend(enter(worker, "hung", client));
    }

    assert!(hung.len() < 200, "{}", hung.len());
    assert!(
        workers
            .iter()
            .all(|worker| enter(worker, "healthy", 1).is_some())
    );
}

#[test]
fn one_client_has_one_share_of_all_workers_and_not_one_in_each() {
    for (count, max, expected) in [(1, 100, 95), (3, 100, 95), (4, 100, 95), (16, 400, 378)] {
        let workers = workers(count, &format!("max-in-flight-requests {max}"));
        let mut hung = Vec::new();
        for _ in 0..max {
            hung.extend(workers.iter().filter_map(|worker| enter(worker, "hung", 1)));
        }

        assert_eq!(hung.len(), expected, "{count} workers");
        for worker in &workers {
            assert!(enter(worker, "healthy", 2).is_some());
        }
        drop(hung);
        assert!(workers[0].limit.shares().is_empty());
    }
}

#[test]
fn one_client_leaves_places_to_others_on_the_same_route() {
    for limits in [
        "max-in-flight-requests 400",
        "max-in-flight-requests-per-worker 400",
    ] {
        let workers = workers(1, limits);
        let worker = &workers[0];
        let hung: Vec<_> = (0..400).map_while(|_| enter(worker, "r", 1)).collect();
        assert_eq!(hung.len(), 378);
        let mut over_share = wait(worker, "r", 1);

        let served: Vec<_> = (2..7).map(|client| enter(worker, "r", client)).collect();
        assert!(served.iter().all(Option::is_some));
        drop(served);
        // Another client's request overtakes it in the queue.
        let mut waits: Waiting<'_> = Box::pin(worker.wait(claim(worker, "r", 8), START));
        assert!(matches!(poll(&mut waits), Poll::Ready(Ok(_))));
        assert!(poll(&mut over_share).is_pending());
    }
}

#[test]
fn one_worker_s_waiting_requests_leave_room_in_the_queue_of_another() {
    let limits = "max-in-flight-requests-per-worker 1; max-queued-requests 100";
    let workers = workers(2, limits);
    let [greedy, modest] = &workers[..] else {
        panic!()
    };
    let served = workers.iter().map(|worker| enter(worker, "r", 1).unwrap());
    let _served: Vec<_> = served.collect();
    let mut waiting: Vec<_> = (0..89).map(|_| wait(greedy, "r", 1)).collect();
    let mut over: Waiting<'_> = Box::pin(greedy.wait(claim(greedy, "r", 1), START));

    let refused = refusal(poll(&mut over));

    assert!(matches!(refused, Refusal::QueueFull(_)), "{refused:?}");
    let _waits = wait(modest, "r", 2);
    assert!(waiting.iter_mut().all(|waiting| poll(waiting).is_pending()));
}

#[test]
fn a_place_that_is_released_serves_the_route_that_waits_and_not_the_one_over_its_share() {
    let workers = workers(1, "max-in-flight-requests-per-worker 36");
    let worker = &workers[0];
    let mut hung: Vec<_> = (0..40)
        .map_while(|client| enter(worker, "hung", client))
        .collect();
    let mut other: Vec<_> = (0..40).map_while(|_| enter(worker, "other", 99)).collect();
    assert_eq!(hung.len() + other.len(), 36);
    let mut waits = wait(worker, "hung", 100);
    let mut served = wait(worker, "healthy", 101);

    drop(other.pop());

    assert!(matches!(poll(&mut served), Poll::Ready(Ok(_))));
    assert!(poll(&mut waits).is_pending());
    hung.truncate(10);
    assert!(matches!(poll(&mut waits), Poll::Ready(Ok(_))));
}

#[test]
fn a_request_that_timed_out_in_the_queue_names_the_limit() {
    let short = |limits: &str, taken: u32| {
        let workers = workers(1, limits);
        let worker = &workers[0];
        let taken: Vec<_> = (0..taken).map_while(|_| enter(worker, "r", 1)).collect();
        let mut waiting = wait(worker, "r", 1);
        worker.tick(Duration::from_secs(10), false);
        let refused = refusal(poll(&mut waiting));
        drop(taken);
        let Refusal::Waited(shortage) = refused else {
            panic!("{refused:?}")
        };
        shortage
    };
    let full = |held, max| LimitReached { held, max };

    let of_all = short("max-in-flight-requests 2", 2);
    assert_eq!((of_all.is_worker_limit, of_all.is_share), (false, false));
    assert_eq!(of_all.full, full(2, 2));
    let of_worker = short("max-in-flight-requests-per-worker 2", 2);
    assert_eq!(
        (of_worker.is_worker_limit, of_worker.is_share),
        (true, false)
    );
    assert_eq!(of_worker.full, full(2, 2));
    let of_share = short("max-in-flight-requests-per-worker 100", 100);
    assert_eq!((of_share.is_worker_limit, of_share.is_share), (true, true));
    assert_eq!(of_share.full, full(95, 95));
}

#[tokio::test]
async fn a_global_permit_is_offered_to_the_next_worker_if_the_first_may_not_use_it() {
    let workers = workers(2, "max-in-flight-requests 36");
    let [first, second] = &workers[..] else {
        panic!()
    };
    let mut hung: Vec<_> = (0..36)
        .map_while(|client| enter(first, "hung", client))
        .collect();
    let mut other: Vec<_> = (0..36).map_while(|_| enter(second, "other", 99)).collect();
    assert_eq!(hung.len() + other.len(), 36);
    let local = tokio::task::LocalSet::new();
    local.spawn_local(Rc::clone(first).serve_queue());
    local.spawn_local(Rc::clone(second).serve_queue());
    let mut over_share = wait(first, "hung", 100);
    let rest = local.run_until(async {
        // Both workers request a place, the first one earlier.
        tokio::task::yield_now().await;
        let served = wait(second, "healthy", 101);
        tokio::task::yield_now().await;
        drop(other.pop());
        let place = served.await;
        assert!(place.is_ok(), "{place:?}");
        place
    });
    let place = rest.await;

    assert!(poll(&mut over_share).is_pending());
    drop(place);
    hung.clear();
    let served = local.run_until(over_share).await;
    assert!(served.is_ok());
}
