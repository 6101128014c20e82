//! The error of an incomplete response.

/// The response is incomplete; the protocol signals that by ending the connection or resetting the
/// stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response broke off: {reason}")]
pub struct BodyError {
    /// The reason's name.
    pub reason: &'static str,
}
