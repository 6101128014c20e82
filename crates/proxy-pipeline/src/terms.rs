//! How long client connections may be used.

use std::cell::Cell;
use std::time::Duration;

/// What all connections share that one listener accepted under the same settings.
#[derive(Debug, Default)]
pub struct ConnectionTerms {
    /// How old a connection may become; none is without limit.
    pub max_age: Option<Duration>,
    /// Most requests on one connection; none is without limit.
    pub max_requests: Option<u32>,
    retired: Cell<bool>,
    needs_certificate: Cell<bool>,
}

impl ConnectionTerms {
    /// Terms that hold from now on.
    #[must_use]
    pub fn new(max_age: Option<Duration>, max_requests: Option<u32>) -> Self {
        Self {
            max_age,
            max_requests,
            ..Self::default()
        }
    }

    /// Ends the connections under these terms, each after the answer in hand. The listener has other
    /// settings now; with `needs_certificate` they require a client certificate.
    pub fn retire(&self, needs_certificate: bool) {
        self.retired.set(true);
        self.needs_certificate.set(needs_certificate);
    }

    /// Whether the listener has other settings now.
    #[inline]
    pub fn is_retired(&self) -> bool {
        self.retired.get()
    }

    /// Whether the listener requires a client certificate now, and did not when it accepted the
    /// connection.
    pub(crate) fn needs_certificate(&self) -> bool {
        self.needs_certificate.get()
    }
}
