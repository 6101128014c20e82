//! What the pipeline shares with the connection that a request came on.

use crate::completion::CompletionGuard;
use crate::forwarded_headers::Peer;
use crate::state::{Draining, Worker};
use crate::terms::ConnectionTerms;
use http::HeaderValue;
use proxy_clock::{Deadline, Tick, Timer};
use proxy_framing::FramingError;
use proxy_pool::{ConnectionPermit, Tunnel};
use proxy_tls::{ClientAuthVerdict, ServerTls};
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The position of a listener that no plan in force has any more.
pub const REMOVED_LISTENER: usize = usize::MAX;

/// One client connection, as its requests see it.
#[derive(Debug)]
pub struct ConnectionInfo {
    /// Position in the plan in force of the listener that accepted the connection.
    pub listener: Rc<Cell<usize>>,
    /// Who is at the other end.
    pub peer: Peer,
    /// Whether one request at a time owns the connection: HTTP/1.x, not HTTP/2.
    pub exclusive: bool,
    /// What its TLS handshake settled, if there was one.
    // Boxed: it is large, and a connection without TLS has none.
    pub session: Option<Box<TlsSession>>,
    /// What it was accepted under.
    pub terms: Rc<ConnectionTerms>,
    /// When it is too old for further requests.
    pub ends_at: Tick,
    /// Requests being served.
    pub in_flight: Cell<u32>,
    /// Requests begun so far.
    pub requests: Cell<u64>,
    /// Whether the connection must end with the response under way.
    pub close: Cell<bool>,
    /// What was wrong with the client's bytes, if anything was.
    pub fault: Cell<Option<FramingError>>,
    /// The timer that the connection was given up for, if it was.
    pub timed_out: Cell<Option<(Timer, Duration)>>,
    /// Whether the stream that is being given up broke the rules of HTTP/2.
    pub malformed: Cell<bool>,
    /// Requests that were answered or forwarded since they were last taken: each earns its client the reset
    /// of a stream.
    earned_resets: Cell<u32>,
    // Boxed: hardly any connection has one.
    aside: RefCell<Option<Box<Aside>>>,
}

/// What goes past a request and its response.
#[derive(Debug, Default)]
struct Aside {
    /// Heads of 1xx responses that are to be written.
    interim: Vec<u8>,
    /// The upstream's half, before the answer `101` is on its way.
    upgrade_slot: Option<UpgradeSlot>,
    /// The upstream's half, since it is.
    switched: Option<Switched>,
}

/// What a TLS handshake settled, for every request of its connection.
#[derive(Debug)]
pub struct TlsSession {
    /// The listener's TLS.
    pub server: Arc<ServerTls>,
    /// The name the client asked for.
    pub server_name: Option<Box<str>>,
    /// What became of the client's certificate.
    pub verdict: ClientAuthVerdict,
}

/// A connection that has left HTTP: the upstream's side, and what ends with it.
#[derive(Debug)]
pub struct Switched {
    /// The upstream's half.
    pub tunnel: Tunnel,
    /// The longest silence, both ways.
    pub idle: Duration,
    pub(crate) permit: Option<ConnectionPermit>,
    pub(crate) completion: Box<CompletionGuard>,
}

type UpgradeSlot = (Tunnel, Option<ConnectionPermit>, Duration);

/// The protocol that an HTTP/2 client wants to speak on its stream, among the request's extensions;
/// the request itself is then a GET. [RFC 8441 §4]
#[derive(Clone, Debug)]
pub struct ExtendedConnectProtocol(pub HeaderValue);

/// One request's way to its connection.
#[derive(Clone, Debug)]
pub struct RequestStream {
    /// The connection.
    pub client: Rc<ConnectionInfo>,
    /// The one deadline that the request has at a time.
    pub deadline: Rc<Deadline>,
}

