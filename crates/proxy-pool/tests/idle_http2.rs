//! Idle HTTP/2 connections hold places of their limit no longer than they live.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_clock::Clock;
use proxy_pool::{Checkout, IdleLimit, Pool, PoolSettings, StreamSlot, UpstreamStream};
use proxy_upstream::TargetId;
use std::io::Write;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

fn id(slot: u32) -> TargetId {
    TargetId {
        slot,
        epoch: slot.into(),
    }
}

fn pool(targets: &[TargetId], limit: &IdleLimit) -> Rc<Pool<()>> {
    let settings = targets.iter().map(|target| PoolSettings {
        target: *target,
        idle_limit: limit.clone(),
        idle_for: Duration::from_mins(1),
        max_lifetime: None,
        limit: None,
    });
    let pool = Pool::new(Rc::<Clock>::default());
    pool.apply(settings.collect());
    Rc::new(pool)
}

fn live(work: impl AsyncFnOnce(&TcpListener)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, work(&listener));
}

/// `SETTINGS` with `SETTINGS_MAX_CONCURRENT_STREAMS` 1. [RFC 9113 §6.5]
const ONE_STREAM: [u8; 15] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1];

/// A new connection to `target` with its only stream in use, and the target's end of it.
async fn busy(
    pool: &Pool<()>,
    target: TargetId,
    listener: &TcpListener,
) -> (StreamSlot, std::net::TcpStream) {
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(&ONE_STREAM).unwrap();
    let connecting = loop {
        match pool.http2_pool().checkout(target) {
            Checkout::Build(connecting) => break connecting,
            // The settings of another connection have not arrived yet.
            Checkout::Wait(_) | Checkout::StreamSlot(_) => tokio::task::yield_now().await,
        }
    };
    let transport = UpstreamStream::Tcp(stream.unwrap());
    (connecting.finish(transport, None).await.unwrap(), peer)
}

#[test]
fn permits_of_ended_connections_are_free_for_other_targets() {
    live(async |listener| {
        let limit = IdleLimit::new(1);
        let (first, second) = (id(0), id(1));
        let pool = pool(&[first, second], &limit);
        let (slot, peer) = busy(&pool, first, listener).await;
        drop(slot);
        pool.sweep();
        assert_eq!((limit.held(), pool.http2_pool().open(first).idle), (1, 1));

        drop(peer);
        while pool.http2_pool().open(first).all > 0 {
            tokio::task::yield_now().await;
            pool.sweep();
        }
        assert_eq!(limit.held(), 0);

        let (slot, _peer) = busy(&pool, second, listener).await;
        drop(slot);
        pool.sweep();
        assert_eq!((limit.held(), pool.http2_pool().open(second).idle), (1, 1));
    });
}

#[test]
fn a_lowered_limit_closes_idle_connections() {
    live(async |listener| {
        let limit = IdleLimit::new(3);
        let target = id(0);
        let pool = pool(&[target], &limit);
        let mut connections = Vec::new();
        for _ in 0..3 {
            connections.push(busy(&pool, target, listener).await);
        }
        let _peers: Vec<_> = connections.into_iter().map(|(_, peer)| peer).collect();
        pool.sweep();
        assert_eq!(pool.http2_pool().open(target).idle, 3);

        limit.set_max(1);
        pool.sweep();

        assert_eq!((limit.held(), pool.http2_pool().open(target).idle), (1, 1));
        limit.set_max(0);
        pool.sweep();
        assert_eq!((limit.held(), pool.http2_pool().open(target).all), (0, 0));
    });
}
