//! Framing of bodies.

/// How the end of a body is determined. [RFC 9112 §6.3]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// By a length in bytes, possibly 0.
    Length(u64),
    /// By the last chunk.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}
