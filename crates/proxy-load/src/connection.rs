//! One client's connection: a stream, the protocol spoken on it, and what waits to be sent.

use crate::command::Protocol;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::poller::Interest;
use crate::request_error::RequestError;
use crate::stream::{Receipt, Stream};
use std::time::Duration;

/// A connection and its requests.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    /// When it was opened.
    pub(crate) opened: Duration,
    /// How many of its requests have been answered.
    pub(crate) answered: u64,
    /// What the poller was last told to wait for.
    pub(crate) interest: Interest,
    speaker: Speaker,
    out: Vec<u8>,
}

enum Speaker {
    Http1(Http1),
    Http2(Http2),
}

/// What reading came to, besides answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) bytes: usize,
    /// Whether the proxy has closed its side.
    pub(crate) ended: bool,
}

impl Taken {
    fn nothing(ended: bool) -> Self {
        Self { bytes: 0, ended }
    }
}

impl Connection {
    /// Over a stream that was just opened.
    pub(crate) fn new(stream: Stream, protocol: Protocol, opened: Duration) -> Self {
        let speaker = match protocol {
            Protocol::Plain | Protocol::Tls => Speaker::Http1(Http1::default()),
            Protocol::Http2 => Speaker::Http2(Http2::new()),
        };
        Self {
            stream,
            opened,
            answered: 0,
            interest: Interest::Read,
            speaker,
            out: Vec::new(),
        }
    }

    /// Makes a request ready to be sent; its time counts from `since`.
    pub(crate) fn ask(&mut self, request: &[u8], since: Duration) {
        match &mut self.speaker {
            Speaker::Http1(http1) => http1.ask(request, &mut self.out, since),
            Speaker::Http2(http2) => http2.ask(request, &mut self.out, since),
        }
    }

    /// Sends what is ready, and says what else to wait for.
    pub(crate) fn send(&mut self) -> Result<Interest, RequestError> {
        if self.stream.send(&mut self.out)? {
            return Ok(Interest::Read);
        }
        Ok(Interest::ReadAndWrite)
    }

    /// Reads once; for each answer that is whole now, since when it was awaited. The bytes stay
    /// at the front of `scratch`.
    pub(crate) fn take(
        &mut self,
        scratch: &mut [u8],
        body_bytes: Option<usize>,
        answered: &mut Vec<Duration>,
    ) -> Result<Taken, RequestError> {
        let received = self.stream.receive(scratch)?;
        if matches!(self.speaker, Speaker::Http2(_)) && self.stream.is_not_http2() {
            return Err(RequestError::NotHttp2);
        }
        let bytes = match received {
            Receipt::Bytes(bytes) => bytes,
            Receipt::Nothing => return Ok(Taken::nothing(false)),
            Receipt::End => return Ok(Taken::nothing(true)),
        };
        let read = scratch.get(..bytes).unwrap_or_default();
        let before = answered.len();
        match &mut self.speaker {
            Speaker::Http1(http1) => answered.extend(http1.take(read, body_bytes)?),
            Speaker::Http2(http2) => http2.take(read, body_bytes, &mut self.out, answered)?,
        }
        self.answered += (answered.len() - before) as u64;
        Ok(Taken {
            bytes,
            ended: false,
        })
    }

    /// Whether no byte has come since the last whole answer.
    pub(crate) fn is_between_answers(&self) -> bool {
        match &self.speaker {
            Speaker::Http1(http1) => http1.is_between_answers(),
            Speaker::Http2(http2) => http2.unanswered() == 0,
        }
    }

    /// How many requests are lost with it, if it is lost now: one at least, for a connection
    /// that rests should have gone on resting.
    pub(crate) fn at_stake(&self) -> u64 {
        match &self.speaker {
            Speaker::Http1(_) => 1,
            Speaker::Http2(http2) => http2.unanswered().max(1) as u64,
        }
    }
}
