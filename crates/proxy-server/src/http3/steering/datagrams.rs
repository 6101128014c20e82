//! Forwarding of datagrams between the endpoints of a process, and to the processes before it.

use super::connection_ids::Owner;
use super::relay::RelaySender;
use crate::http3::socket::Datagram;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of datagrams that wait for one endpoint; further ones are dropped, as by a full
/// socket.
const QUEUE_DATAGRAMS: usize = 256;

/// Half of the numbers of processes: those that follow a process's own belong to newer ones.
const NEWER_PROCESSES: u8 = 127;

type Endpoints = BTreeMap<u16, Sender<Datagram>>;

/// The endpoints of all workers: each forwards datagrams to the owner of their connection.
#[derive(Debug)]
pub(crate) struct DatagramRouter {
    endpoints: ArcSwap<Endpoints>,
    process: u8,
    /// Senders to the processes before this one, newest first.
    before: Vec<RelaySender>,
}

/// An endpoint that can receive datagrams from other endpoints; unregistered on drop.
#[derive(Debug)]
pub(in crate::http3) struct RegisteredEndpoint {
    pub(in crate::http3) owner: Owner,
    router: Arc<DatagramRouter>,
}

impl DatagramRouter {
    /// The router of the process with this number; `before` are senders to the processes before it,
    /// newest first.
    pub(in crate::http3) fn new(process: u8, before: Vec<RelaySender>) -> Self {
        Self {
            endpoints: ArcSwap::default(),
            process,
            before,
        }
    }

    pub(in crate::http3) fn process(&self) -> u8 {
        self.process
    }

    pub(in crate::http3) fn before(&self) -> &[RelaySender] {
        &self.before
    }

    /// Registers an endpoint. Also returns the receiver of datagrams that other endpoints forward
    /// to it; `None` if all numbers are taken.
    pub(in crate::http3) fn register(
        self: &Arc<Self>,
    ) -> Option<(RegisteredEndpoint, Receiver<Datagram>)> {
        let (sender, datagrams) = channel(QUEUE_DATAGRAMS);
        let mut number = None;
        self.endpoints.rcu(|endpoints| {
            let mut endpoints = Endpoints::clone(endpoints);
            number = (0..u16::MAX).find(|number| !endpoints.contains_key(number));
            endpoints.extend(number.map(|number| (number, sender.clone())));
            endpoints
        });
        let owner = Owner {
            process: self.process,
            endpoint: number?,
        };
        let router = Arc::clone(self);
        Some((RegisteredEndpoint { owner, router }, datagrams))
    }

    /// Forwards `datagram` to the endpoint `owner`. Returns the datagram if there is no such
    /// endpoint.
    pub(in crate::http3) fn send(&self, owner: Owner, datagram: Datagram) -> Result<(), Datagram> {
        if owner.process == self.process {
            return self.deliver(owner.endpoint, datagram);
        }
        let mut before = self.before.iter();
        if let Some(before) = before.find(|before| before.process() == owner.process) {
            let sent = before.send(owner.endpoint, &datagram);
            return if sent { Ok(()) } else { Err(datagram) };
        }
        if self.is_newer(owner.process) {
            // That process receives the client's next datagram itself. A reset would end the
            // connection.
            return Ok(());
        }
        Err(datagram)
    }

    /// Returns true if `process` came after this one. Numbers wrap around.
    fn is_newer(&self, process: u8) -> bool {
        (1..=NEWER_PROCESSES).contains(&process.wrapping_sub(self.process))
    }

    /// Forwards `datagram` to an endpoint of this process. Returns it if there is no such endpoint.
    pub(in crate::http3) fn deliver(
        &self,
        endpoint: u16,
        datagram: Datagram,
    ) -> Result<(), Datagram> {
        let endpoints = self.endpoints.load();
        let Some(endpoint) = endpoints.get(&endpoint) else {
            return Err(datagram);
        };
        // A full queue loses the datagram; its sender repeats the data.
        drop(endpoint.try_send(datagram));
        Ok(())
    }
}

impl Drop for RegisteredEndpoint {
    fn drop(&mut self) {
        let Self { owner, router } = self;
        router.endpoints.rcu(|endpoints| {
            let mut endpoints = Endpoints::clone(endpoints);
            endpoints.remove(&owner.endpoint);
            endpoints
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use std::net::SocketAddr;

    fn datagram(byte: u8) -> Datagram {
        Datagram {
            remote: SocketAddr::from(([127, 0, 0, 1], 1)),
            local: None,
            ecn: None,
            bytes: BytesMut::from(&[byte][..]),
        }
    }

    #[test]
    fn datagrams_reach_the_endpoint_of_their_owner() {
        let router = Arc::new(DatagramRouter::new(7, Vec::new()));
        let (one, mut of_one) = router.register().unwrap();
        let (two, mut of_two) = router.register().unwrap();
        assert_ne!(one.owner, two.owner);
        assert!(router.send(one.owner, datagram(1)).is_ok());
        assert!(router.send(two.owner, datagram(2)).is_ok());
        assert_eq!(of_one.try_recv().unwrap().bytes[..], [1]);
        assert_eq!(of_two.try_recv().unwrap().bytes[..], [2]);

        for (process, is_taken) in [(6, false), (8, true), (9, true), (250, false)] {
            let other = Owner {
                process,
                ..one.owner
            };
            assert_eq!(
                router.send(other, datagram(3)).is_ok(),
                is_taken,
                "{process}"
            );
        }
        assert!(of_one.try_recv().is_err());
        let owner = one.owner;
        drop(one);
        assert!(router.send(owner, datagram(4)).is_err());
        assert_eq!(router.register().unwrap().0.owner, owner);
    }

    #[test]
    fn a_full_queue_drops_datagrams() {
        let router = Arc::new(DatagramRouter::new(0, Vec::new()));
        let (one, mut of_one) = router.register().unwrap();
        for _ in 0..2 * QUEUE_DATAGRAMS {
            assert!(router.send(one.owner, datagram(1)).is_ok());
        }
        let queued = std::iter::from_fn(|| of_one.try_recv().ok()).count();
        assert_eq!(queued, QUEUE_DATAGRAMS);
    }
}
