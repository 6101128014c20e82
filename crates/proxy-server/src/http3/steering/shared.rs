//! State of HTTP/3 that all workers of the process share.

use super::datagrams::DatagramRouter;
use super::relay::{self, Inherited, RelayReceiver};
use super::secrets::Http3Secrets;
use proxy_pipeline::random_key;
use socket2::Socket;
use std::io;
use std::sync::Arc;

/// Secrets, and the router of datagrams between endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Http3Shared {
    pub(in crate::http3) secrets: Http3Secrets,
    pub(in crate::http3) router: Arc<DatagramRouter>,
}

impl Http3Shared {
    /// The state of a process. `relays` are the sockets to the processes before it, newest first.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn new(relays: Vec<Socket>) -> io::Result<Self> {
        let Some(inherited) = relay::inherit(relays) else {
            return Ok(Self {
                secrets: Http3Secrets::new(random_key()?),
                router: Arc::new(DatagramRouter::new(0, Vec::new())),
            });
        };
        let Inherited {
            secrets,
            process,
            relays,
        } = inherited;
        Ok(Self {
            secrets,
            router: Arc::new(DatagramRouter::new(process.wrapping_add(1), relays)),
        })
    }

    /// Creates the relay for datagrams from a process that takes over. Also returns that process's
    /// sockets: to this process, and to those before it that have not ended.
    ///
    /// # Errors
    /// Errors of `socketpair(2)`, such as a lack of file descriptors.
    pub(crate) fn relay(&self) -> io::Result<(RelayReceiver, Vec<Socket>)> {
        relay::pair(&self.secrets, self.router.process(), self.router.before())
    }

    /// Forwards datagrams from `receiver` to the endpoints of this process.
    pub(crate) fn receive(&self, receiver: RelayReceiver) {
        let router = Arc::clone(&self.router);
        tokio::spawn(receiver.run(move |endpoint, datagram| {
            // The endpoint may have ended.
            drop(router.deliver(endpoint, datagram));
        }));
    }
}
