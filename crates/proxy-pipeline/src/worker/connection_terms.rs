//! Terms of client connections: maximum age and number of requests, and whether they still apply.

use proxy_clock::Tick;
use std::cell::Cell;
use std::time::Duration;

/// Terms of all connections that one listener accepted under the same settings.
#[derive(Debug, Default)]
pub struct ConnectionTerms {
    /// Maximum age of a connection; `None` is unlimited.
    pub max_age: Option<Duration>,
    /// Maximum number of requests on a connection; `None` is unlimited.
    pub max_requests: Option<u32>,
    /// The tick at which idle connections close, if the terms are retired.
    retired: Cell<Option<Tick>>,
    needs_certificate: Cell<bool>,
}

impl ConnectionTerms {
    /// Current terms.
    #[must_use]
    pub fn new(max_age: Option<Duration>, max_requests: Option<u32>) -> Self {
        Self {
            max_age,
            max_requests,
            ..Self::default()
        }
    }

    /// Ends the connections under these terms, each after its current response, and idle HTTP/1.x
    /// ones at `close_idle_at`, so that a request in transit is answered. The listener has other
    /// settings now; with `needs_certificate` they require a client certificate.
    pub fn retire(&self, close_idle_at: Tick, needs_certificate: bool) {
        self.retired.set(Some(close_idle_at));
        self.needs_certificate.set(needs_certificate);
    }

    /// Returns true if the listener has other settings now.
    #[inline]
    pub fn is_retired(&self) -> bool {
        self.retired.get().is_some()
    }

    /// Returns true if idle connections close, because the terms are retired and requests already
    /// sent have had time to arrive.
    #[inline]
    pub(crate) fn closes_idle(&self, now: Tick) -> bool {
        self.retired.get().is_some_and(|at| at <= now)
    }

    /// Returns true if the listener requires a client certificate now, and did not at the time of
    /// accept.
    pub(crate) fn needs_certificate(&self) -> bool {
        self.needs_certificate.get()
    }
}
