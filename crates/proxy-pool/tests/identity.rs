//! Idle connections are reused only for their own target, even if its slot is reused.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_clock::{Clock, Tick};
use proxy_framing::HeadLimits;
use proxy_pool::{
    Checkout, Connection, ConnectionOwner, IdleLimit, OpenConnections, Pool, PoolSettings,
    UpstreamStream,
};
use proxy_upstream::TargetId;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;

const LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 1024,
    max_header_count: 16,
    max_name_bytes: 64,
    max_value_bytes: 256,
    max_target_bytes: 256,
};

fn id(slot: u32, epoch: u64) -> TargetId {
    TargetId { slot, epoch }
}

fn settings(target: TargetId) -> PoolSettings {
    PoolSettings {
        target,
        idle_limit: IdleLimit::new(8),
        idle_for: Duration::from_mins(1),
        max_lifetime: None,
        limit: None,
    }
}

/// A pool of a plan with these targets.
fn pool(targets: &[TargetId]) -> Rc<Pool<()>> {
    let pool = Pool::new(Rc::<Clock>::default());
    pool.apply(targets.iter().map(|target| settings(*target)).collect());
    Rc::new(pool)
}

fn live<T>(work: impl AsyncFnOnce(&TcpListener) -> T) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(work(&listener))
}

async fn connection(listener: &TcpListener, target: TargetId) -> Connection<()> {
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
    let transport = UpstreamStream::Tcp(stream.unwrap());
    Connection::new(transport, LIMITS, target, Tick::default(), None)
}

#[test]
fn a_connection_that_began_for_a_client_is_given_to_that_client_only() {
    live(async |listener| {
        let target = id(0, 0);
        let pool = pool(&[target]);
        let owner = |header: &[u8]| ConnectionOwner {
            proxy_header: header.into(),
            connection: None,
        };
        let (one, other) = (owner(b"PROXY one"), owner(b"PROXY other"));
        let own = connection(listener, target).await;
        pool.checkin(own.for_client(Some(Rc::new(one.clone()))));

        assert!(pool.checkout_of_client(target, &other).is_none());
        assert!(pool.checkout_of_client(target, &one).is_some());
        assert!(pool.checkout_of_client(target, &one).is_none());
        assert_eq!(pool.size(), 0);
    });
}

#[test]
fn a_later_connection_from_the_same_port_gets_a_connection_of_its_own() {
    live(async |listener| {
        let target = id(0, 0);
        let pool = pool(&[target]);
        let lasts = [(); 2].map(Rc::new);
        let [first, second] = lasts.each_ref().map(|connection| ConnectionOwner {
            proxy_header: b"PROXY one".as_slice().into(),
            connection: Some(Rc::downgrade(connection)),
        });
        let own = connection(listener, target).await;
        pool.checkin(own.for_client(Some(Rc::new(first.clone()))));

        assert!(pool.checkout_of_client(target, &second).is_none());
        let own = pool.checkout_of_client(target, &first).unwrap();
        pool.checkin(own);
        assert_eq!(pool.size(), 1);

        // The place is free as soon as the client has disconnected.
        drop(lasts);
        pool.sweep();
        assert_eq!(pool.size(), 0);
        let own = connection(listener, target).await;
        pool.checkin(own.for_client(Some(Rc::new(first))));
        assert_eq!(pool.size(), 0);
    });
}

#[test]
fn a_connection_is_given_to_its_own_target_only() {
    live(async |listener| {
        let (old, new) = (id(0, 0), id(0, 1));
        let pool = pool(&[old]);
        pool.checkin(connection(listener, old).await);

        assert!(pool.checkout(new).is_none(), "the slot is the same");
        assert!(pool.checkout(old).is_some());
    });
}

#[test]
fn a_slot_s_next_target_inherits_no_connection() {
    live(async |listener| {
        let (old, new) = (id(0, 0), id(0, 1));
        let pool = pool(&[old]);
        pool.checkin(connection(listener, old).await);
        assert_eq!(pool.size(), 1);

        pool.apply(vec![settings(new)]);

        assert_eq!((pool.size(), pool.idle(new)), (0, 0));
        assert!(pool.checkout(new).is_none());
    });
}

#[test]
fn a_connection_of_an_old_plan_is_not_taken_back_for_a_slot_s_next_target() {
    live(async |listener| {
        let (old, new) = (id(0, 0), id(0, 1));
        let pool = pool(&[old]);
        let late = connection(listener, old).await;

        pool.apply(vec![settings(new)]);
        pool.checkin(late);

        assert_eq!(pool.size(), 0);
        assert!(pool.checkout(new).is_none());
        assert!(pool.checkout(old).is_none());
    });
}

#[test]
fn targets_that_stay_keep_their_connections_at_any_position_of_the_plan() {
    live(async |listener| {
        let (first, second, third) = (id(0, 0), id(1, 1), id(2, 2));
        let pool = pool(&[first, second]);
        pool.checkin(connection(listener, second).await);

        pool.apply(vec![settings(third), settings(second)]);

        assert_eq!(pool.idle(second), 1);
        assert!(pool.checkout(second).is_some());
    });
}

#[test]
fn a_request_of_an_old_plan_makes_an_http2_connection_of_its_own() {
    let (old, new) = (id(0, 0), id(0, 1));
    let pool = pool(&[old]);
    pool.apply(vec![settings(new)]);

    assert!(matches!(
        pool.http2_pool().checkout(old),
        Checkout::Build(_)
    ));
    assert_eq!(pool.http2_pool().open(new), OpenConnections::default());
}
