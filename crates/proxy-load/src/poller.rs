//! A wrapper of epoll.

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::{Errno, Result};
use std::os::fd::{AsFd, OwnedFd};

/// Maximum number of events per wait.
const MAX_EVENTS: usize = 1_024;
/// Maximum wait of a poller that may sleep, because the clock decides when a load ends.
const MAX_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
const NO_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// The owner of a ready socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The upstream's listener.
    Listener,
    /// A connection of the upstream, by its index.
    Backend(usize),
    /// A connection of the clients, by its index.
    Client(usize),
}

/// The registration of a connection, which always includes reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Reading only.
    Read,
    /// Reading, and writing the rest of some data.
    ReadAndWrite,
}

/// A ready socket: its owner and its readiness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) owner: Owner,
    /// Data, the end of the stream, or an error that reading will return.
    pub(crate) readable: bool,
}

/// An epoll instance.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poller {
    /// Without registrations.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(MAX_EVENTS),
        })
    }

    /// Registers a socket until it is closed.
    pub(crate) fn watch(&self, socket: impl AsFd, owner: Owner) -> Result<()> {
        epoll::add(&self.epoll, socket, owner.data(), Interest::Read.flags())
    }

    /// Changes the registration of a socket.
    pub(crate) fn change(&self, socket: impl AsFd, owner: Owner, interest: Interest) -> Result<()> {
        epoll::modify(&self.epoll, socket, owner.data(), interest.flags())
    }

    /// Collects ready sockets; without `spin`, waits up to a millisecond for one.
    pub(crate) fn poll(&mut self, ready: &mut Vec<Ready>, spin: bool) -> Result<()> {
        self.events.clear();
        ready.clear();
        let timeout = if spin { &NO_WAIT } else { &MAX_WAIT };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        ready.extend(self.events.iter().map(|event| {
            let (data, flags) = (event.data, event.flags);
            Ready {
                owner: Owner::from_data(data.u64()),
                readable: flags != EventFlags::OUT,
            }
        }));
        Ok(())
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN,
            Self::ReadAndWrite => EventFlags::IN | EventFlags::OUT,
        }
    }
}

impl Owner {
    /// The lowest bit distinguishes clients from the upstream, the remaining bits are the index.
    fn data(self) -> EventData {
        let word = |index: usize| u64::try_from(index).unwrap_or(u64::MAX) << 1;
        EventData::new_u64(match self {
            Self::Listener => u64::MAX,
            Self::Backend(at) => word(at),
            Self::Client(at) => word(at) | 1,
        })
    }

    fn from_data(data: u64) -> Self {
        let index = usize::try_from(data >> 1).unwrap_or(usize::MAX);
        match (data, data & 1) {
            (u64::MAX, _) => Self::Listener,
            (_, 0) => Self::Backend(index),
            _ => Self::Client(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_back_from_epoll_data() {
        let owners = [
            Owner::Listener,
            Owner::Backend(0),
            Owner::Backend(7_000),
            Owner::Client(0),
            Owner::Client(7_001),
        ];
        for owner in owners {
            assert_eq!(Owner::from_data(owner.data().u64()), owner);
        }
    }
}
