//! A connection of a fake upstream.

use crate::http::message::Request;
use crate::http::wire::{Broken, End, Wire};
use crate::journal::Journal;
use std::ops::{Deref, DerefMut};

/// A connection of a fake upstream, closed on drop.
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

    /// Index of the upstream's connection, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Reads a whole request and records it. `None` if the proxy closed the connection before.
    pub fn request(&mut self) -> Option<Request> {
        let mut request = self.unrecorded_head()?;
        self.body(&mut request)?;
        Some(self.record(request))
    }

    /// Reads the head of a request, records it, and leaves the body unread.
    pub fn head(&mut self) -> Option<Request> {
        let request = self.unrecorded_head()?;
        Some(self.record(request))
    }

    /// Reads the body of a head. `None` if the connection broke.
    pub fn body(&mut self, request: &mut Request) -> Option<()> {
        let read = request.read_body(&mut self.wire);
        self.note(read)
    }

    /// Sends `bytes`. False if the proxy does not accept them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.wire.send(bytes).is_ok()
    }

    /// Waits until the proxy closes the connection, records how, and returns the bytes sent before.
    pub fn end(&mut self) -> Option<Vec<u8>> {
        let rest = self.wire.rest();
        let (bytes, end) = self.note(rest)?;
        self.ends.push((self.number, end));
        Some(bytes)
    }

    fn record(&self, request: Request) -> Request {
        let number = |index| Request {
            number: index + 1,
            ..request
        };
        self.requests.push_indexed(number)
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
