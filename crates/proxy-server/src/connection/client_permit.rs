//! Permits of `max-connections-per-client`.

use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{ClientKey, LimitReached};
use proxy_pipeline::Shared;
use std::net::IpAddr;
use std::sync::Arc;

/// Counts a connection of its client until dropped.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    shared: Arc<Shared>,
    client: ClientKey,
}

impl ClientPermit {
    /// Counts one more connection of the client at `address`.
    pub(crate) fn take(shared: &Arc<Shared>, address: IpAddr) -> Result<Self, LimitReached> {
        let client = ClientKey::from(address);
        shared.clients.enter(client)?;
        Ok(Self {
            shared: Arc::clone(shared),
            client,
        })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        self.shared.clients.leave(self.client);
    }
}

/// The problem for a client with a connection above the limit `full`.
pub(crate) fn limit_problem(reason: Reason, full: LimitReached) -> Problem {
    let (current, limit) = (u64::from(full.wanted()), u64::from(full.max));
    Problem::new(reason, Detail::Limit { current, limit })
}
