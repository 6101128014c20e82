//! Error of a refused frame or message.

use crate::frame::FrameError;
use crate::id::RequestId;
use thiserror::Error;

/// The class of a [`DecodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeErrorKind {
    /// The frame itself: its length or its type.
    Frame(FrameError),
    /// A frame of a type that only the other side sends, or that is not allowed now.
    UnexpectedType,
    /// The payload is not one object of the agreed encoding with the fields of its type.
    Payload,
}

/// A frame or message that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct DecodeError {
    /// Class of the error; decides on the reply to the peer.
    pub kind: DecodeErrorKind,
    /// The request that the message names, if its `id` could be read: only that request has failed.
    /// Without it the whole connection has.
    pub request: Option<RequestId>,
    /// Position and cause, for a log.
    pub detail: String,
}

impl From<FrameError> for DecodeError {
    fn from(error: FrameError) -> Self {
        Self {
            kind: DecodeErrorKind::Frame(error),
            request: None,
            detail: error.to_string(),
        }
    }
}

/// Error of a message that could not be encoded. The buffer is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The frame would exceed the other side's limit.
    #[error("a frame of {length} bytes is longer than {limit}")]
    TooLong {
        /// Length of the frame.
        length: usize,
        /// The other side's limit.
        limit: usize,
    },
    /// A value that the encoding cannot express.
    #[error("a value cannot be encoded")]
    Value,
}
