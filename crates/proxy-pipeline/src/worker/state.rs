//! State of a worker, and state shared by all workers.

use crate::headers::correlation::IdSource;
use crate::headers::host_value::HostValue;
use crate::limits::admission::Admission;
use crate::limits::in_flight_limit::InFlightLimit;
use crate::upload::body_buffer::BodyBuffer;
use crate::upload::request_body::RequestBody;
use crate::worker::active_plan::ActivePlan;
use crate::worker::challenge_tokens::ChallengeTokens;
use crate::worker::date::DateCache;
use crate::worker::disk::Disks;
use crate::worker::password_checks::PasswordChecks;
use crate::worker::password_checks::hash_gate::HashGate;
use crate::worker::removed_parts::{ReloadWatch, Removals};
use crate::worker::shadow_counters::MAX_COPIES;
use crate::worker::time::Time;
use http::HeaderValue;
use proxy_clock::{Clock, ProcessClock, TimerRegistry};
use proxy_limits::{BodyReservation, ConcurrencyLimit, ConnectionsByClient, MemoryLimit};
use proxy_pool::Pool;
use proxy_telemetry::{Lifecycle, SpanQueue, WorkerLog, WorkerMetrics};
use proxy_upstream::TargetChanges;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Maximum number of stored responses that one worker fetches again while they are served.
const MAX_REFRESHES: u32 = 64;

/// State shared by all workers.
#[derive(Debug)]
pub struct Shared {
    /// Requests in flight over all workers.
    pub in_flight: Arc<InFlightLimit>,
    /// Client connections over all workers.
    pub connections: ConcurrencyLimit,
    /// Client connections of each client over all workers.
    pub clients: Arc<ConnectionsByClient>,
    /// State of the process-wide memory limit.
    pub memory: Arc<MemoryLimit>,
    /// The clock of all state that workers share.
    pub clock: ProcessClock,
    /// Notified when a worker has ejected a target: all workers recompute their healthy targets.
    pub health_changes: Arc<Notify>,
    /// Counts changes that take effect on all workers at once: ejections, and changes by operators.
    pub target_changes: Arc<TargetChanges>,
    /// Limits on password hashes that run at once.
    pub hashes: Arc<HashGate>,
    /// Pending challenges of certificate authorities.
    pub challenges: ChallengeTokens,
    /// State of the process.
    pub lifecycle: Arc<Lifecycle>,
    /// Spans of finished requests, for their exporter.
    pub spans: Arc<SpanQueue>,
}

/// State of one worker. Not `Send`.
#[derive(Debug)]
pub struct Worker {
    /// State shared by all workers.
    pub shared: Arc<Shared>,
    /// The worker's precise time.
    pub time: Time,
    /// The worker's coarse clock, in ticks.
    pub clock: Rc<Clock>,
    /// The deadlines of all its connections and streams.
    pub timers: Rc<TimerRegistry>,
    /// Connections to targets.
    pub pool: Rc<Pool<RequestBody>>,
    /// The worker's metrics.
    pub metrics: Arc<WorkerMetrics>,
    /// The worker's ends of the logs.
    pub logs: RefCell<Logs>,
    /// The requests being served, and the queue.
    pub admission: Rc<Admission>,
    /// Stored responses being fetched again while they are served.
    pub(crate) refreshes: ConcurrencyLimit,
    /// Shadow requests in flight.
    pub(crate) shadows: ConcurrencyLimit,
    /// Drain state of the worker's connections.
    pub draining: Cell<Draining>,
    /// Idle connections that are to close, so that new ones get their descriptors.
    idle_to_close: Cell<u32>,
    pub(crate) ids: IdSource,
    pub(crate) date: DateCache,
    pub(crate) host: HostValue,
    pub(crate) disks: Disks,
    pub(crate) password_checks: PasswordChecks,
    active: RefCell<Rc<ActivePlan>>,
    /// Number of plans applied after the first.
    pub(crate) reloads: Cell<u32>,
    /// Number of earlier configurations. New addresses of DNS names are not a new configuration.
    pub(crate) former: Cell<u32>,
    pub(crate) removals: RefCell<Removals>,
}

/// Signals that end a worker's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draining {
    /// No: connections stay open.
    No,
    /// Connections end after their next response, so that no client loses a request on an idle one.
    Gently,
    /// Connections end as soon as they are without a request in flight.
    Promptly,
    /// Now, with the requests in flight: the worker ends.
    Cut,
}

/// A worker's ends of the logs.
#[derive(Debug)]
pub struct Logs {
    /// One line per request.
    pub access: WorkerLog,
    /// Failures and reached limits.
    pub errors: WorkerLog,
    /// Recorded requests, one line each.
    pub recording: WorkerLog,
    /// True if warnings are written too.
    pub warnings: bool,
}

impl Logs {
    /// Logs that are off.
    #[must_use]
    pub fn off() -> Self {
        Self {
            access: WorkerLog::off(),
            errors: WorkerLog::off(),
            recording: WorkerLog::off(),
            warnings: false,
        }
    }

