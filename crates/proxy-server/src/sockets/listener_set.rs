//! The bound listeners of the active plan, kept across plans while their address is unchanged.

use crate::listen::{self, BindError, BoundAddress, OnDrop};
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::handover::{Label, Purpose};
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::socket_assignment::{ListenerId, OwnedSockets, SocketAssignment};
use proxy_model::{BindAddress, Model};
use socket2::Socket;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// Bound listeners, in the order of the plan's listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListenerSet {
    known: Vec<BoundListener>,
    next: u32,
    /// Addresses of the UDP sockets that this process has ever bound: connections of a former
    /// endpoint may still use them.
    datagram_addresses: HashSet<BindAddress>,
    /// No socket is bound: the embedding program hands connections over.
    is_socketless: bool,
}

#[derive(Clone, Debug)]
struct BoundListener {
    id: ListenerId,
    /// The address as written in the configuration.
    address: BindAddress,
    backlog: u32,
    bound: BoundAddress,
    /// The sockets of HTTP/3; `None` without it.
    datagrams: Option<BoundDatagrams>,
}

/// UDP sockets at the address of a listener.
#[derive(Clone, Debug)]
struct BoundDatagrams {
    id: ListenerId,
    sockets: Vec<Arc<Socket>>,
    /// False for sockets of a service manager.
    owned: bool,
}

