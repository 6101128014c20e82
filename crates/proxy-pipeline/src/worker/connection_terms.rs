//! Terms of client connections.

use std::cell::Cell;
use std::time::Duration;

/// Shared by all connections accepted by one listener under the same settings.
#[derive(Debug, Default)]
pub struct ConnectionTerms {
    /// Maximum age of a connection; `None` is unlimited.
    pub max_age: Option<Duration>,
    /// Maximum number of requests on a connection; `None` is unlimited.
    pub max_requests: Option<u32>,
    retired: Cell<bool>,
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

    /// Ends the connections under these terms, each after its current response. The listener has
    /// other settings now; with `needs_certificate` they require a client certificate.
    pub fn retire(&self, needs_certificate: bool) {
        self.retired.set(true);
        self.needs_certificate.set(needs_certificate);
    }

    /// Whether the listener has other settings now.
    #[inline]
    pub fn is_retired(&self) -> bool {
        self.retired.get()
    }

    /// Whether the listener requires a client certificate now, and did not at the time of accept.
    pub(crate) fn needs_certificate(&self) -> bool {
        self.needs_certificate.get()
    }
}
