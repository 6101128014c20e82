//! State shared by the pipeline and the connection of a request.

use crate::headers::forwarded_headers::Peer;
use crate::worker::connection_terms::ConnectionTerms;
use crate::worker::state::{Draining, Worker};
use http::HeaderValue;
use proxy_clock::{Deadline, Tick, Timer};
use proxy_framing::FramingError;
use proxy_limits::{ClientShareLimit, ClientSharePermit};
use proxy_tls::{ClientAuthVerdict, ServerTls};
use std::cell::{Cell, RefCell, RefMut};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

/// The index of a listener that the active plan does not have.
pub const REMOVED_LISTENER: usize = usize::MAX;

/// The client connection, shared by its requests.
#[derive(Debug)]
pub struct ConnectionInfo {
    /// Index of the listener in the active plan.
    pub listener: Rc<Cell<usize>>,
    /// Address and trust of the direct peer.
    pub peer: Peer,
    /// True if one request at a time uses the connection: HTTP/1.x, not HTTP/2.
    pub exclusive: bool,
    /// The result of the TLS handshake; `None` without TLS.
    // Boxed, because it is large and a connection without TLS has none.
    pub session: Option<Box<TlsSession>>,
    /// The terms at the time of accept.
    pub terms: Rc<ConnectionTerms>,
    /// Tick at which the connection reaches its maximum age.
    pub ends_at: Tick,
    /// Number of requests in flight.
    pub in_flight: Cell<u32>,
    /// Number of requests received on the connection.
    pub requests: Cell<u64>,
    /// True if the connection must close after the current response.
    pub close: Cell<bool>,
    /// The framing error of the client, if any.
    pub fault: Cell<Option<FramingError>>,
    /// The timer that ended the connection, if any.
    pub timed_out: Cell<Option<(Timer, Duration)>>,
    /// True if the stream that is being reset is malformed.
    pub malformed: Cell<bool>,
    /// Requests answered or forwarded since the last [`Self::take_earned_resets`]: each allows the
    /// client one stream reset.
    earned_resets: Cell<u32>,
    // Boxed, and `None` on most connections.
    rare: RefCell<Option<Box<OptionalState>>>,
}

/// State that few connections need.
#[derive(Debug, Default)]
struct OptionalState {
    /// Heads of 1xx responses to be written.
    interim: Vec<u8>,
    /// Lasts as long as the connection.
    identity: Option<Rc<()>>,
    /// Permits of routes with requests on the connection; some may have been released. HTTP/2 only.
    route_permits: Vec<Weak<ClientSharePermit>>,
}

/// The result of a TLS handshake, for all requests of the connection.
#[derive(Debug)]
pub struct TlsSession {
    /// TLS of the listener.
    pub server: Arc<ServerTls>,
    /// The version of the protocol: `1.2` or `1.3`.
    pub version: Option<&'static str>,
    /// The server name of the client, if sent.
    pub server_name: Option<Box<str>>,
    /// The verdict on the client's certificate.
    pub verdict: ClientAuthVerdict,
}

/// The protocol of an extended CONNECT, stored in the request's extensions; the request itself is
/// then a GET. [RFC 8441 §4]
#[derive(Clone, Debug)]
pub struct ExtendedConnectProtocol(pub HeaderValue);

/// A request's link to its connection.
#[derive(Clone, Debug)]
pub struct RequestStream {
    /// Connection that the stream belongs to.
    pub client: Rc<ConnectionInfo>,
    /// The deadline of the request.
    pub deadline: Rc<Deadline>,
}

/// Returns true if an idle connection of `listener` closes even if a request may be in transit: the
/// process drains, or the listener was removed.
#[inline]
#[must_use]
pub fn must_close_idle(worker: &Worker, listener: usize) -> bool {
    worker.draining.get() == Draining::Promptly || listener == REMOVED_LISTENER
}

