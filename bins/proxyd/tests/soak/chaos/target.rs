//! Targets that change their condition while they serve.

use super::target_http1;
use super::target_http2;
use super::wait::wait;
use proxy_testkit::Journal;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The fault of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// Nothing: it answers with the request's ID and body.
    Well,
    /// Its listener and its connections are closed.
    Killed,
    /// It neither reads nor writes, and continues when it recovers.
    Paused,
    /// It reads requests and never answers them.
    Silent,
    /// It closes the connection in place of an answer.
    Closing,
    /// It sends responses that are not HTTP.
    Garbage,
    /// It resets the connection or the stream in the middle of a body.
    ResetInBody,
    /// It closes the connection in the middle of a body.
    CutInBody,
    /// It answers 503.
    Failing,
    /// It reads requests and answers them when it is well again.
    Holding,
}

/// The conditions that are faults.
pub(crate) const FAULTS: [Condition; 8] = [
    Condition::Killed,
    Condition::Paused,
    Condition::Silent,
    Condition::Closing,
    Condition::Garbage,
    Condition::ResetInBody,
    Condition::CutInBody,
    Condition::Failing,
];

/// The protocol of a target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// A target on a socket of its own.
#[derive(Debug)]
pub(crate) struct Target {
    address: SocketAddr,
    condition: watch::Sender<Condition>,
    state: State,
}

/// State shared by the connections of a target.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) condition: watch::Receiver<Condition>,
    /// IDs of requests that may reach targets once at most, of all targets.
    once: Journal<String>,
    arrived: Arc<AtomicUsize>,
}

impl Target {
    /// A target at this address; port 0 takes a free one. Records in `once`.
    pub(crate) fn start(
        ip: Ipv4Addr,
        port: u16,
        protocol: Protocol,
        once: &Journal<String>,
    ) -> std::io::Result<Self> {
        let listener = StdListener::bind((ip, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (condition, seen) = watch::channel(Condition::Well);
        let state = State {
            condition: seen,
            once: once.clone(),
            arrived: Arc::default(),
        };
        let serving = state.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let lifetime = live(listener, address, protocol, serving);
            runtime.unwrap().block_on(lifetime);
        });
        Ok(Self {
            address,
            condition,
            state,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }

    /// Number of requests read, without health checks.
    pub(crate) fn arrived(&self) -> usize {
        self.state.arrived.load(Ordering::Relaxed)
    }
}

impl State {
    /// Notes that the request with this ID has arrived.
    pub(crate) fn note(&self, id: &str) {
        if id.is_empty() {
            // A health check.
            return;
        }
        self.arrived.fetch_add(1, Ordering::Relaxed);
        if !id.starts_with("get-") {
            self.once.push(id.to_owned());
        }
    }

    pub(crate) fn now(&self) -> Condition {
        *self.condition.borrow()
    }

    /// Waits until the condition is no longer `condition`. Never returns after the target was
    /// dropped.
    pub(crate) async fn wait_while(&self, condition: Condition) {
        let mut receiver = self.condition.clone();
        if receiver.wait_for(|now| *now != condition).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Serves until the target is dropped; without listener and connections while it is killed.
async fn live(listener: StdListener, address: SocketAddr, protocol: Protocol, state: State) {
    let mut condition = state.condition.clone();
    let mut listener = Some(TcpListener::from_std(listener).unwrap());
    loop {
        let serving = async {
            let mut connections = JoinSet::new();
            let listener = listener.take().unwrap();
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                connections.spawn(serve(stream, protocol, state.clone()));
                while connections.try_join_next().is_some() {}
            }
        };
        tokio::select! {
            // The listener and all connections end with this future.
            () = serving => {}
            killed = condition.wait_for(|now| *now == Condition::Killed) => {
                if killed.is_err() {
                    return;
                }
            }
        }
        if condition
            .wait_for(|now| *now != Condition::Killed)
            .await
            .is_err()
        {
            return;
        }
        listener = Some(bind_again(address).await);
    }
}

/// The address is free again when the kernel has closed the former listener.
async fn bind_again(address: SocketAddr) -> TcpListener {
    loop {
        if let Ok(listener) = TcpListener::bind(address).await {
            return listener;
        }
        wait(Duration::from_millis(5)).await;
    }
}

async fn serve(stream: TcpStream, protocol: Protocol, state: State) {
    match protocol {
        Protocol::Http1 => target_http1::serve(stream, state).await,
        Protocol::Http2 => target_http2::serve(stream, state).await,
    }
}
