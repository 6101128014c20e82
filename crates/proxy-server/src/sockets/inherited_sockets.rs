//! Listening sockets that existed before this process: the service manager's or the predecessor's.

use crate::listen::BoundAddress;
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::handover::{Label, Passed, Purpose};
use proxy_model::{BindAddress, Listener};
use socket2::{SockAddr, Socket, Type};
use std::net::SocketAddr;
use std::sync::Arc;

/// Inherited sockets that no setting has claimed yet.
#[derive(Debug, Default)]
pub(crate) struct InheritedSockets {
    /// Sockets of a service manager. It keeps duplicates, so they could not be bound again: they
    /// stay here and are also held by the listeners that use them.
    managed: Vec<Arc<Socket>>,
    /// UDP sockets of a service manager.
    managed_datagrams: Vec<Arc<Socket>>,
    /// Sockets of the predecessor.
    passed: Vec<Passed>,
}

impl InheritedSockets {
    /// The sockets that systemd opened for this process. Call it before any descriptor is opened,
    /// so that descriptors after the passed ones are not mistaken for sockets even if the
    /// environment counts too many.
    pub(crate) fn from_service_manager() -> Self {
        let mut given = listenfd::ListenFd::from_env();
        let mut inherited = Self::default();
        for index in 0..given.len() {
            if let Ok(Some(socket)) = given.take_udp_socket(index) {
                inherited.add_managed(Arc::new(socket.into()));
                continue;
            }
            let socket = match given.take_tcp_listener(index) {
                Ok(Some(socket)) => Ok(Some(Socket::from(socket))),
                _ => given
                    .take_unix_listener(index)
                    .map(|socket| socket.map(Socket::from)),
            };
            match socket {
                Ok(Some(socket)) => inherited.add_managed(Arc::new(socket)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "a socket of the service manager cannot be used");
                }
            }
        }
        inherited
    }

    /// Adds the sockets `passed` by another process.
    pub(crate) fn and(mut self, passed: Vec<Passed>) -> Self {
        let is_unclaimed = |passed: &mut Passed| passed.label.purpose == Purpose::Unclaimed;
        self.passed = passed;
        let unclaimed: Vec<_> = self.passed.extract_if(.., is_unclaimed).collect();
        for Passed { label: _, socket } in unclaimed {
            self.add_managed(Arc::new(socket));
        }
        self
    }

    /// Claims the sockets for `address`. If its port is 0, sockets of the other listeners are
    /// excluded.
    pub(crate) fn take(
        &mut self,
        address: &BindAddress,
        others: &[Listener],
    ) -> Option<BoundAddress> {
        self.claim_passed(address)
            .or_else(|| self.claim_managed(address, others))
    }

    /// Claims the UDP sockets of the listener at `address`, which is `bound`, from the predecessor
    /// or the service manager. Also returns whether this program owns them: a service manager's
    /// cannot be bound again.
    pub(crate) fn take_datagrams(
        &mut self,
        address: &BindAddress,
        bound: &BindAddress,
    ) -> Option<(Vec<Arc<Socket>>, bool)> {
        let mut owned = true;
        let ours = |passed: &mut Passed| {
            passed.label.purpose == Purpose::Datagrams && passed.label.address == *address
        };
        let passed = self.passed.extract_if(.., ours);
        let mut sockets = Vec::new();
        for Passed { label, socket } in passed {
            owned &= label.owned;
            sockets.push(Arc::new(socket));
        }
        if sockets.is_empty() {
            let is_it = |socket: &&Arc<Socket>| address_of(socket).as_ref() == Some(bound);
            sockets.extend(self.managed_datagrams.iter().find(is_it).map(Arc::clone));
            owned = false;
        } else if !owned {
            self.managed_datagrams
                .extend(sockets.iter().map(Arc::clone));
        }
        let all_nonblocking = sockets
            .iter()
            .all(|socket| socket.set_nonblocking(true).is_ok());
        (!sockets.is_empty() && all_nonblocking).then_some((sockets, owned))
    }

    /// Claims the sockets that forward datagrams to the processes before this one, for connections
    /// that they keep; newest first.
    pub(crate) fn take_relays(&mut self) -> Vec<Socket> {
        let is_it = |passed: &mut Passed| passed.label.purpose == Purpose::DatagramRelay;
        let relays = self.passed.extract_if(.., is_it);
        relays.map(|passed| passed.socket).collect()
    }

    /// Claims the admin interface's socket at `address`.
    pub(crate) fn take_admin(&mut self, address: &BindAddress) -> Option<Passed> {
        let is_it = |passed: &Passed| {
            passed.label.purpose == Purpose::Admin && passed.label.address == *address
        };
        let place = self.passed.iter().position(is_it)?;
        Some(self.passed.remove(place))
    }

    /// Closes the predecessor's sockets that were not claimed. `disk` removes their files.
    pub(crate) fn close_unclaimed(&mut self, disk: &DiskThread) {
        for passed in std::mem::take(&mut self.passed) {
            tracing::info!(address = %passed.label.address, "no longer listening");
            match passed.label.purpose {
                Purpose::Listener(_) | Purpose::Datagrams if !passed.label.owned => {
                    self.add_managed(Arc::new(passed.socket));
                }
                Purpose::Listener(_)
                | Purpose::Datagrams
                | Purpose::DatagramRelay
                | Purpose::Admin
                | Purpose::Unclaimed => passed.close(disk),
            }
        }
    }

    /// The service manager's sockets without a listener.
    pub(crate) fn unclaimed(&self) -> impl Iterator<Item = (Label, &Socket)> {
        let managed = self.managed.iter().chain(&self.managed_datagrams);
        let unclaimed = managed.filter(|socket| is_unclaimed(socket));
        unclaimed.filter_map(|socket| {
            let label = Label {
                purpose: Purpose::Unclaimed,
                owned: false,
                address: address_of(socket)?,
            };
            Some((label, &**socket))
        })
    }

    /// Logs the sockets without a listener.
    pub(crate) fn log_unclaimed(&self) {
        for (label, _) in self.unclaimed() {
            tracing::warn!(
                address = %label.address,
                "no listener has the address of this socket of the service manager's"
            );
        }
    }

    fn add_managed(&mut self, socket: Arc<Socket>) {
        if socket.r#type().is_ok_and(|kind| kind == Type::DGRAM) {
            self.managed_datagrams.push(socket);
        } else if socket.is_listener().unwrap_or_default() {
            self.managed.push(socket);
        } else {
            tracing::warn!("a socket of the service manager's does not listen; it is closed");
        }
    }

    fn claim_passed(&mut self, address: &BindAddress) -> Option<BoundAddress> {
        let first = self.passed.iter().find(|passed| {
            matches!(passed.label.purpose, Purpose::Listener(_)) && passed.label.address == *address
        })?;
        let (purpose, owned) = (first.label.purpose, first.label.owned);
        let ours = |passed: &mut Passed| passed.label.purpose == purpose;
        let sockets = self.passed.extract_if(.., ours);
        let sockets: Vec<_> = sockets.map(|passed| Arc::new(passed.socket)).collect();
        if !owned {
            self.managed.extend(sockets.iter().map(Arc::clone));
        }
        BoundAddress::from_sockets(address, sockets, owned)
    }

    fn claim_managed(&self, address: &BindAddress, others: &[Listener]) -> Option<BoundAddress> {
        let is_it = |socket: &&Arc<Socket>| {
            let bound = socket.local_addr();
            is_unclaimed(socket) && bound.is_ok_and(|bound| is_for(&bound, address, others))
        };
        let socket = self.managed.iter().find(is_it)?;
        BoundAddress::from_sockets(address, vec![Arc::clone(socket)], false)
    }
}

/// Returns true if no listener holds the socket.
fn is_unclaimed(socket: &Arc<Socket>) -> bool {
    Arc::strong_count(socket) == 1
}

fn address_of(socket: &Socket) -> Option<BindAddress> {
    let bound = socket.local_addr().ok()?;
    match bound.as_socket() {
        Some(address) => Some(BindAddress::Tcp(address)),
        None => Some(BindAddress::Unix(bound.as_pathname()?.to_owned())),
    }
}

fn is_for(bound: &SockAddr, address: &BindAddress, others: &[Listener]) -> bool {
    let wanted = match address {
        BindAddress::Tcp(wanted) => wanted,
        BindAddress::Unix(path) => return bound.as_pathname() == Some(path),
    };
    let Some(bound) = bound.as_socket() else {
        return false;
    };
    let named = |address: SocketAddr| {
        let mut others = others.iter();
        others.any(|other| *other.address == BindAddress::Tcp(address))
    };
    bound == *wanted || wanted.port() == 0 && wanted.ip() == bound.ip() && !named(bound)
}