impl ConnectionInfo {
    /// State of a connection that was just accepted.
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
            rare: RefCell::default(),
        }
    }

    /// Sets the result of the TLS handshake.
    #[must_use]
    pub fn with_tls(self, session: Option<TlsSession>) -> Self {
        Self {
            session: session.map(Box::new),
            ..self
        }
    }

    /// Returns true if the connection ends at the next opportunity: the process drains, the
    /// listener was removed or has other settings, or the maximum of age or requests is reached.
    #[inline]
    pub fn should_close(&self, worker: &Worker) -> bool {
        worker.is_draining() || self.listener.get() == REMOVED_LISTENER || self.is_used_up(worker)
    }

    /// Returns true if an idle HTTP/1.x connection ends now. One without a request stays open for
    /// its first, which may be in transit; the header timeout bounds the wait. Any other under
    /// retired terms stays open for a short delay.
    #[inline]
    pub fn should_close_idle(&self, worker: &Worker) -> bool {
        self.must_close_now(worker)
            || (self.requests.get() > 0
                && (self.terms.closes_idle(worker.clock.now()) || self.has_reached_maximum(worker)))
    }

    /// Returns true if an idle connection closes because the process has no descriptor left for
    /// another.
    #[inline]
    pub fn should_free_descriptor(&self, worker: &Worker) -> bool {
        self.requests.get() > 0 && worker.takes_descriptor()
    }

    /// Returns true if the connection's terms are outdated, or its maximum of age or requests is
    /// reached.
    #[inline]
    fn is_used_up(&self, worker: &Worker) -> bool {
        self.terms.is_retired() || self.has_reached_maximum(worker)
    }

    #[inline]
    fn has_reached_maximum(&self, worker: &Worker) -> bool {
        let max_requests = self.terms.max_requests;
        self.ends_at <= worker.clock.now()
            || max_requests.is_some_and(|max| u64::from(max) <= self.requests.get())
    }

    /// Returns true if the connection closes even if a request may be in transit.
    #[inline]
    pub fn must_close_now(&self, worker: &Worker) -> bool {
        must_close_idle(worker, self.listener.get())
    }

    /// Requests answered or forwarded since the last call.
    #[inline]
    pub fn take_earned_resets(&self) -> u32 {
        self.earned_resets.take()
    }

    #[inline]
    pub(crate) fn earn_reset(&self) {
        self.earned_resets
            .set(self.earned_resets.get().saturating_add(1));
    }

    /// Heads of 1xx responses to be written before the next response.
    #[inline]
    pub fn take_interim(&self) -> Option<Vec<u8>> {
        let mut rare = self.rare.borrow_mut();
        let interim = &mut rare.as_mut()?.interim;
        (!interim.is_empty()).then(|| std::mem::take(interim))
    }

    /// Returns true if 1xx responses are to be written.
    #[inline]
    pub fn has_interim(&self) -> bool {
        let rare = self.rare.borrow();
        rare.as_ref().is_some_and(|it| !it.interim.is_empty())
    }

    pub(crate) fn queue_interim(&self, heads: &[u8]) {
        self.rare().interim.extend_from_slice(heads);
    }

    /// Identifies the connection while it lasts.
    pub(crate) fn identity(&self) -> Weak<()> {
        Rc::downgrade(self.rare().identity.get_or_insert_default())
    }

    /// The connection's permit of `limit`, if one of its requests has it.
    pub(crate) fn route_permit(&self, limit: &ClientShareLimit) -> Option<Rc<ClientSharePermit>> {
        let rare = self.rare.borrow();
        let mut permits = rare.as_ref()?.route_permits.iter();
        permits.find_map(|permit| permit.upgrade().filter(|permit| permit.is_of(limit)))
    }

    /// Lets other requests of the same route share `permit` while it lasts.
    pub(crate) fn keep_route_permit(&self, permit: &Rc<ClientSharePermit>) {
        let mut rare = self.rare();
        rare.route_permits
            .retain(|permit| permit.strong_count() > 0);
        rare.route_permits.push(Rc::downgrade(permit));
    }

    fn rare(&self) -> RefMut<'_, OptionalState> {
        RefMut::map(self.rare.borrow_mut(), |rare| {
            &mut **rare.get_or_insert_default()
        })
    }
}
