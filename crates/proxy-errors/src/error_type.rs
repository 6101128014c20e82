//! The error types that clients see, with status and code.

use crate::grpc_status::GrpcStatus;
use http::StatusCode;

/// The type of an error, sent as `error.code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// Malformed request or invalid input.
    RequestValidation,
    /// Request parsing failed.
    Parse,
    /// Credentials missing or invalid.
    AuthenticationFailed,
    /// Insufficient permissions.
    AuthorizationFailed,
    /// Blocked by WAF rules.
    WafBlocked,
    /// No route or resource matches this request.
    RouteNotFound,
    /// Rate or resource limit exceeded.
    LimitExceeded,
    /// Rate limit exceeded, with retry information.
    RateLimit,
    /// TLS handshake or certificate error.
    Tls,
    /// Configuration error.
    Config,
    /// Agent communication error.
    Agent,
    /// Internal error.
    Internal,
    /// I/O failed.
    Io,
    /// Connect or response failure at the upstream.
    Upstream,
    /// Invalid upstream response.
    ResponseValidation,
    /// Temporarily unavailable.
    ServiceUnavailable,
    /// Breaker tripped after consecutive failures.
    CircuitBreakerOpen,
    /// All upstream targets failed health checks.
    NoHealthyUpstream,
    /// Operation timed out.
    Timeout,
}

struct Row {
    name: &'static str,
    code: &'static str,
    status: u16,
    grpc: GrpcStatus,
    doc: &'static str,
}

const fn row(
    name: &'static str,
    code: &'static str,
    status: u16,
    grpc: GrpcStatus,
    doc: &'static str,
) -> Row {
    Row {
        name,
        code,
        status,
        grpc,
        doc,
    }
}

impl ErrorType {
    /// Every type, in the order of the reference page.
    pub const ALL: [Self; 19] = [
        Self::RequestValidation,
        Self::Parse,
        Self::AuthenticationFailed,
        Self::AuthorizationFailed,
        Self::WafBlocked,
        Self::RouteNotFound,
        Self::LimitExceeded,
        Self::RateLimit,
        Self::Tls,
        Self::Config,
        Self::Agent,
        Self::Internal,
        Self::Io,
        Self::Upstream,
        Self::ResponseValidation,
        Self::ServiceUnavailable,
        Self::CircuitBreakerOpen,
        Self::NoHealthyUpstream,
        Self::Timeout,
    ];

    #[rustfmt::skip]
    const fn row(self) -> Row {
        use GrpcStatus as Grpc;
        match self {
            Self::RequestValidation => row("RequestValidation", "REQUEST_VALIDATION", 400, Grpc::InvalidArgument, "malformed request or invalid input"),
            Self::Parse => row("Parse", "PARSE", 400, Grpc::Internal, "request parsing failed"),
            Self::AuthenticationFailed => row("AuthenticationFailed", "AUTHENTICATION_FAILED", 401, Grpc::Unauthenticated, "credentials missing or invalid"),
            Self::AuthorizationFailed => row("AuthorizationFailed", "AUTHORIZATION_FAILED", 403, Grpc::PermissionDenied, "insufficient permissions"),
            Self::WafBlocked => row("WafBlocked", "WAF_BLOCKED", 403, Grpc::PermissionDenied, "blocked by WAF rules"),
            Self::RouteNotFound => row("RouteNotFound", "ROUTE_NOT_FOUND", 404, Grpc::Unimplemented, "no route or resource answers to this request"),
            Self::LimitExceeded => row("LimitExceeded", "LIMIT_EXCEEDED", 429, Grpc::ResourceExhausted, "rate or resource limit exceeded"),
            Self::RateLimit => row("RateLimit", "RATE_LIMIT_EXCEEDED", 429, Grpc::ResourceExhausted, "rate limit exceeded, with retry information"),
            Self::Tls => row("Tls", "TLS", 495, Grpc::Unauthenticated, "TLS handshake or certificate error"),
            Self::Config => row("Config", "CONFIG", 500, Grpc::Internal, "configuration error"),
            Self::Agent => row("Agent", "AGENT", 500, Grpc::Internal, "agent communication error"),
            Self::Internal => row("Internal", "INTERNAL", 500, Grpc::Internal, "internal error"),
            Self::Io => row("Io", "IO", 500, Grpc::Internal, "I/O failed"),
            Self::Upstream => row("Upstream", "UPSTREAM_ERROR", 502, Grpc::Unavailable, "connect or response failure at the upstream"),
            Self::ResponseValidation => row("ResponseValidation", "RESPONSE_VALIDATION", 502, Grpc::Internal, "invalid upstream response"),
            Self::ServiceUnavailable => row("ServiceUnavailable", "SERVICE_UNAVAILABLE", 503, Grpc::Unavailable, "temporarily unavailable"),
            Self::CircuitBreakerOpen => row("CircuitBreakerOpen", "CIRCUIT_BREAKER_OPEN", 503, Grpc::Unavailable, "breaker tripped after consecutive failures"),
            Self::NoHealthyUpstream => row("NoHealthyUpstream", "NO_HEALTHY_UPSTREAM", 503, Grpc::Unavailable, "all upstream targets failed health checks"),
            Self::Timeout => row("Timeout", "TIMEOUT", 504, Grpc::DeadlineExceeded, "operation timed out"),
        }
    }

    /// The name in logs, for example `NoHealthyUpstream`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The stable word in `error.code`, for example `NO_HEALTHY_UPSTREAM`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.row().code
    }

    /// The status of this type's responses, unless the reason has its own.
    #[must_use]
    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The gRPC status, unless the reason has a more precise one.
    #[must_use]
    pub const fn grpc_status(self) -> GrpcStatus {
        self.row().grpc
    }

    /// Returns true if a client may retry the request, after the time in `Retry-After` if there is
    /// one. For some reasons of [`ErrorType::Upstream`] it may not: see
    /// [`Reason::retryable`](crate::reason::Reason::retryable).
    #[must_use]
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::Upstream | Self::Timeout | Self::ServiceUnavailable | Self::RateLimit
        )
    }

    /// The meaning, in a few words.
    #[must_use]
    pub const fn doc(self) -> &'static str {
        self.row().doc
    }
}
