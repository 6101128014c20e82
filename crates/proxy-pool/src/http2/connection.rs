//! A connection shared by many requests, and the task that drives it.

use super::io::Http2Io;
use super::keep_alive_ping::KeepAlivePing;
use crate::limit::{ConnectionPermit, IdleMark, PoolMember};
use crate::transport::UpstreamStream;
use crate::unsent_frames::UnsentFrames;
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};
use proxy_clock::{Clock, Tick};
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Bytes of one response that may wait for its client.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Maximum number of requests on one connection, even if its target permits more. The windows of
/// this many responses fit into the connection's window, so slow clients cannot block other
/// requests.
const MAX_OPEN_STREAMS: u32 = 128;

const CONNECTION_WINDOW: u32 = MAX_OPEN_STREAMS * STREAM_WINDOW;

/// Bytes of one request that may wait for the socket.
const SEND_BUFFER: usize = 64 * 1024;

/// Maximum size of a response's header section, as counted by HPACK, in bytes.
const HEADER_LIST: u32 = 128 * 1024;

/// A connection to a target.
pub(super) struct Http2Connection {
    sender: SendRequest<Bytes>,
    keep_alive: Rc<KeepAlivePing>,
    /// Uploads and tunnels that wait for the socket.
    unsent: Rc<UnsentFrames>,
    clock: Rc<Clock>,
    open_streams: Cell<u32>,
    since: Tick,
    idle_since: Cell<Tick>,
    /// `None` if connections are unlimited.
    member: Option<Arc<PoolMember>>,
    /// Set while the connection is idle, if connections are limited.
    idle_mark: Cell<Option<IdleMark>>,
}

/// A reserved stream of a connection to a target.
#[derive(Debug)]
pub struct StreamSlot {
    connection: Rc<Http2Connection>,
    /// True if the connection has carried a request before.
    pub reused: bool,
}

impl Http2Connection {
    /// Starts HTTP/2 over `transport`. The connection lives as long as it is referenced.
    pub(super) async fn start(
        transport: UpstreamStream,
        keep_alive: KeepAlivePing,
        permit: Option<ConnectionPermit>,
        member: Option<Arc<PoolMember>>,
    ) -> Result<Rc<Self>, h2::Error> {
        let clock = Rc::clone(keep_alive.clock());
        let keep_alive = Rc::new(keep_alive);
        let unsent = Rc::<UnsentFrames>::default();
        let io = Http2Io::new(transport, Rc::clone(&keep_alive), Rc::clone(&unsent));
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_LIST)
            .max_send_buffer_size(SEND_BUFFER)
            .enable_push(false);
        let (sender, connection) = builder.handshake(io).await?;
        let driven = drive(
            connection,
            Rc::clone(&keep_alive),
            Rc::clone(&unsent),
            permit,
        );
        tokio::task::spawn_local(driven);
        Ok(Rc::new(Self {
            sender,
            keep_alive,
            unsent,
            open_streams: Cell::new(0),
            since: clock.now(),
            idle_since: Cell::new(clock.now()),
            clock,
            member,
            idle_mark: Cell::new(None),
        }))
    }

    /// Returns true if the connection accepts no more requests.
    pub(super) fn is_over(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let ready = self.sender.clone().poll_ready(&mut cx);
        self.keep_alive.is_over() || matches!(ready, Poll::Ready(Err(_)))
    }

    /// Maximum number of concurrent requests; `None` before the target's settings have arrived.
    /// Until then the connection carries only its first request.
    pub(super) fn max_requests(&self) -> Option<u32> {
        let allowed = u32::try_from(self.sender.current_max_send_streams()).unwrap_or(u32::MAX);
        self.keep_alive
            .has_begun()
            .then(|| allowed.min(MAX_OPEN_STREAMS))
    }

    /// Returns true if the connection can carry one more request.
    pub(super) fn has_room(&self) -> bool {
        self.open_streams.get() < self.max_requests().unwrap_or(1)
    }

    pub(super) fn reserve_stream(self: &Rc<Self>, reused: bool) -> StreamSlot {
        self.open_streams.set(self.open_streams.get() + 1);
        self.idle_mark.set(None);
        StreamSlot {
            connection: Rc::clone(self),
            reused,
        }
    }

    /// Time of creation.
    pub(super) fn since(&self) -> Tick {
        self.since
    }

    /// Beginning of the idle time; `None` while the connection is in use.
    pub(super) fn idle_since(&self) -> Option<Tick> {
        (self.open_streams.get() == 0).then(|| self.idle_since.get())
    }

    /// Pings the connection if it is in use and has been silent for too long.
    pub(super) fn check(&self) {
        if self.open_streams.get() > 0 {
            self.keep_alive.check();
        }
    }
}

impl fmt::Debug for Http2Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Http2Connection")
            .field("keep_alive", &self.keep_alive)
            .field("open_streams", &self.open_streams)
            .finish_non_exhaustive()
    }
}

impl StreamSlot {
    pub(super) fn sender(&self) -> SendRequest<Bytes> {
        self.connection.sender.clone()
    }

    pub(super) fn request_sent(&self) {
        self.connection.keep_alive.request_sent();
    }

    /// The frames of its connection that wait for the socket.
    pub(super) fn unsent(&self) -> Rc<UnsentFrames> {
        Rc::clone(&self.connection.unsent)
    }

    pub(super) async fn settings_received(&self) {
        self.connection.keep_alive.settings_received().await;
    }

    /// Returns true if the target supports extended CONNECT. [RFC 8441 §3]
    #[must_use]
    pub fn takes_tunnels(&self) -> bool {
        self.connection
            .sender
            .is_extended_connect_protocol_enabled()
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let connection = &self.connection;
        connection
            .open_streams
            .set(connection.open_streams.get().saturating_sub(1));
        connection.idle_since.set(connection.clock.now());
        if let Some(member) = &connection.member
            && connection.open_streams.get() == 0
        {
            connection.idle_mark.set(Some(member.mark_idle()));
            if member.limit().is_wanted() {
                member.evict();
            }
        }
    }
}

/// Drives a connection until it ends or its ping times out; then releases the permit.
async fn drive(
    mut connection: Connection<Http2Io, Bytes>,
    keep_alive: Rc<KeepAlivePing>,
    unsent: Rc<UnsentFrames>,
    permit: Option<ConnectionPermit>,
) {
    let mut pings = connection.ping_pong();
    poll_fn(|cx| {
        keep_alive.watch(cx.waker());
        if Pin::new(&mut connection).poll(cx).is_ready() || keep_alive.is_dead() {
            return Poll::Ready(());
        }
        if let Some(pings) = &mut pings {
            keep_pinging(pings, &keep_alive, cx);
        }
        Poll::Pending
    })
    .await;
    keep_alive.end();
    drop(connection);
    unsent.clear();
    drop(permit);
}

fn keep_pinging(pings: &mut PingPong, keep_alive: &KeepAlivePing, cx: &mut Context<'_>) {
    if keep_alive.takes_ping() {
        // Sending fails only if a ping is already in flight.
        drop(pings.send_ping(Ping::opaque()));
    }
    if keep_alive.awaits_pong() && pings.poll_pong(cx).is_ready() {
        keep_alive.answered();
    }
}
