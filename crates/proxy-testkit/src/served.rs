//! A connection as a fake upstream sees it.

use crate::journal::Journal;
use crate::message::Request;
use crate::wire::{Broken, End, Wire};
use std::ops::{Deref, DerefMut};

/// One connection to a fake upstream. Dropped, it is closed.
#[derive(Debug)]
pub struct Served {
    wire: Wire,
    number: usize,
    requests: Journal<Request>,
    faults: Journal<String>,
    ends: Journal<(usize, End)>,
}

impl Served {
    pub(crate) fn new(
        wire: Wire,
        number: usize,
        requests: Journal<Request>,
        faults: Journal<String>,
        ends: Journal<(usize, End)>,
    ) -> Self {
        Self {
            wire,
            number,
            requests,
            faults,
            ends,
        }
    }

    /// Which of the upstream's connections this is, counted from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Reads a whole request and records it. None when the proxy ended the connection before.
    pub fn request(&mut self) -> Option<Request> {
        let mut request = self.unrecorded_head()?;
        self.body(&mut request)?;
        self.requests.push(request.clone());
        Some(request)
    }

    /// Reads the head of a request, records it, and leaves the body unread.
    pub fn head(&mut self) -> Option<Request> {
        let request = self.unrecorded_head()?;
        self.requests.push(request.clone());
        Some(request)
    }

    /// Reads the body that belongs to a head. None when it broke off.
    pub fn body(&mut self, request: &mut Request) -> Option<()> {
        let read = request.read_body(&mut self.wire);
        self.note(read)
    }

    /// Sends `bytes`. False when the proxy does not take them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.wire.send(bytes).is_ok()
    }

    /// Waits until the proxy ends the connection, records how, and gives what else it sent.
    pub fn end(&mut self) -> Option<Vec<u8>> {
        let rest = self.wire.rest();
        let (bytes, end) = self.note(rest)?;
        self.ends.push((self.number, end));
        Some(bytes)
    }

    fn unrecorded_head(&mut self) -> Option<Request> {
        let head = Request::read_head(&mut self.wire, self.number);
        self.note(head)
    }

    fn note<T>(&self, read: Result<T, Broken>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(Broken::Malformed(what)) => {
                self.faults
                    .push(format!("connection {}: {what}", self.number));
                None
            }
            Err(Broken::Eof) => {
                self.ends.push((self.number, End::Closed));
                None
            }
            Err(Broken::Reset) => {
                self.ends.push((self.number, End::Reset));
                None
            }
            Err(Broken::Silent | Broken::Io(_)) => None,
        }
    }
}

impl Deref for Served {
    type Target = Wire;

    fn deref(&self) -> &Wire {
        &self.wire
    }
}

impl DerefMut for Served {
    fn deref_mut(&mut self) -> &mut Wire {
        &mut self.wire
    }
}
