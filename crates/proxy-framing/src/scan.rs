//! What a guard says about a piece of bytes, or about the end of them.

use crate::error::FramingError;

/// What a guard says about one piece of a connection's bytes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// How many of the bytes, from the first, the HTTP parser may have.
    ///
    /// All of them when `stop` is `None`.
    pub accepted: usize,
    /// Why the rest must be held back, if it must.
    pub stop: Option<Stop>,
}

/// Why a guard accepts nothing further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The stream is refused, for good: the guard stays faulted.
    FramingError(FramingError),
    /// A message ended here after which the connection may change its protocol.
    ///
    /// The guard accepts nothing until it is told to resume HTTP or to pass everything.
    Upgrade,
}

/// What a clean close means at the point where it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eof {
    /// Between two messages; nothing is owed.
    Idle,
    /// Before the first byte of a response that is owed.
    Unanswered,
    /// At the legal end of a body that ends with the connection. [RFC 9112 §6.3]
    BodyEnd,
    /// After the connection changed its protocol.
    Tunnel,
}
