//! Listening sockets that were open before this process was: a service manager's, or those of the
//! process that it takes over from.

use crate::handover::{Passed, Purpose};
use crate::listen::Bound;
use proxy_model::{BindAddress, Listener};
use socket2::{SockAddr, Socket};
use std::net::SocketAddr;

/// Sockets that wait for a setting that names their address.
#[derive(Debug, Default)]
pub(crate) struct Heritage {
    /// What a service manager has opened.
    managed: Vec<Socket>,
    /// What the process before had open.
    passed: Vec<Passed>,
}

impl Heritage {
    /// The sockets that systemd has opened for this process, and those `passed` on by another.
    pub(crate) fn new(passed: Vec<Passed>) -> Self {
        let mut given = listenfd::ListenFd::from_env();
        let managed = (0..given.len()).filter_map(|index| {
            if let Ok(Some(socket)) = given.take_tcp_listener(index) {
                return Some(Socket::from(socket));
            }
            given.take_unix_listener(index).ok()?.map(Socket::from)
        });
        Self {
            managed: managed.collect(),
            passed,
        }
    }

    /// Takes out the sockets for `address`, if there are some. `others` are listened on, too: where the
    /// port of `address` is 0, a socket of theirs is not for it.
    pub(crate) fn take(&mut self, address: &BindAddress, others: &[Listener]) -> Option<Bound> {
        self.take_passed(address)
            .or_else(|| self.take_managed(address, others))
    }

    /// Takes out the admin interface's socket at `address`.
    pub(crate) fn take_admin(&mut self, address: &BindAddress) -> Option<Passed> {
        let is_it = |passed: &Passed| {
            passed.label.purpose == Purpose::Admin && passed.label.address == *address
        };
        let place = self.passed.iter().position(is_it)?;
        Some(self.passed.remove(place))
    }

    /// Closes what the process before had open and this one has no use for.
    pub(crate) fn settle(&mut self) {
        for passed in self.passed.drain(..) {
            tracing::info!(address = %passed.label.address, "no longer listening");
            passed.close();
        }
    }

    fn take_passed(&mut self, address: &BindAddress) -> Option<Bound> {
        let first = self.passed.iter().find(|passed| {
            matches!(passed.label.purpose, Purpose::Door(_)) && passed.label.address == *address
        })?;
        let (purpose, owned) = (first.label.purpose, first.label.owned);
        let ours = |passed: &mut Passed| passed.label.purpose == purpose;
        let sockets = self.passed.extract_if(.., ours);
        Bound::of(
            address,
            sockets.map(|passed| passed.socket).collect(),
            owned,
        )
    }

    fn take_managed(&mut self, address: &BindAddress, others: &[Listener]) -> Option<Bound> {
        let is_it = |socket: &Socket| {
            let bound = socket.local_addr();
            bound.is_ok_and(|bound| is_for(&bound, address, others))
        };
        let place = self.managed.iter().position(is_it)?;
        Bound::of(address, vec![self.managed.remove(place)], false)
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
