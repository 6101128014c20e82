//! The parts of a start line that framing depends on.

/// The version of a message. [RFC 9112 §2.3]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}

/// The part of a request line that decides how later bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestSummary {
    pub(crate) version: Version,
    /// The method is `CONNECT`: a tunnel may follow the message.
    pub(crate) connect: bool,
}

/// The part of a status line that decides how later bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseSummary {
    pub(crate) version: Version,
    /// Status code, 100 to 599.
    pub(crate) status: u16,
}