impl ListenerSet {
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
            datagram_addresses: self.datagram_addresses.clone(),
            is_socketless: self.is_socketless,
        };
        for settings in &model.listeners {
            let (address, backlog) = (&settings.address.value, *settings.backlog);
            let mut listener = match self.known(address, &arranged) {
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
                        None => listen::bind(address, backlog, workers).map_err(|error| {
                            error.held_by(self.holder(&arranged, model, address))
                        })?,
                    },
                    datagrams: None,
                },
            };
            let http3 = *settings.http3 && !self.is_socketless;
            listener.datagrams = match listener.datagrams.take().filter(|_| http3) {
                Some(mut datagrams) => {
                    listen::widen_datagrams(&listener.bound, &mut datagrams.sockets, workers);
                    Some(datagrams)
                }
                None if http3 => arranged.datagrams(&listener, workers, inherited)?,
                None => None,
            };
            arranged.known.push(listener);
        }
        Ok(arranged)
    }

    /// The part of this process that has an address overlapping with `address`, if there is one:
    /// a listener before it, the admin interface, which is bound before all listeners, or a listener
    /// of the active configuration.
    fn holder(&self, arranged: &Self, model: &Model, address: &BindAddress) -> Option<String> {
        let mut bound = arranged.known.iter().zip(&model.listeners);
        let other = bound.find(|(one, _)| listen::overlaps(&one.bound.at, address));
        if let Some((one, settings)) = other {
            let (name, other) = (&settings.name, &one.bound.at);
            return Some(format!("listener `{name}` has {other}, which includes it"));
        }
        let admin = model.admin.address.value.map(BindAddress::Tcp);
        if let Some(admin) = admin.filter(|admin| listen::overlaps(admin, address)) {
            return Some(format!("the admin interface has {admin}"));
        }
        let mut active = self.known.iter();
        let active = active.find(|one| listen::overlaps(&one.bound.at, address))?;
        Some(listen::still_bound(&active.bound.at))
    }

    /// The UDP sockets of `listener`, from `inherited` or bound.
    fn datagrams(
        &mut self,
        listener: &BoundListener,
        workers: usize,
        inherited: &mut InheritedSockets,
    ) -> Result<Option<BoundDatagrams>, BindError> {
        let found = inherited.take_datagrams(&listener.address, &listener.bound.at);
        let (sockets, owned) = if let Some((mut sockets, owned)) = found {
            listen::widen_datagrams(&listener.bound, &mut sockets, workers);
            (Some(sockets), owned)
        } else {
            let is_ours = self.datagram_addresses.contains(&listener.bound.at);
            let bound = listen::bind_datagrams(&listener.bound, workers, is_ours)?;
            (bound, true)
        };
        self.datagram_addresses.insert(listener.bound.at.clone());
        Ok(sockets.map(|sockets| BoundDatagrams {
            id: self.number(),
            sockets,
            owned,
        }))
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
                let serves = |sockets: usize| {
                    let serving = if worker < workers { sockets } else { 0 };
                    listen::share(serving, worker, workers)
                };
                let assignments = self.known.iter();
                let assignments =
                    assignments.map(|listener| listener.assignment(serves, owned_sockets));
                assignments.collect()
            })
            .collect()
    }

    /// Listens on the sockets that do not yet. New addresses first: once additional sockets of a
    /// served address listen, clients queue at them, and a later failure would reset those clients.
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
            let address = listener.address.clone();
            let datagrams = listener.datagrams.iter().flat_map(move |datagrams| {
                let label = Label {
                    purpose: Purpose::Datagrams,
                    owned: datagrams.owned,
                    address: address.clone(),
                };
                let sockets = datagrams.sockets.iter();
                sockets.map(move |socket| (label.clone(), &**socket))
            });
            let sockets = listener.bound.sockets.iter();
            let sockets = sockets.map(move |socket| (label.clone(), &**socket));
            sockets.chain(datagrams)
        })
    }

    /// The label of the sockets that forward datagrams to old processes in an upgrade; `None`
    /// without HTTP/3.
    pub(crate) fn relay_label(&self) -> Option<Label> {
        let mut listeners = self.known.iter();
        let listener = listeners.find(|listener| listener.datagrams.is_some())?;
        Some(Label {
            purpose: Purpose::DatagramRelay,
            owned: true,
            address: listener.address.clone(),
        })
    }

    /// Leaves the removal of the files of Unix sockets to `disk`.
    pub(crate) fn remove_files_on(&self, disk: &DiskThread) {
        for file in self.known.iter().flat_map(|listener| &listener.bound.file) {
            file.remove_on(disk);
        }
    }

    /// Sets whether closing the listeners keeps or removes the files of Unix sockets.
    pub(crate) fn set_files_on_drop(&self, action: OnDrop) {
        for file in self.known.iter().flat_map(|listener| &listener.bound.file) {
            file.set_on_drop(action);
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
    /// The sockets for one worker; `serves` names their indexes, given the number of all sockets.
    fn assignment(
        &self,
        serves: impl Fn(usize) -> Vec<usize>,
        owned_sockets: &OwnedSockets,
    ) -> io::Result<SocketAssignment> {
        let assigned = |id: ListenerId, sockets: &[Arc<Socket>]| {
            let serves = serves(sockets.len());
            let missing = serves
                .iter()
                .filter(|place| !owned_sockets.contains(&(id, **place)));
            let fresh = missing.filter_map(|place| {
                let socket = sockets.get(*place)?;
                Some(socket.try_clone().map(|copy| (*place, copy)))
            });
            io::Result::Ok(SocketAssignment {
                id,
                fresh: fresh.collect::<io::Result<_>>()?,
                serves,
                datagrams: None,
            })
        };
        let datagrams = self.datagrams.as_ref();
        let datagrams = datagrams.map(|datagrams| assigned(datagrams.id, &datagrams.sockets));
        Ok(SocketAssignment {
            datagrams: datagrams.transpose()?.map(Box::new),
            ..assigned(self.id, &self.bound.sockets)?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrange(before: &ListenerSet, listeners: &[(&str, &str)]) -> Result<ListenerSet, String> {
        let listeners = listeners.iter();
        let listeners =
            listeners.map(|(name, at)| format!("listener \"{name}\" {{ address \"{at}\" }};"));
        let text = format!(
            "admin {{ address \"off\" }}; listeners {{ {} }}",
            listeners.collect::<String>()
        );
        let model = proxy_config::parse(&text, "test.kdl").unwrap().model;
        let arranged = before.arrange(&model, 1, &mut InheritedSockets::default());
        arranged
            .and_then(|set| set.listen().map(|()| set))
            .map_err(|error| error.why)
    }

    #[test]
    fn an_address_of_this_process_is_not_blamed_on_another_one() {
        let first = arrange(&ListenerSet::default(), &[("wide", "0.0.0.0:0")]).unwrap();
        let Some(BindAddress::Tcp(wide)) = first.bound().next().cloned() else {
            panic!("no address");
        };
        let local = format!("127.0.0.1:{}", wide.port());

        let reloaded = arrange(&first, &[("local", &local)]).unwrap_err();
        assert!(
            reloaded.contains(&format!("still has {wide}")),
            "{reloaded}"
        );
        let other = arrange(&ListenerSet::default(), &[("local", &local)]).unwrap_err();
        assert!(other.contains("another process"), "{other}");

        let more = arrange(&first, &[("wide", "0.0.0.0:0"), ("local", &local)]).unwrap_err();
        assert_eq!(
            more,
            format!("listener `wide` has {wide}, which includes it")
        );
    }
}
