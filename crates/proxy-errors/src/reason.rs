//! The reasons for which a request failed; each belongs to one error type.

use crate::error_type::ErrorType;
use crate::grpc_status::GrpcStatus;
use crate::limit_type::LimitType;
use http::StatusCode;
use std::fmt;
use std::time::Duration;

/// Declares [`Reason`]: one row holds all data of a reason.
macro_rules! reasons {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $owner:ident $(($limit:ident))? $(=> $status:literal)?,
            $token:literal, $phrase:literal;
    )+) => {
        /// The reason for which a request failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Reason {
            /// Every reason, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub(super) const fn row(self) -> Row {
                match self {
                    $(Self::$variant => Row {
                        name: $name,
                        owner: ErrorType::$owner,
                        limit_type: optional!($(LimitType::$limit)?),
                        status: optional!($($status)?),
                        token: $token,
                        phrase: $phrase,
                        doc: concat!($($doc),+),
                    },)+
                }
            }
        }
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

mod row;
mod table;

pub use table::Reason;

impl Reason {
    /// The name in logs, metric labels and `Proxy-Status` details, for example `connect_refused`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The type that the reason belongs to.
    #[must_use]
    pub const fn error_type(self) -> ErrorType {
        self.row().owner
    }

    /// Index in [`Reason::ALL`], for tables with one slot per reason.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The status of responses: the type's, or the reason's own.
    #[must_use]
    pub fn status(self) -> StatusCode {
        let own = self.row().status;
        own.and_then(|code| StatusCode::from_u16(code).ok())
            .unwrap_or_else(|| self.error_type().status())
    }

    /// The status under `limits { standard-statuses #true }`: 431 for header limits.
    #[must_use]
    pub fn standard_status(self) -> StatusCode {
        if matches!(
            self.limit_type(),
            Some(LimitType::HeaderSize | LimitType::HeaderCount)
        ) {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        } else {
            self.status()
        }
    }

    /// The error type of `Proxy-Status` [RFC 9209 §2.3].
    #[must_use]
    pub const fn proxy_status(self) -> &'static str {
        self.row().token
    }

    /// A few words without internals, for any client.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        self.row().phrase
    }

    /// The meaning, in one sentence.
    #[must_use]
    pub const fn doc(self) -> &'static str {
        self.row().doc.trim_ascii()
    }

    /// The type of the limit, for a reason that is one.
    #[must_use]
    pub const fn limit_type(self) -> Option<LimitType> {
        self.row().limit_type
    }

    /// The setting of the limit, for a reason with exactly one setting.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most reasons are not limits"
    )]
    pub const fn setting(self) -> Option<&'static str> {
        match self {
            Self::HeaderSizeLimit => Some("limits.max-header-size-bytes"),
            Self::HeaderCountLimit => Some("limits.max-header-count"),
            Self::HeaderNameLimit => Some("limits.max-header-name-bytes"),
            Self::HeaderValueLimit => Some("limits.max-header-value-bytes"),
            Self::BufferSizeLimit => Some("limits.max-body-buffer-bytes"),
            Self::ConnectionLimit => Some("limits.max-total-connections"),
            Self::ClientConnectionLimit => Some("limits.max-connections-per-client"),
            Self::RouteConnectionLimit => Some("limits.max-connections-per-route"),
            Self::InFlightLimit | Self::InFlightShare | Self::QueueTimeout => {
                Some("limits.max-in-flight-requests")
            }
            Self::QueueFull => Some("limits.max-queued-requests"),
            Self::GlobalRateLimit => Some("limits.max-requests-per-second-global"),
            Self::ClientRateLimit => Some("limits.max-requests-per-second-per-client"),
            Self::RouteRateLimit => Some("limits.max-requests-per-second-per-route"),
            Self::PolicyRateLimit => Some("routes.route.policies.rate-limit"),
            Self::CredentialAttempts => Some("routes.route.policies.basic-auth.attempts"),
            _ => None,
        }
    }

    /// The gRPC status. [gRPC's `http-grpc-status-mapping.md`; more precise where the reason is
    /// more precise than the status]
    #[must_use]
    pub const fn grpc_status(self) -> GrpcStatus {
        if matches!(self, Self::ClientAborted) {
            return GrpcStatus::Cancelled;
        }
        if matches!(self, Self::MethodNotAllowed | Self::ConnectMethodRefused) {
            return GrpcStatus::Unimplemented;
        }
        // Temporary shortages: gRPC clients retry UNAVAILABLE, but not RESOURCE_EXHAUSTED.
        if matches!(self.row().status, Some(503 | 504)) {
            return GrpcStatus::Unavailable;
        }
        self.error_type().grpc_status()
    }

    /// Returns true if a client may retry the same request.
    #[must_use]
    pub fn retryable(self) -> bool {
        let passing = self.error_type() == ErrorType::LimitExceeded
            && self.status() == StatusCode::SERVICE_UNAVAILABLE;
        let hopeless = matches!(self, Self::TlsVerifyFailed | Self::TlsPinMismatch);
        passing || (self.error_type().retryable() && !hopeless)
    }

    /// The `Retry-After` of reasons that always have one.
    #[must_use]
    pub fn retry_after(self) -> Option<Duration> {
        let passing = matches!(
            self.error_type(),
            ErrorType::LimitExceeded | ErrorType::ServiceUnavailable
        );
        let retries_later = passing && self.status() == StatusCode::SERVICE_UNAVAILABLE;
        (retries_later || self.error_type() == ErrorType::RateLimit)
            .then_some(Duration::from_secs(1))
    }

    /// Returns true if the client caused the failure: the status is 4xx.
    #[must_use]
    pub fn is_client_fault(self) -> bool {
        self.status().is_client_error()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
