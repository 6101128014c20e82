//! What the process listens on: one door for each listener of the plan in force, kept over plans as long
//! as the address stays.

use crate::handover::{Label, Purpose};
use crate::inherited_sockets::InheritedSockets;
use crate::listen::{self, BindError, Bound};
use crate::worker::{ListenerId, SocketAssignment};
use proxy_model::{BindAddress, Model};
use socket2::Socket;
use std::collections::BTreeSet;
use std::io;

/// The doors, in the order of the plan's listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListenerSet {
    known: Vec<BoundListener>,
    next: u32,
}

/// Sockets of which a worker holds copies: a door, and a place in it.
pub(crate) type OwnedSockets = BTreeSet<(ListenerId, usize)>;

#[derive(Clone, Debug)]
struct BoundListener {
    id: ListenerId,
    /// As it was written.
    address: BindAddress,
    backlog: u32,
    bound: Bound,
}

impl ListenerSet {
    /// The doors of `model`, for `workers` workers. What is listened on already stays open, what is new
    /// is taken from `inherited` or bound, and [listened](Self::listen) on later. These doors are not
    /// changed, whether it fails or not.
    pub(crate) fn arrange(
        &self,
        model: &Model,
        workers: usize,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, BindError> {
        let mut arranged = Self {
            known: Vec::new(),
            next: self.next,
        };
        for settings in &model.listeners {
            let (address, backlog) = (&settings.address.value, *settings.backlog);
            let listener = match self.known(address, &arranged) {
                Some(listener) => BoundListener {
                    backlog,
                    bound: listener.bound.widened(workers),
                    ..listener.clone()
                },
                None => BoundListener {
                    id: arranged.number(),
                    address: address.clone(),
                    backlog,
                    bound: match inherited.take(address, &model.listeners) {
                        Some(bound) => bound.widened(workers),
                        None => listen::bind(address, backlog, workers)?,
                    },
                },
            };
            arranged.known.push(listener);
        }
        Ok(arranged)
    }

    /// Where each listener is bound.
    pub(crate) fn bound(&self) -> impl Iterator<Item = &BindAddress> {
        self.known.iter().map(|listener| &listener.bound.at)
    }

    /// What each of `workers` workers takes connections from, by door, when they hold copies of what
    /// `owned_sockets` says already. Those behind the last of `workers` get nothing.
    pub(crate) fn assignments<'h>(
        &self,
        workers: usize,
        owned_sockets: impl Iterator<Item = &'h OwnedSockets>,
    ) -> io::Result<Vec<Vec<SocketAssignment>>> {
        owned_sockets
            .enumerate()
            .map(|(worker, owned_sockets)| {
                let assignments = self.known.iter().map(|listener| {
                    let serves = if worker < workers {
                        listener.bound.share(worker, workers)
                    } else {
                        Vec::new()
                    };
                    listener.assignment(serves, owned_sockets)
                });
                assignments.collect()
            })
            .collect()
    }

    /// Listens wherever that is not so yet. Addresses that are new come first: once more sockets listen
    /// at an address that is served, clients wait at them, and a failure elsewhere would cut these off.
    pub(crate) fn listen(&self) -> Result<(), BindError> {
        let (served, new): (Vec<_>, Vec<_>) = self
            .known
            .iter()
            .partition(|listener| listener.bound.listens());
        let mut listeners = new.into_iter().chain(served);
        listeners.try_for_each(|listener| listener.bound.listen(listener.backlog))
    }

    /// Tells the system how many connections may wait at each door, unless `before` has said the same.
    pub(crate) fn set_backlogs(&self, before: &Self) {
        for listener in &self.known {
            let mut said = before.known.iter();
            if !said.any(|known| known.id == listener.id && known.backlog == listener.backlog) {
                listener.bound.set_backlog(listener.backlog);
            }
        }
    }

    /// Every socket, to be passed on to another process.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (Label, &Socket)> {
        self.known.iter().flat_map(|listener| {
            let label = Label {
                purpose: Purpose::Listener(listener.id.0),
                owned: listener.bound.owned,
                address: listener.address.clone(),
            };
            let sockets = listener.bound.sockets.iter();
            sockets.map(move |socket| (label.clone(), &**socket))
        })
    }

    /// Says whether the files of Unix sockets stay when the doors are closed.
    pub(crate) fn keep_files(&self, kept: bool) {
        for file in self.known.iter().flat_map(|listener| &listener.bound.file) {
            file.keep(kept);
        }
    }

    fn known(&self, address: &BindAddress, taken: &Self) -> Option<&BoundListener> {
        // With port 0 several listeners may be written alike: each keeps its own door.
        let taken = |listener: &BoundListener| taken.known.iter().any(|one| one.id == listener.id);
        let mut known = self.known.iter();
        known.find(|listener| {
            listener.address == *address && !taken(listener) && listener.bound.is_there()
        })
    }

    fn number(&mut self) -> ListenerId {
        let id = ListenerId(self.next);
        self.next += 1;
        id
    }
}

impl BoundListener {
    fn assignment(
        &self,
        serves: Vec<usize>,
        owned_sockets: &OwnedSockets,
    ) -> io::Result<SocketAssignment> {
        let missing = serves
            .iter()
            .filter(|place| !owned_sockets.contains(&(self.id, **place)));
        let fresh = missing.filter_map(|place| {
            let socket = self.bound.sockets.get(*place)?;
            Some(socket.try_clone().map(|copy| (*place, copy)))
        });
        Ok(SocketAssignment {
            id: self.id,
            fresh: fresh.collect::<io::Result<_>>()?,
            serves,
        })
    }
}
