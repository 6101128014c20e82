//! The party at fault when a request fails: the one table that breakers, passive health and metrics use.

use crate::reason::Reason;

/// The party at fault when a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The client, or the content of its request.
    Client,
    /// The proxy, its settings, its machine, its name servers or its agents.
    Proxy,
    /// The target, in any state of the request.
    Target,
    /// The target, if it had the whole request: a target may rightly end a slow or an overlong upload.
    TargetOfWholeRequest,
    /// The target, if it had the whole request for at least half of the route's `request-secs`. The rest
    /// of the time may have passed in the queue, with agents or with the upload, and a client may set a
    /// shorter time by `grpc-timeout`.
    TargetGivenTime,
}

/// The state of a request when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// True if the target had all of it, or could have had.
    pub is_whole: bool,
    /// True if at least half of the route's `request-secs` has passed since then.
    pub had_time: bool,
}

impl Blame {
    /// Returns true if the target of `request` is at fault: its breaker and its outlier count move.
    #[must_use]
    pub const fn is_target(self, request: SentRequest) -> bool {
        let SentRequest { is_whole, had_time } = request;
        match self {
            Self::Client | Self::Proxy => false,
            Self::Target => true,
            Self::TargetOfWholeRequest => is_whole,
            Self::TargetGivenTime => is_whole && had_time,
        }
    }

    /// Returns true if the target is at fault for some requests.
    #[must_use]
    pub const fn may_be_target(self) -> bool {
        !matches!(self, Self::Client | Self::Proxy)
    }

    /// The party in the words of the reference page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Proxy => "proxy",
            Self::Target => "target",
            Self::TargetOfWholeRequest => "target, once it has the whole request",
            Self::TargetGivenTime => "target, if it had half of the time",
        }
    }
}

impl Reason {
    /// The party at fault.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a table of one row for each reason")]
    pub const fn blame(self) -> Blame {
        match self {
            Self::BadRequestLine
            | Self::BadHeaderName
            | Self::BadHeaderValue
            | Self::SpaceBeforeColon
            | Self::ObsFold
            | Self::BareCr
            | Self::BareLf
            | Self::NulByte
            | Self::BadContentLength
            | Self::ConflictingContentLength
            | Self::ContentLengthWithTransferEncoding
            | Self::BadTransferEncoding
            | Self::BadChunk
            | Self::BadTrailer
            | Self::MissingHost
            | Self::RepeatedHost
            | Self::InvalidHost
            | Self::Http2ProtocolError
            | Self::Http3ProtocolError
            | Self::BadProxyProtocol
            | Self::PathEscapesRoot
            | Self::AmbiguousPath
            | Self::EncodedNul
            | Self::BadPathEscape
            | Self::BadRequestTarget
            | Self::AdminBodyInvalid
            | Self::CrossSiteRequest
            | Self::ConnectMethodRefused
            | Self::MethodNotAllowed
            | Self::MisdirectedRequest
            | Self::UnsupportedExpectation
            | Self::BadContentEncoding
            | Self::PreconditionFailed
            | Self::RangeNotSatisfiable
            | Self::NotStored
            | Self::RespondClientError
            | Self::RouteNotFound
            | Self::AdminTargetUnknown
            | Self::StaticNotFound
            | Self::CredentialsMissing
            | Self::CredentialsInvalid
            | Self::AgentChallenge
            | Self::AccessDenied
            | Self::TokenClaimMissing
            | Self::StaticForbidden
            | Self::AgentBlocked
            | Self::HeaderSizeLimit
            | Self::HeaderCountLimit
            | Self::HeaderNameLimit
            | Self::HeaderValueLimit
            | Self::BodySizeLimit
            | Self::DecompressionLimit
            | Self::BufferSizeLimit
            | Self::ClientConnectionLimit
            | Self::Http2Flood
            | Self::Http3Flood
            | Self::GlobalRateLimit
            | Self::ClientRateLimit
            | Self::RouteRateLimit
            | Self::PolicyRateLimit
            | Self::CredentialAttempts
            | Self::ClientCertificateMissing
            | Self::ClientCertificateInvalid
            | Self::ClientTlsFailed
            | Self::ClientAborted
            | Self::RequestHeaderTimeout
            | Self::RequestBodyTimeout
            | Self::ClientWriteTimeout
            | Self::TunnelIdleTimeout
            | Self::UpgradeDeclined => Blame::Client,

            Self::ConnectionLimit
            | Self::RouteConnectionLimit
            | Self::InFlightLimit
            | Self::InFlightShare
            | Self::QueueFull
            | Self::QueueTimeout
            | Self::CredentialChecksBusy
            | Self::ConfigError
            | Self::RedirectLoop
            | Self::AgentTimeout
            | Self::AgentUnreachable
            | Self::AgentBreakerOpen
            | Self::AgentQueueFull
            | Self::AgentBadReply
            | Self::Panic
            | Self::InternalError
            | Self::DatabaseError
            | Self::StaticReadFailed
            | Self::IoError
            | Self::DnsFailed
            | Self::ConnectFailed
            | Self::Draining
            | Self::RouteRemoved
            | Self::TargetRemoved
            | Self::RespondServerError
            | Self::TokenKeysUnavailable
            | Self::Overloaded
            | Self::MemoryPressure
            | Self::NoFreeConnection
            | Self::BreakerOpen
            | Self::AllTargetsUnhealthy
            | Self::NoTargets
            | Self::StaticReadTimeout => Blame::Proxy,

            Self::ConnectRefused
            | Self::ConnectUnreachable
            | Self::ConnectReset
            | Self::ConnectTimeout
            | Self::TlsHandshakeFailed
            | Self::TlsVerifyFailed
            | Self::TlsPinMismatch
            | Self::UpstreamRefusedStream
            | Self::BadStatusLine
            | Self::BadResponseHeader
            | Self::ResponseConflictingLength
            | Self::ResponseBadChunk
            | Self::ResponseTruncated
            | Self::TooManyInformational
            | Self::UpstreamHeaderTooLarge
            | Self::UpstreamHttp2Error
            | Self::UpstreamWriteTimeout
            | Self::ResponseHeaderTimeout
            | Self::ResponseReadTimeout => Blame::Target,

            Self::UpstreamClosedEarly
            | Self::UpstreamReset
            | Self::UpstreamWriteFailed
            | Self::UnaskedUpgrade => Blame::TargetOfWholeRequest,

            Self::RequestTimeout => Blame::TargetGivenTime,
        }
    }
}
