//! The bound listeners of the active plan, kept across plans while their address is unchanged.

use crate::listen::{self, BindError, BoundAddress};
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::handover::{Label, Purpose};
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::socket_assignment::{ListenerId, OwnedSockets, SocketAssignment};
use proxy_model::{BindAddress, Model};
use socket2::Socket;
use std::io;

/// Bound listeners, in the order of the plan's listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListenerSet {
    known: Vec<BoundListener>,
    next: u32,
    /// True if no socket is bound: the embedding program hands connections over.
    is_socketless: bool,
}

#[derive(Clone, Debug)]
struct BoundListener {
    id: ListenerId,
    /// The address as written in the configuration.
    address: BindAddress,
    backlog: u32,
    bound: BoundAddress,
}

impl ListenerSet {
    /// Listeners without sockets.
    pub(crate) fn without_sockets() -> Self {
        Self {
            is_socketless: true,
            ..Self::default()
        }
    }

    /// The listeners of `model`, for `workers` workers. Bound addresses stay open; new ones are
    /// taken from `inherited` or bound, and [listened](Self::listen) on later. `self` is not
    /// changed.
    pub(crate) fn arrange(
        &self,
        model: &Model,
        workers: usize,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, BindError> {
        let mut arranged = Self {
            known: Vec::new(),
            next: self.next,
            is_socketless: self.is_socketless,
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
                        None if self.is_socketless => BoundAddress::without_sockets(address),
                        None => listen::bind(address, backlog, workers)?,
                    },
                },
            };
            arranged.known.push(listener);
        }
        Ok(arranged)
    }

    /// Closes this process's sockets; workers close theirs.
    pub(crate) fn close(&mut self) {
        self.known.clear();
    }

    /// The bound address of each listener.
    pub(crate) fn bound(&self) -> impl Iterator<Item = &BindAddress> {
        self.known.iter().map(|listener| &listener.bound.at)
    }

    /// The sockets that each of `workers` workers accepts from, by listener; `owned_sockets` lists
    /// the duplicates they already hold. Workers beyond `workers` get none.
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

    /// Listens on the sockets that do not yet. New addresses first: once additional sockets of a served
    /// address listen, clients queue at them, and a later failure would reset those clients.
    pub(crate) fn listen(&self) -> Result<(), BindError> {
        let (served, new): (Vec<_>, Vec<_>) = self
            .known
            .iter()
            .partition(|listener| listener.bound.listens());
        let mut listeners = new.into_iter().chain(served);
        listeners.try_for_each(|listener| listener.bound.listen(listener.backlog))
    }

    /// Sets the accept queue of each listener, unless `before` has the same length.
    pub(crate) fn set_backlogs(&self, before: &Self) {
        for listener in &self.known {
            let mut former = before.known.iter();
            if !former.any(|known| known.id == listener.id && known.backlog == listener.backlog) {
                listener.bound.set_backlog(listener.backlog);
            }
        }
    }

    /// Every socket, for handing over to another process.
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

    /// Leaves the removal of the files of Unix sockets to `disk`.
    pub(crate) fn remove_files_on(&self, disk: &DiskThread) {
        for file in self.known.iter().flat_map(|listener| &listener.bound.file) {
            file.remove_on(disk);
        }
    }

    /// Sets whether the files of Unix sockets are kept when the listeners are closed.
    pub(crate) fn keep_files(&self, kept: bool) {
        for file in self.known.iter().flat_map(|listener| &listener.bound.file) {
            file.keep(kept);
        }
    }

    fn known(&self, address: &BindAddress, taken: &Self) -> Option<&BoundListener> {
        // With port 0 several listeners may have the same address: each keeps its own socket.
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
