//! The one body of every error, and the closed set of its codes.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The answer to a request that was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorResponse {
    /// The error.
    pub error: ErrorBody,
}

/// An error, without internals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// A name for programs.
    pub code: ErrorCode,
    /// A sentence for readers.
    pub message: String,
    /// Value of the header `X-Correlation-Id`; identifies the request in the log.
    pub correlation_id: String,
    /// Seconds to wait before the next try; present for rate limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Each wrong field; present with status 422.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ErrorDetail>,
}

/// One wrong field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The field's name, with dots between levels.
    pub field: String,
    /// Reason to refuse its value.
    pub reason: String,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:tt),* $(,)?) => {
        /// A machine-readable code of the failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code as in the body.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    /// 401: the credential is missing or not valid.
    AuthenticationFailed = "AUTHENTICATION_FAILED",
    /// 403: the credential does not allow this.
    AuthorizationFailed = "AUTHORIZATION_FAILED",
    /// 409: another value of the same name exists, or the value changed meanwhile.
    Conflict = "CONFLICT",
    /// 409: a request with the same `Idempotency-Key` is in progress, or its answer is not stored.
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT",
    /// 500: the control plane failed; the log has the cause.
    Internal = "INTERNAL",
    /// 413: the body is too large.
    LimitExceeded = "LIMIT_EXCEEDED",
    /// 405: the path exists, with other methods.
    MethodNotAllowed = "METHOD_NOT_ALLOWED",
    /// 404: it does not exist, or belongs to another tenant.
    NotFound = "NOT_FOUND",
    /// 400: the request cannot be read.
    Parse = "PARSE",
    /// 412: the value is not of the version in `If-Match`.
    PreconditionFailed = "PRECONDITION_FAILED",
    /// 409: the organization's quota of this is used up.
    QuotaExceeded = "QUOTA_EXCEEDED",
    /// 429: the rate limit is exceeded.
    RateLimitExceeded = "RATE_LIMIT_EXCEEDED",
    /// 400, 415 or 422: a field, a parameter or the media type is wrong.
    RequestValidation = "REQUEST_VALIDATION",
    /// 403: the organization demands a second factor, and the session has none.
    SecondFactorRequired = "SECOND_FACTOR_REQUIRED",
    /// 503: the database is unreachable, or the program stops.
    ServiceUnavailable = "SERVICE_UNAVAILABLE",
    /// 403: the password or a code is needed again, by `POST /users/me/strong`.
    StepUpRequired = "STEP_UP_REQUIRED",
    /// 408: the body was too slow.
    Timeout = "TIMEOUT",
    /// 409: the state of the value forbids this step.
    WrongState = "WRONG_STATE",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_body_has_the_described_fields() {
        let error = ErrorBody {
            code: ErrorCode::RateLimitExceeded,
            message: "slow".to_owned(),
            correlation_id: "c".to_owned(),
            retry_after: Some(2),
            details: Vec::new(),
        };
        assert_eq!(
            serde_json::to_value(ErrorResponse { error }).unwrap(),
            serde_json::json!({"error": {
                "code": "RATE_LIMIT_EXCEEDED", "message": "slow", "correlation_id": "c",
                "retry_after": 2,
            }})
        );
    }
}
