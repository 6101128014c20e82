//! Messages of the proxy and of agents.

use crate::decision::message::DecisionMessage;
use crate::encoding::Encoding;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::event::{BodyChunk, Cancel, Completion, RequestHeaders, ResponseHeaders};
use crate::frame::{Frame, FrameType};
use crate::handshake::{Hello, Welcome};
use crate::id::RequestId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A message of the proxy.
#[expect(
    clippy::large_enum_variant,
    reason = "a message is encoded or handled at once, and never stored"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyMessage<'a> {
    /// The handshake's offer.
    Hello(Hello),
    /// The head of a request.
    RequestHeaders(RequestHeaders<'a>),
    /// Its body.
    RequestBody(BodyChunk<'a>),
    /// The head of a response.
    ResponseHeaders(ResponseHeaders<'a>),
    /// Its body.
    ResponseBody(BodyChunk<'a>),
    /// The end of a request.
    Completion(Completion<'a>),
    /// The proxy needs no further decision on a request.
    Cancel(Cancel),
    /// The reason why the proxy closes the connection.
    Error(ErrorMessage<'a>),
}

/// A message of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentMessage<'a> {
    /// The handshake's answer.
    Welcome(Welcome),
    /// The answer to an event.
    Decision(DecisionMessage),
    /// The connection takes no further requests.
    Drain(Drain),
    /// An event, or the connection, has failed.
    Error(ErrorMessage<'a>),
}

/// The agent accepts no further requests on this connection, and answers the current ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// [`RequestId::CONNECTION`].
    pub id: RequestId,
}

/// A failure, described for a log. With the ID of a request it replaces the decision; with ID 0 it
/// is the last frame of the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMessage<'a> {
    /// The request, or [`RequestId::CONNECTION`].
    pub id: RequestId,
    /// Class of the failure, for programs.
    pub code: ErrorCode,
    /// Cause of the failure, for logs.
    pub message: Cow<'a, str>,
}

/// The class of an [`ErrorMessage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The other side violated the protocol.
    Protocol,
    /// No version that was offered is known.
    UnsupportedVersion,
    /// The agent is overloaded.
    Overloaded,
    /// The sender failed for a reason of its own.
    #[serde(other)]
    Internal,
}

impl ProxyMessage<'_> {
    /// Appends the frame to `out`. A handshake is JSON for every encoding. `limit` is the maximum
    /// length accepted by the other side.
    ///
    /// # Errors
    /// The frame is too long; the buffer is unchanged.
    pub fn encode(
        &self,
        encoding: Encoding,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let frame = self.frame_type();
        match self {
            Self::Hello(hello) => Encoding::Json.write(frame, hello, limit, out),
            Self::RequestHeaders(event) => encoding.write(frame, event, limit, out),
            Self::RequestBody(event) | Self::ResponseBody(event) => {
                encoding.write(frame, event, limit, out)
            }
            Self::ResponseHeaders(event) => encoding.write(frame, event, limit, out),
            Self::Completion(event) => encoding.write(frame, event, limit, out),
            Self::Cancel(cancel) => encoding.write(frame, cancel, limit, out),
            Self::Error(error) => encoding.write(frame, error, limit, out),
        }
    }

    /// The type of its frame.
    pub fn frame_type(&self) -> FrameType {
        match self {
            Self::Hello(_) => FrameType::Hello,
            Self::RequestHeaders(_) => FrameType::RequestHeaders,
            Self::RequestBody(_) => FrameType::RequestBody,
            Self::ResponseHeaders(_) => FrameType::ResponseHeaders,
            Self::ResponseBody(_) => FrameType::ResponseBody,
            Self::Completion(_) => FrameType::Completion,
            Self::Cancel(_) => FrameType::Cancel,
            Self::Error(_) => FrameType::Error,
        }
    }
}

impl ProxyMessage<'static> {
    /// The message of a frame. Unknown fields are skipped.
    ///
    /// # Errors
    /// The frame is of a type that only agents send, or its payload is wrong.
    pub fn decode(frame: Frame<'_>, encoding: Encoding) -> Result<Self, DecodeError> {
        decode(frame, encoding, |frame_type, payload| match frame_type {
            FrameType::Hello => Some(Encoding::Json.read(payload).map(Self::Hello)),
            FrameType::RequestHeaders => Some(encoding.read(payload).map(Self::RequestHeaders)),
            FrameType::RequestBody => Some(encoding.read(payload).map(Self::RequestBody)),
            FrameType::ResponseHeaders => Some(encoding.read(payload).map(Self::ResponseHeaders)),
            FrameType::ResponseBody => Some(encoding.read(payload).map(Self::ResponseBody)),
            FrameType::Completion => Some(encoding.read(payload).map(Self::Completion)),
            FrameType::Cancel => Some(encoding.read(payload).map(Self::Cancel)),
            FrameType::Error => Some(encoding.read(payload).map(Self::Error)),
            FrameType::Welcome | FrameType::Decision | FrameType::Drain => None,
        })
    }
}

