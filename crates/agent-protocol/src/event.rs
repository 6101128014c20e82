//! Events: the parts of a request and its response that an agent receives.

use crate::bounded::list;
use crate::bytes::BodyData;
use crate::header::{Header, MAX_HEADERS};
use crate::id::RequestId;
use crate::metadata::MetadataByAgent;
use crate::text::Text;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The kinds of events, in the order of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The head of the request.
    RequestHeaders,
    /// Its body.
    RequestBody,
    /// The head of the upstream's response.
    ResponseHeaders,
    /// Its body.
    ResponseBody,
    /// The end; needs no answer.
    Completion,
}

impl EventKind {
    /// All kinds, in the order of [`Self::index`].
    pub const ALL: [Self; 5] = [
        Self::RequestHeaders,
        Self::RequestBody,
        Self::ResponseHeaders,
        Self::ResponseBody,
        Self::Completion,
    ];

    /// The name on the wire and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestHeaders => "request_headers",
            Self::RequestBody => "request_body",
            Self::ResponseHeaders => "response_headers",
            Self::ResponseBody => "response_body",
            Self::Completion => "completion",
        }
    }

    /// Position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The head of a request, always the first event of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHeaders<'a> {
    /// Identifier of the request, unique on its connection.
    pub id: RequestId,
    /// Number of the event within the request, from 0; the decision repeats it.
    pub seq: u32,
    /// Time for the decision; a later one is not used.
    pub timeout_ms: u64,
    /// The correlation ID of the request.
    pub correlation_id: Cow<'a, str>,
    /// Id of the route.
    pub route: Cow<'a, str>,
    /// The client's address, as used by the proxy's limits and logs.
    pub client_ip: Cow<'a, str>,
    /// Port of `client_ip`; `None` if that is from a forwarding header, or at a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_port: Option<u16>,
    /// The client's TLS; absent on plain connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsClient<'a>>,
    /// Method as sent by the client.
    pub method: Cow<'a, str>,
    /// `http` or `https`.
    pub scheme: Cow<'a, str>,
    /// The host with its port, as the client sent it.
    pub authority: Text<'a>,
    /// Path and query, as the client sent them.
    pub target: Text<'a>,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    pub http_version: Cow<'a, str>,
    /// All headers in their order, with names in lower case.
    #[serde(deserialize_with = "list::<_, _, MAX_HEADERS>")]
    pub headers: Vec<Header<'a>>,
    /// True if a body follows. Without one there is no event for it.
    pub has_body: bool,
    /// Metadata of the agents before this one.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub metadata: Cow<'a, MetadataByAgent>,
}

fn is_empty(metadata: &MetadataByAgent) -> bool {
    metadata.is_empty()
}

/// TLS facts about a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsClient<'a> {
    /// `1.2` or `1.3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Cow<'a, str>>,
    /// The server name requested by the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<Cow<'a, str>>,
    /// SHA-256 of the client's verified certificate, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_sha256: Option<Cow<'a, str>>,
}

/// A body, or a piece of it, of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyChunk<'a> {
    /// The request.
    pub id: RequestId,
    /// Number of the event within the request.
    pub seq: u32,
    /// Time for the decision.
    pub timeout_ms: u64,
    /// The bytes; may be empty in the last piece.
    pub data: BodyData<'a>,
    /// True if no further event of this body follows.
    pub last: bool,
    /// True if the body continues after the last event, beyond the limit of inspection.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// True if the bytes were decompressed. The target of a completely inspected request receives
    /// them decompressed; a client receives a response coded as its `content-encoding` states.
    #[serde(default, skip_serializing_if = "is_false")]
    pub decoded: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The head of an upstream's response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseHeaders<'a> {
    /// The request.
    pub id: RequestId,
    /// Number of the event within the request.
    pub seq: u32,
    /// Time for the decision.
    pub timeout_ms: u64,
    /// Name of the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Cow<'a, str>>,
    /// Status of the upstream's response.
    pub status: u16,
    /// The upstream's version of HTTP.
    pub http_version: Cow<'a, str>,
    /// All headers in their order, with names in lower case.
    #[serde(deserialize_with = "list::<_, _, MAX_HEADERS>")]
    pub headers: Vec<Header<'a>>,
    /// True if a body follows. Without one there is no event for it.
    pub has_body: bool,
}

/// The end of a request: the last frame about it. It is not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion<'a> {
    /// The request.
    pub id: RequestId,
    /// Status that the client got; absent if the client left before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The proxy's reason, where the request failed or was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// Body bytes read from the client.
    pub request_bytes: u64,
    /// Body bytes sent to the client.
    pub response_bytes: u64,
    /// Time from the request's first byte to its end.
    pub duration_ms: u64,
}

/// The request has ended for the agent: by timeout, by the client's disconnect, or by a response
/// without the agent. It is the last frame about the request, and is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// The request.
    pub id: RequestId,
}
