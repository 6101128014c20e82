//! What a start line says that framing depends on.

/// The version of a message; there are only two in this syntax. [RFC 9112 §2.3]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}

/// What a request line says about what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestSummary {
    pub(crate) version: Version,
    /// The method is `CONNECT`: what follows the message may be a tunnel.
    pub(crate) connect: bool,
}

/// What a status line says about what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseSummary {
    pub(crate) version: Version,
    /// 100 to 599.
    pub(crate) status: u16,
}
