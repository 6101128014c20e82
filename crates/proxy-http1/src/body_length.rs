//! The length of a body.

/// Framing of a body: the source of its end. [RFC 9112 §6.3]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// By its length in bytes, which may be 0.
    Length(u64),
    /// By its last chunk.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}