impl ConnectionInfo {
    /// A connection on which nothing has happened yet.
    #[must_use]
    pub fn new(
        listener: Rc<Cell<usize>>,
        peer: Peer,
        exclusive: bool,
        terms: Rc<ConnectionTerms>,
    ) -> Self {
        Self {
            listener,
            peer,
            exclusive,
            session: None,
            terms,
            ends_at: Tick::MAX,
            in_flight: Cell::new(0),
            requests: Cell::new(0),
            close: Cell::new(false),
            fault: Cell::new(None),
            timed_out: Cell::new(None),
            malformed: Cell::new(false),
            earned_resets: Cell::new(0),
            aside: RefCell::default(),
        }
    }

    /// The same connection, after this handshake.
    #[must_use]
    pub fn with_tls(self, session: Option<TlsSession>) -> Self {
        Self {
            session: session.map(Box::new),
            ..self
        }
    }

    /// Whether the connection ends as soon as it can: the process drains, the listener is gone or has
    /// other settings, or the connection is too old or has carried its last request.
    #[inline]
    pub fn should_close(&self, worker: &Worker) -> bool {
        worker.is_draining() || self.listener.get() == REMOVED_LISTENER || self.is_used_up(worker)
    }

    /// Whether a connection of HTTP/1.x ends that waits for a request with nothing in flight.
    #[inline]
    pub fn should_close_idle(&self, worker: &Worker) -> bool {
        self.must_close_now(worker) || self.is_used_up(worker)
    }

    /// Whether it was accepted under other terms, is too old or has carried its last request.
    #[inline]
    fn is_used_up(&self, worker: &Worker) -> bool {
        let max_requests = self.terms.max_requests;
        self.terms.is_retired()
            || self.ends_at <= worker.clock.now()
            || max_requests.is_some_and(|max| u64::from(max) <= self.requests.get())
    }

    /// Whether the connection ends even if that closes it under a request on its way.
    #[inline]
    pub fn must_close_now(&self, worker: &Worker) -> bool {
        worker.draining.get() == Draining::Promptly || self.listener.get() == REMOVED_LISTENER
    }

    /// Requests that were answered or forwarded since the last call.
    #[inline]
    pub fn take_earned_resets(&self) -> u32 {
        self.earned_resets.take()
    }

    #[inline]
    pub(crate) fn earn_reset(&self) {
        self.earned_resets
            .set(self.earned_resets.get().saturating_add(1));
    }

    /// Bytes to be written before the next response: heads of 1xx responses.
    #[inline]
    pub fn take_interim(&self) -> Option<Vec<u8>> {
        let mut aside = self.aside.borrow_mut();
        let interim = &mut aside.as_mut()?.interim;
        (!interim.is_empty()).then(|| std::mem::take(interim))
    }

    /// Whether something waits to be written before the next response.
    #[inline]
    pub fn has_interim(&self) -> bool {
        let aside = self.aside.borrow();
        aside.as_ref().is_some_and(|it| !it.interim.is_empty())
    }

    pub(crate) fn queue_interim(&self, heads: &[u8]) {
        self.aside().interim.extend_from_slice(heads);
    }

    /// The upstream's half, once the answer `101` has been written.
    pub fn take_switched(&self) -> Option<Switched> {
        self.aside.borrow_mut().as_mut()?.switched.take()
    }

    pub(crate) fn offer_upgrade(
        &self,
        tunnel: Tunnel,
        permit: Option<ConnectionPermit>,
        idle: Duration,
    ) {
        self.aside().upgrade_slot = Some((tunnel, permit, idle));
    }

    pub(crate) fn take_upgrade(&self) -> Option<UpgradeSlot> {
        self.aside.borrow_mut().as_mut()?.upgrade_slot.take()
    }

    /// Keeps a request open, though its response has no body, until the tunnel ends.
    pub(crate) fn switch(
        &self,
        (tunnel, permit, idle): UpgradeSlot,
        completion: Box<CompletionGuard>,
    ) {
        self.aside().switched = Some(Switched {
            tunnel,
            idle,
            permit,
            completion,
        });
    }

    fn aside(&self) -> RefMut<'_, Aside> {
        RefMut::map(self.aside.borrow_mut(), |aside| {
            &mut **aside.get_or_insert_default()
        })
    }
}
