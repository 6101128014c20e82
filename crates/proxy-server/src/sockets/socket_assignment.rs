//! The sockets of a listener that a worker accepts from.

use socket2::Socket;
use std::collections::BTreeSet;

/// Identifies a listener across plans: the index of its address among all addresses ever bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListenerId(pub(crate) u32);

/// The sockets of a listener that a worker accepts from.
#[derive(Debug)]
pub(crate) struct SocketAssignment {
    pub(crate) id: ListenerId,
    /// Indexes of its sockets; other workers accept from the rest.
    pub(crate) serves: Vec<usize>,
    /// Sockets of which the worker has no duplicate yet.
    pub(crate) fresh: Vec<(usize, Socket)>,
    /// The sockets of HTTP/3; `None` without it. Their listener has an ID of its own.
    pub(crate) datagrams: Option<Box<Self>>,
}

impl SocketAssignment {
    /// The sockets of which the worker holds duplicates.
    pub(crate) fn owned_sockets(&self) -> impl Iterator<Item = (ListenerId, usize)> {
        let both = std::iter::once(self).chain(self.datagrams.as_deref());
        both.flat_map(|one| one.serves.iter().map(|place| (one.id, *place)))
    }
}

/// Sockets of which a worker holds duplicates: a listener, and an index into its sockets.
pub(crate) type OwnedSockets = BTreeSet<(ListenerId, usize)>;
