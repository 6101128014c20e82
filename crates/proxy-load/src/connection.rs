//! A client's connection: a stream, its protocol, and data to be sent.

pub(crate) mod stream;
pub(crate) mod trust;

use crate::command::Protocol;
use crate::connection::stream::{ReadOutcome, Stream};
use crate::http::http1::Http1;
use crate::http::http2::Http2;
use crate::poller::Interest;
use crate::request_error::RequestError;
use std::time::Duration;

/// A connection and its requests.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    /// Time of opening.
    pub(crate) opened: Duration,
    /// Number of answered requests.
    pub(crate) answered: u64,
    /// Current registration at the poller.
    pub(crate) interest: Interest,
    protocol: HttpClient,
    out: Vec<u8>,
}

enum HttpClient {
    Http1(Http1),
    Http2(Http2),
}

/// The result of a read, besides responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadProgress {
    pub(crate) bytes: usize,
    /// True if the proxy has closed its side.
    pub(crate) ended: bool,
}

impl ReadProgress {
    fn nothing(ended: bool) -> Self {
        Self { bytes: 0, ended }
    }
}

impl Connection {
    /// For a stream that was just opened.
    pub(crate) fn new(stream: Stream, protocol: Protocol, opened: Duration) -> Self {
        let protocol = match protocol {
            Protocol::Plain | Protocol::Tls => HttpClient::Http1(Http1::default()),
            Protocol::Http2 => HttpClient::Http2(Http2::new()),
        };
        Self {
            stream,
            opened,
            answered: 0,
            interest: Interest::Read,
            protocol,
            out: Vec::new(),
        }
    }

    /// Prepares a request for sending; its time counts from `since`.
    pub(crate) fn queue_request(&mut self, request: &[u8], since: Duration) {
        match &mut self.protocol {
            HttpClient::Http1(http1) => http1.queue_request(request, &mut self.out, since),
            HttpClient::Http2(http2) => http2.queue_request(request, &mut self.out, since),
        }
    }

    /// Sends prepared data, and returns the event to wait for.
    pub(crate) fn send(&mut self) -> Result<Interest, RequestError> {
        if self.stream.send(&mut self.out)? {
            return Ok(Interest::Read);
        }
        Ok(Interest::ReadAndWrite)
    }

    /// Reads once; appends to `answered` the start time of each request with a now complete
    /// response. The bytes are left at the beginning of `scratch`.
    pub(crate) fn read(
        &mut self,
        scratch: &mut [u8],
        body_bytes: Option<usize>,
        answered: &mut Vec<Duration>,
    ) -> Result<ReadProgress, RequestError> {
        let received = self.stream.receive(scratch)?;
        if matches!(self.protocol, HttpClient::Http2(_)) && self.stream.is_not_http2() {
            return Err(RequestError::NotHttp2);
        }
        let bytes = match received {
            ReadOutcome::Bytes(bytes) => bytes,
            ReadOutcome::Nothing => return Ok(ReadProgress::nothing(false)),
            ReadOutcome::End => return Ok(ReadProgress::nothing(true)),
        };
        let read = scratch.get(..bytes).unwrap_or_default();
        let before = answered.len();
        match &mut self.protocol {
            HttpClient::Http1(http1) => answered.extend(http1.take(read, body_bytes)?),
            HttpClient::Http2(http2) => http2.take(read, body_bytes, &mut self.out, answered)?,
        }
        self.answered += (answered.len() - before) as u64;
        Ok(ReadProgress {
            bytes,
            ended: false,
        })
    }

    /// Returns true if no byte has arrived since the last complete response.
    pub(crate) fn is_between_responses(&self) -> bool {
        match &self.protocol {
            HttpClient::Http1(http1) => http1.is_between_responses(),
            HttpClient::Http2(http2) => http2.unanswered() == 0,
        }
    }

    /// Number of requests that fail if the connection is lost now: at least one, because an idle
    /// connection should have stayed open.
    pub(crate) fn lost_requests(&self) -> u64 {
        match &self.protocol {
            HttpClient::Http1(_) => 1,
            HttpClient::Http2(http2) => http2.unanswered().max(1) as u64,
        }
    }
}