    /// Sends pending lines at `now`, since the Unix epoch.
    pub fn flush(&mut self, now: Duration) {
        self.errors.sum_up(now);
        self.access.flush();
        self.errors.flush();
        self.recording.flush();
    }
}

impl Worker {
    /// A worker that starts with `active`.
    #[must_use]
    pub fn new(
        shared: Arc<Shared>,
        time: Time,
        ids: IdSource,
        active: ActivePlan,
        metrics: Arc<WorkerMetrics>,
        logs: Logs,
    ) -> Self {
        let clock = Rc::new(Clock::default());
        let limits = &active.plan.model().limits;
        let admission = Admission::new(Arc::clone(&shared.in_flight), limits, ids.key_seed());
        Self {
            shared,
            admission: Rc::new(admission),
            time,
            timers: Rc::default(),
            pool: Rc::new(Pool::new(Rc::clone(&clock))),
            clock,
            metrics,
            logs: RefCell::new(logs),
            draining: Cell::new(Draining::No),
            idle_to_close: Cell::new(0),
            ids,
            date: DateCache::default(),
            refreshes: ConcurrencyLimit::new(MAX_REFRESHES),
            shadows: ConcurrencyLimit::new(MAX_COPIES),
            host: HostValue::default(),
            disks: Disks::default(),
            password_checks: PasswordChecks::default(),
            active: RefCell::new(Rc::new(active)),
            reloads: Cell::new(0),
            former: Cell::new(0),
            removals: RefCell::default(),
        }
    }

    /// Reload counter at the start of a stream: shows later whether its route was removed.
    #[inline]
    pub(crate) fn watch_reloads(&self) -> ReloadWatch {
        ReloadWatch::new(self.reloads.get(), self.former.get())
    }

    /// The value of `Date` for a response that has none. [RFC 9110 §6.6.1]
    pub fn date(&self) -> HeaderValue {
        self.with_date(HeaderValue::clone)
    }

    /// Lends the value of [`Self::date`].
    #[inline]
    pub fn with_date<T>(&self, read: impl FnOnce(&HeaderValue) -> T) -> T {
        self.date.with(self.time.unix_second(), read)
    }

    /// Memory for a body that is to be buffered.
    pub(crate) fn reserve_body(&self) -> Rc<BodyReservation> {
        Rc::new(BodyReservation::new(self.shared.memory.bodies()))
    }

    /// An empty buffer for a body.
    pub(crate) fn body_buffer(&self) -> BodyBuffer {
        BodyBuffer::new(self.reserve_body())
    }

    /// Returns true if the worker's connections should end.
    #[inline]
    pub fn is_draining(&self) -> bool {
        self.draining.get() != Draining::No
    }

    /// Closes idle connections when the process runs out of file descriptors: all to targets, and
    /// up to 32 from clients.
    pub fn free_descriptors(&self) {
        self.pool.clear();
        self.idle_to_close.set(IDLE_CLOSED_AT_ONCE);
        self.timers.wake_all();
    }

    /// Stops closing idle connections. Called at each tick.
    pub fn keep_idle(&self) {
        self.idle_to_close.set(0);
    }

    /// Returns true if the calling idle connection must close to free its descriptor.
    #[inline]
    pub fn takes_descriptor(&self) -> bool {
        let left = self.idle_to_close.get();
        self.idle_to_close.set(left.saturating_sub(1));
        left > 0
    }

    /// The plan of new requests.
    #[must_use]
    #[inline]
    pub fn active(&self) -> Rc<ActivePlan> {
        Rc::clone(&self.active.borrow())
    }

    /// Activates `active` for new requests. Streams that depend on a removed route or target may
    /// continue for its grace period.
    pub fn apply(&self, mut active: ActivePlan) {
        active.adopt_agents(&self.active.borrow());
        let model = active.plan.model();
        self.admission.apply(&model.limits);
        let time = *model.system.graceful_shutdown_timeout;
        let end = self.clock.after(time);
        let mut removals = self.removals.borrow_mut();
        let is_new = !active
            .plan
            .is_same_configuration(&self.active.borrow().plan);
        removals.apply(&self.active.borrow().plan, &active.plan, end);
        if is_new {
            self.former.set(self.former.get().wrapping_add(1));
            let metrics = &self.metrics;
            let begun = metrics.requests_in_flight.get() + metrics.tunnels.get();
            metrics.requests_of_former_configurations.set(begun);
        }
        self.active.replace(Rc::new(active));
        self.reloads.set(self.reloads.get().wrapping_add(1));
        self.disks.forget_idle();
    }

    /// Ends streams with a removed route or target after their grace period.
    pub fn end_removed(&self) {
        if self.removals.borrow_mut().expire(self.clock.now()) {
            self.timers.wake_all();
        }
    }
}

/// Idle connections of clients that one shortage of descriptors closes on each worker.
const IDLE_CLOSED_AT_ONCE: u32 = 32;
