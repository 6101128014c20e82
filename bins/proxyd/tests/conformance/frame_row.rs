//! A row of frames with the expected result.

use crate::frames::{HEADERS, WHOLE, frame};
use crate::received_request::ReceivedRequest;

/// The frames of one connection.
pub(crate) struct Row {
    pub(crate) name: String,
    /// True if a preface is sent before `bytes`.
    pub(crate) begun: bool,
    pub(crate) bytes: Vec<u8>,
    /// The stream under test.
    pub(crate) stream: u32,
    pub(crate) expected: Expected,
}

/// Requests for `/wait` are not counted: they keep streams open.
#[derive(Debug)]
pub(crate) enum Expected {
    /// The connection ends with one of these codes; nothing is forwarded.
    Ended(&'static [u32]),
    /// The connection is closed, with or without GOAWAY; nothing is forwarded.
    Closed,
    /// The stream ends with one of these codes and its connection continues, or the connection ends
    /// with it, as RFC 9113 §5.4.2 allows; nothing is forwarded.
    Reset(&'static [u32]),
    /// The stream is refused with 400, or reset as malformed. [RFC 9113 §8.1.1]
    Malformed,
    /// The stream is refused with a 4xx or 501, or reset as malformed; nothing is forwarded.
    Refused,
    /// The stream is answered with this status; nothing is forwarded.
    Answered(u16),
    /// The connection continues as if nothing had been sent; nothing is forwarded.
    Ignored,
    /// The stream is answered by the upstream, which got this request.
    Passed(Seen),
}

/// The expected request at the upstream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    method: &'static str,
    target: String,
    body: Vec<u8>,
    fields: Vec<(&'static str, Option<&'static str>)>,
    trailers: Vec<(&'static str, &'static str)>,
}

impl Row {
    pub(crate) fn new(
        name: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
        expected: Expected,
    ) -> Self {
        Self {
            name: name.into(),
            begun: true,
            bytes: bytes.into(),
            stream: 1,
            expected,
        }
    }

    /// One whole request on stream 1.
    pub(crate) fn head(name: impl Into<String>, section: &[u8], expected: Expected) -> Self {
        Self::new(name, frame(HEADERS, WHOLE, 1, section), expected)
    }

    /// Puts another stream under test; with 0, only the end of the connection.
    pub(crate) fn on(mut self, stream: u32) -> Self {
        self.stream = stream;
        self
    }

    /// Sends only `bytes`, without the preface.
    pub(crate) fn raw(
        name: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
        expected: Expected,
    ) -> Self {
        Self {
            begun: false,
            ..Self::new(name, bytes, expected)
        }
    }
}

/// A request with this line and without a body.
pub(crate) fn seen(method: &'static str, target: impl Into<String>) -> Seen {
    Seen {
        status: 200,
        method,
        target: target.into(),
        body: Vec::new(),
        fields: Vec::new(),
        trailers: Vec::new(),
    }
}

impl Seen {
    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.fields.push((name, Some(value)));
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.fields.push((name, None));
        self
    }

    /// The client gets this status, not 200.
    pub(crate) fn answered_with(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn trailer(mut self, name: &'static str, value: &'static str) -> Self {
        self.trailers.push((name, value));
        self
    }

    /// Checks that `received_request` is the expected request. Parts that HTTP/2 cannot represent are not
    /// compared.
    pub(crate) fn check(&self, received_request: &ReceivedRequest) -> Result<(), String> {
        let line = (
            received_request.method.as_str(),
            received_request.target.as_str(),
        );
        let has_place = |name: &str| !received_request.http2 || !ONLY_HTTP1.contains(&name);
        let mut fields = self.fields.iter().filter(|(name, _)| has_place(name));
        let all_fields = fields.all(|(name, value)| match value {
            Some(value) => received_request.all(name) == [*value],
            None => received_request.all(name).is_empty(),
        });
        let trailers: Vec<_> = received_request
            .trailers
            .iter()
            .map(|(n, v)| (&**n, &**v))
            .collect();
        let same = line == (self.method, self.target.as_str())
            && received_request.body == self.body
            && all_fields
            && trailers == self.trailers;
        if same {
            return Ok(());
        }
        Err(format!(
            "the upstream saw {:?}, not {self:?}",
            received_request.text
        ))
    }
}

const ONLY_HTTP1: [&str; 4] = ["connection", "host", "transfer-encoding", "upgrade"];
