//! Results of validating a piece of bytes, or the end of the stream.

pub(crate) mod lines;

use crate::error::FramingError;

/// The result of validating one piece of a connection's bytes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Number of leading bytes that the HTTP parser may read: all bytes if `stop` is `None`.
    pub accepted: usize,
    /// The reason why the rest must be held back.
    pub stop: Option<Stop>,
}

/// The reason why a validator accepts no further bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The stream is refused; the validator stays in this state.
    FramingError(FramingError),
    /// A message ended after which the protocol may change.
    ///
    /// The validator accepts nothing until its caller resumes HTTP or lets everything pass.
    Upgrade,
}

/// The meaning of the stream's end at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eof {
    /// Between two messages, with no response expected.
    Idle,
    /// Before the first byte of an expected response.
    Unanswered,
    /// At the legal end of a body that ends with the connection. [RFC 9112 §6.3]
    BodyEnd,
    /// After a change of protocol.
    Tunnel,
}