impl AgentMessage<'_> {
    /// Appends the frame to `out`. A handshake is JSON for every encoding. `limit` is the maximum
    /// length accepted by the other side.
    ///
    /// # Errors
    /// The frame is too long; the buffer is unchanged.
    pub fn encode(
        &self,
        encoding: Encoding,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        match self {
            Self::Welcome(welcome) => Encoding::Json.write(FrameType::Welcome, welcome, limit, out),
            Self::Decision(decision) => encoding.write(FrameType::Decision, decision, limit, out),
            Self::Drain(drain) => encoding.write(FrameType::Drain, drain, limit, out),
            Self::Error(error) => encoding.write(FrameType::Error, error, limit, out),
        }
    }
}

impl AgentMessage<'static> {
    /// The message of a frame. Unknown fields are refused.
    ///
    /// # Errors
    /// The frame is of a type that only the proxy sends, or its payload is wrong.
    pub fn decode(frame: Frame<'_>, encoding: Encoding) -> Result<Self, DecodeError> {
        decode(frame, encoding, |frame_type, payload| match frame_type {
            FrameType::Welcome => Some(Encoding::Json.read(payload).map(Self::Welcome)),
            FrameType::Decision => Some(encoding.read(payload).map(Self::Decision)),
            FrameType::Drain => Some(encoding.read(payload).map(Self::Drain)),
            FrameType::Error => Some(encoding.read(payload).map(Self::Error)),
            FrameType::Hello
            | FrameType::RequestHeaders
            | FrameType::RequestBody
            | FrameType::ResponseHeaders
            | FrameType::ResponseBody
            | FrameType::Completion
            | FrameType::Cancel => None,
        })
    }
}

/// The message parsed by `read` from a frame's payload; `None` for a type of the other side.
fn decode<M>(
    frame: Frame<'_>,
    encoding: Encoding,
    read: impl FnOnce(FrameType, &[u8]) -> Option<Result<M, String>>,
) -> Result<M, DecodeError> {
    let Frame {
        frame_type,
        payload,
    } = frame;
    let read = read(frame_type, payload).ok_or_else(|| unexpected(frame_type))?;
    read.map_err(|detail| refused(frame, encoding, &detail))
}

fn unexpected(frame_type: FrameType) -> DecodeError {
    DecodeError {
        kind: DecodeErrorKind::UnexpectedType,
        request: None,
        detail: format!(
            "a frame of the type {} of the other side",
            frame_type.name()
        ),
    }
}

/// The only field that is read of a malformed message.
#[derive(Deserialize)]
struct IdField {
    id: RequestId,
}

fn refused(frame: Frame<'_>, encoding: Encoding, detail: &str) -> DecodeError {
    let is_handshake = matches!(frame.frame_type, FrameType::Hello | FrameType::Welcome);
    let encoding = if is_handshake {
        Encoding::Json
    } else {
        encoding
    };
    let read: Result<IdField, _> = encoding.read(frame.payload);
    DecodeError {
        kind: DecodeErrorKind::Payload,
        request: read.ok().map(|fields| fields.id),
        detail: format!("{}: {detail}", frame.frame_type.name()),
    }
}
