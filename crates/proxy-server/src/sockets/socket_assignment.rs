//! The sockets that one worker accepts from.

use socket2::Socket;
use std::collections::BTreeSet;

/// Identifies a listener across plans: the index of its address among all addresses ever bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListenerId(pub(crate) u32);

/// The sockets of a listener that a worker accepts from.
#[derive(Debug)]
pub(crate) struct SocketAssignment {
    pub(crate) id: ListenerId,
    /// Indexes of the sockets; other workers accept from the rest.
    pub(crate) serves: Vec<usize>,
    /// Sockets that the worker has not duplicated yet, by index.
    pub(crate) fresh: Vec<(usize, Socket)>,
    /// The UDP sockets of HTTP/3, with a separate listener ID; `None` without HTTP/3.
    pub(crate) datagrams: Option<Box<Self>>,
}

impl SocketAssignment {
    /// The sockets that the worker has duplicates of.
    pub(crate) fn owned_sockets(&self) -> impl Iterator<Item = (ListenerId, usize)> {
        let both = std::iter::once(self).chain(self.datagrams.as_deref());
        both.flat_map(|one| one.serves.iter().map(|place| (one.id, *place)))
    }
}

/// Sockets that a worker has duplicates of, by listener and index.
pub(crate) type OwnedSockets = BTreeSet<(ListenerId, usize)>;
