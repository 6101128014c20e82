//! Frames: a length, a type, a payload.

use thiserror::Error;

/// Bytes of the length that begins a frame.
pub const LENGTH_BYTES: usize = 4;
/// Least value that either side may choose as the maximum of a frame.
pub const MIN_FRAME_LIMIT_BYTES: usize = 1024;

/// The type of a frame, which defines its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameType {
    /// Proxy: the handshake's offer.
    Hello,
    /// Agent: the handshake's answer.
    Welcome,
    /// Proxy: the head of a request.
    RequestHeaders,
    /// Proxy: a request's body, or a piece of it.
    RequestBody,
    /// Proxy: the head of an upstream's response.
    ResponseHeaders,
    /// Proxy: a response's body, or a piece of it.
    ResponseBody,
    /// Proxy: a request has ended.
    Completion,
    /// Proxy: a request no longer concerns the agent.
    Cancel,
    /// Agent: the answer to an event.
    Decision,
    /// Agent: the connection takes no further requests.
    Drain,
    /// Either: an event or the connection has failed.
    Error,
}

impl FrameType {
    /// All types, in the order of their codes.
    pub const ALL: [Self; 11] = [
        Self::Hello,
        Self::Welcome,
        Self::RequestHeaders,
        Self::RequestBody,
        Self::ResponseHeaders,
        Self::ResponseBody,
        Self::Completion,
        Self::Cancel,
        Self::Decision,
        Self::Drain,
        Self::Error,
    ];

    /// The byte on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::Hello => 0x01,
            Self::Welcome => 0x02,
            Self::RequestHeaders => 0x10,
            Self::RequestBody => 0x11,
            Self::ResponseHeaders => 0x12,
            Self::ResponseBody => 0x13,
            Self::Completion => 0x14,
            Self::Cancel => 0x1f,
            Self::Decision => 0x20,
            Self::Drain => 0x21,
            Self::Error => 0x7f,
        }
    }

    /// The type with this byte.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|frame| frame.code() == code)
    }

    /// The name in documents and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Welcome => "welcome",
            Self::RequestHeaders => "request_headers",
            Self::RequestBody => "request_body",
            Self::ResponseHeaders => "response_headers",
            Self::ResponseBody => "response_body",
            Self::Completion => "completion",
            Self::Cancel => "cancel",
            Self::Decision => "decision",
            Self::Drain => "drain",
            Self::Error => "error",
        }
    }
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Type in the fifth byte of the frame.
    pub frame_type: FrameType,
    /// Everything after the type.
    pub payload: &'a [u8],
}

/// Error of bytes that are not the beginning of a frame. The connection cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum FrameError {
    /// The length has no room for the type.
    #[error("a frame of length 0")]
    Empty,
    /// The claimed length exceeds the limit.
    #[error("a frame of {length} bytes exceeds the limit of {limit}")]
    TooLong {
        /// Claimed length.
        length: usize,
        /// Maximum.
        limit: usize,
    },
    /// No type has this byte.
    #[error("a frame of the unknown type 0x{0:02x}")]
    UnknownType(u8),
}

/// The first frame of `input` and its length in bytes; `None` until it is complete. The limit
/// applies to the type and the payload, like the length field.
///
/// # Errors
/// The frame's length or type is wrong; reported as soon as either is read.
pub fn read_frame(input: &[u8], limit: usize) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((length, rest)) = input.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if length == 0 {
        return Err(FrameError::Empty);
    }
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    let Some(code) = rest.first() else {
        return Ok(None);
    };
    let frame_type = FrameType::from_code(*code).ok_or(FrameError::UnknownType(*code))?;
    let payload = rest.get(1..length);
    Ok(payload.map(|payload| {
        let frame = Frame {
            frame_type,
            payload,
        };
        (frame, LENGTH_BYTES + length)
    }))
}
