//! A connection of a known version of HTTP, before it is served.

use crate::connection::client_stream::ClientStream;
use crate::connection::settings::ConnectionSettings;
use bytes::Bytes;
use proxy_clock::{Deadline, Tick, TimerGuard};
use proxy_limits::{ClientPermit, Permit};
use proxy_pipeline::{ConnectionInfo, Worker};
use std::rc::Rc;

#[derive(Debug)]
pub(crate) struct ReadyConnection {
    pub(crate) settings: Rc<ConnectionSettings>,
    pub(crate) client: Rc<ConnectionInfo>,
    pub(crate) guard: ConnectionGuard,
    pub(crate) transport: ClientStream,
    /// Input that was read already.
    pub(crate) early: Bytes,
}

/// A connection's permit and its registered deadline; ended on drop.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    pub(crate) deadline: Rc<Deadline>,
    pub(crate) worker: Rc<Worker>,
    _entry: TimerGuard,
    _permit: Permit,
    /// Permit of the client's connection limit; `None` while the client is unknown.
    client: Option<ClientPermit>,
}

impl ConnectionGuard {
    pub(crate) fn new(
        worker: &Rc<Worker>,
        permit: Permit,
        client: Option<ClientPermit>,
        ends_at: Tick,
    ) -> Self {
        let deadline = Rc::<Deadline>::default();
        deadline.set_alarm(ends_at);
        worker.metrics.connections_active.add(1);
        Self {
            _entry: worker.timers.register(Rc::clone(&deadline)),
            deadline,
            worker: Rc::clone(worker),
            _permit: permit,
            client,
        }
    }

    /// Returns true if the connection counts against its client.
    pub(crate) fn has_client(&self) -> bool {
        self.client.is_some()
    }

    /// Counts the connection against its client, if the address is known only after the accept.
    pub(crate) fn set_client(&mut self, client: ClientPermit) {
        self.client = Some(client);
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.worker.metrics.connections_active.sub(1);
    }
}
