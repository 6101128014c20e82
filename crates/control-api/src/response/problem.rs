//! Conversion of failures to responses.

use crate::response::page::{FailurePage, PageLink};
use crate::route::Route;
use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control_app::{Error, ObjectError};
use control_domain::Refusal;
use control_wire::{ErrorBody, ErrorCode, ErrorDetail, ErrorResponse};
use std::time::Duration;

const BUSY_RETRY_SECS: u64 = 30;
/// `Retry-After` for an unavailable database or object store.
const UNAVAILABLE_RETRY_SECS: u64 = 5;

/// A failure that becomes a response; `request/answer.rs` adds its body.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: ErrorCode,
    message: String,
    retry_after: Option<u64>,
    details: Vec<ErrorDetail>,
    /// Set if another request changed the resource first.
    is_stale: bool,
    /// Cause, for the log only.
    cause: Option<String>,
}

/// Format of a failure's body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FailureForm {
    Json,
    Page,
}

impl Problem {
    fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            retry_after: None,
            details: Vec::new(),
            is_stale: false,
            cause: None,
        }
    }

    /// 429 with the number of seconds to wait.
    pub(crate) fn rate_limited(retry_after: u64) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let problem = Self::new(status, ErrorCode::RateLimitExceeded, "Rate limit exceeded");
        Self {
            retry_after: Some(retry_after),
            ..problem
        }
    }

    /// 422 for one invalid field.
    pub(crate) fn invalid(field: &str, reason: &str) -> Self {
        let detail = ErrorDetail {
            field: field.to_owned(),
            reason: reason.to_owned(),
        };
        let message = format!("Request validation failed: {field}: {reason}");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self {
            details: vec![detail],
            ..Self::new(status, ErrorCode::RequestValidation, message)
        }
    }

    /// 422 for several invalid fields; the message names the first.
    pub(crate) fn invalid_fields(details: Vec<ErrorDetail>) -> Self {
        let first = details.first().map_or_else(String::new, |detail| {
            let ErrorDetail { field, reason } = detail;
            format!(": {field}: {reason}")
        });
        let more = match details.len() {
            0 | 1 => String::new(),
            2 => "; and 1 more field".to_owned(),
            count => format!("; and {} more fields", count - 1),
        };
        let message = format!("Request validation failed{first}{more}");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self {
            details,
            ..Self::new(status, ErrorCode::RequestValidation, message)
        }
    }

    /// 400 for a body that cannot be parsed.
    pub(crate) fn unreadable(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::Parse, message)
    }

    /// 400 for an invalid query parameter.
    pub(crate) fn bad_query(reason: &str) -> Self {
        let message = format!("Request validation failed: query: {reason}");
        let status = StatusCode::BAD_REQUEST;
        Self::new(status, ErrorCode::RequestValidation, message)
    }

    /// 400 for an invalid header field.
    pub(crate) fn bad_header(name: &str, reason: &str) -> Self {
        let message = format!("Request validation failed: {name}: {reason}");
        let status = StatusCode::BAD_REQUEST;
        Self::new(status, ErrorCode::RequestValidation, message)
    }

    /// 400 for an invalid identifier in the path.
    pub(crate) fn bad_path(reason: &str) -> Self {
        let message = format!("Request validation failed: path: {reason}");
        let status = StatusCode::BAD_REQUEST;
        Self::new(status, ErrorCode::RequestValidation, message)
    }

    /// 415 for a compressed body.
    pub(crate) fn encoded() -> Self {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let message = "Request validation failed: the body must not have a Content-Encoding";
        Self::new(status, ErrorCode::RequestValidation, message)
    }

    /// 408 for a body that did not arrive within `time`.
    pub(crate) fn too_slow(time: Duration) -> Self {
        let message = format!("Timeout: request body after {}ms", time.as_millis());
        Self::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::Timeout, message)
    }

    /// 415 for a body that is not JSON.
    pub(crate) fn not_json() -> Self {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let message = "Request validation failed: the body must be application/json";
        Self::new(status, ErrorCode::RequestValidation, message)
    }

    /// 413 for a body of `declared` bytes; `None` if the size was not announced, and one byte more
    /// than the limit was read.
    pub(crate) fn too_large(declared: Option<u64>, limit: usize) -> Self {
        let current = declared.unwrap_or(limit as u64 + 1);
        let message =
            format!("Limit exceeded: body_size - Current value {current} exceeds limit {limit}");
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Self::new(status, ErrorCode::LimitExceeded, message)
    }

    /// 409 for an `Idempotency-Key` without a response to repeat.
    pub(crate) fn repeated(message: &str) -> Self {
        let code = ErrorCode::IdempotencyConflict;
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 422 for an `Idempotency-Key` reused with another body.
    pub(crate) fn other_request() -> Self {
        Self::invalid("Idempotency-Key", "was used with another body")
    }

    /// 403 for a cross-site request with a cookie.
    pub(crate) fn other_site() -> Self {
        let message = "Authorization failed: sent by another site";
        Self::new(
            StatusCode::FORBIDDEN,
            ErrorCode::AuthorizationFailed,
            message,
        )
    }

    /// Names the missing resource in a 404. The name depends only on the route, because a resource
    /// of another tenant must look like a missing one.
    pub(crate) fn name_missing(&mut self, route: &Route) {
        if self.code == ErrorCode::NotFound {
            self.message = route.missing();
        }
    }

    /// With `If-Match`, a concurrent change is a failed precondition: turns 409 into 412.
    pub(crate) fn fail_precondition(&mut self) {
        if self.is_stale {
            *self = Error::Precondition.into();
        }
    }

    /// Failure for a status that the framework returned.
    pub(crate) fn from_status(status: StatusCode) -> Self {
        let code = match status {
            StatusCode::NOT_FOUND => ErrorCode::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => ErrorCode::MethodNotAllowed,
            StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::LimitExceeded,
            _ if status.is_server_error() => ErrorCode::Internal,
            _ => ErrorCode::RequestValidation,
        };
        Self::new(status, code, status.canonical_reason().unwrap_or_default())
    }

    /// 503 with a `Retry-After` of 30 seconds.
    fn busy(message: &str) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self {
            retry_after: Some(BUSY_RETRY_SECS),
            ..Self::new(
                status,
                ErrorCode::ServiceUnavailable,
                format!("Service unavailable: {message}"),
            )
        }
    }

    fn forbidden(refusal: &Refusal, code: ErrorCode) -> Self {
        let message = format!("Authorization failed: {refusal}");
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    fn unauthenticated() -> Self {
        let message = "Authentication failed: no valid credential";
        let status = StatusCode::UNAUTHORIZED;
        Self::new(status, ErrorCode::AuthenticationFailed, message)
    }

    /// 500; internal details are logged, never sent.
    fn internal(error: &Error) -> Self {
        use control_app::StoreError::{Unavailable, Unwritable};
        let no_database = matches!(
            error,
            Error::Store(Unavailable(_) | Unwritable) | Error::Stopped
        );
        let no_objects = matches!(error, Error::Object(ObjectError::Failed(_)));
        let unavailable = no_database
            .then_some("Service unavailable: database")
            .or(no_objects.then_some("Service unavailable: object store"));
        let (status, code, message) = if let Some(message) = unavailable {
            let code = ErrorCode::ServiceUnavailable;
            (StatusCode::SERVICE_UNAVAILABLE, code, message)
        } else {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            (status, ErrorCode::Internal, "Internal error")
        };
        Self {
            retry_after: unavailable.map(|_| UNAVAILABLE_RETRY_SECS),
            cause: Some(format!("{error:?}")),
            ..Self::new(status, code, message)
        }
    }

    #[cfg(test)]
    pub(crate) fn details(&self) -> &[ErrorDetail] {
        &self.details
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Writes the response as JSON or HTML. Keeps header fields set before, except those that
    /// describe the body.
    pub(crate) fn write(
        self,
        correlation_id: &str,
        headers: &HeaderMap,
        form: FailureForm,
    ) -> Response {
        let Self {
            status,
            code,
            message,
            retry_after,
            details,
            is_stale: _,
            cause,
        } = self;
        if let Some(cause) = cause {
            tracing::error!(correlation_id, cause, "request failed");
        }
        let mut written = match form {
            FailureForm::Page => FailurePage {
                status,
                subject: "",
                message: &sentence(code, &message),
                retry_after,
                reference: correlation_id,
                link: PageLink {
                    path: "/",
                    text: "Go to your projects",
                },
            }
            .into_response(),
            FailureForm::Json => {
                let error = ErrorBody {
                    code,
                    message,
                    correlation_id: correlation_id.to_owned(),
                    retry_after,
                    details,
                };
                (status, Json(ErrorResponse { error })).into_response()
            }
        };
        for (name, value) in headers {
            if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
                written.headers_mut().insert(name, value.clone());
            }
        }
        let headers = written.headers_mut();
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        written
    }
}

/// Sentence for an HTML page, in place of a message about the API.
fn sentence(code: ErrorCode, message: &str) -> String {
    if code == ErrorCode::NotFound {
        "There is nothing at this address.".to_owned()
    } else if code == ErrorCode::MethodNotAllowed {
        "This address takes no requests of this kind. Nothing was changed.".to_owned()
    } else {
        format!("{}.", message.trim_end_matches('.'))
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (status, code) = match refusal {
            Refusal::NotFound => (StatusCode::NOT_FOUND, ErrorCode::NotFound),
            Refusal::MissingScope(_)
            | Refusal::LimitedToProject
            | Refusal::LowerRole(_)
            | Refusal::MakerRole(_)
            | Refusal::WrongCredential
            | Refusal::OwnApproval
            | Refusal::UnknownPerson
            | Refusal::DependentPerson
            | Refusal::SharedMember
            | Refusal::MoreThanOwn(_) => {
                return Self::forbidden(&refusal, ErrorCode::AuthorizationFailed);
            }
            Refusal::NotFresh => return Self::forbidden(&refusal, ErrorCode::StepUpRequired),
            Refusal::NoSecondFactor => {
                return Self::forbidden(&refusal, ErrorCode::SecondFactorRequired);
            }
            Refusal::Ended => return Self::unauthenticated(),
            Refusal::WrongState { .. }
            | Refusal::NoSigningKey
            | Refusal::NoPassword
            | Refusal::Held
            | Refusal::NeedsApproval
            | Refusal::CertificateExchange
            | Refusal::UnknownWarnings
            | Refusal::Warnings(_)
            | Refusal::Frozen { .. } => (StatusCode::CONFLICT, ErrorCode::WrongState),
            Refusal::InUse(_) | Refusal::Taken(_) | Refusal::LastAdmin => {
                (StatusCode::CONFLICT, ErrorCode::Conflict)
            }
            Refusal::Quota { .. } => (StatusCode::CONFLICT, ErrorCode::QuotaExceeded),
            Refusal::Invalid { field, reason } => return Self::invalid(field, reason),
            Refusal::InvalidFields(fields) => {
                let details = fields.into_iter().map(|wrong| ErrorDetail {
                    field: wrong.field.to_owned(),
                    reason: wrong.reason.to_owned(),
                });
                return Self::invalid_fields(details.collect());
            }
        };
        Self::new(status, code, refusal.to_string())
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        use control_app::StoreError::{Conflict, Reference, Stale};
        match error {
            Error::Unauthenticated => Self::unauthenticated(),
            Error::WrongSignIn => {
                let message = format!("Authentication failed: {error}");
                let status = StatusCode::UNAUTHORIZED;
                Self::new(status, ErrorCode::AuthenticationFailed, message)
            }
            Error::TooManyAttempts { retry_after_secs } => Self::rate_limited(retry_after_secs),
            Error::Refused(refusal) => refusal.into(),
            Error::Precondition => {
                let status = StatusCode::PRECONDITION_FAILED;
                Self::new(status, ErrorCode::PreconditionFailed, error.to_string())
            }
            Error::Store(Stale) => Self {
                is_stale: true,
                ..Self::new(StatusCode::CONFLICT, ErrorCode::Conflict, error.to_string())
            },
            Error::Store(Conflict | Reference) => {
                Self::new(StatusCode::CONFLICT, ErrorCode::Conflict, error.to_string())
            }
            Error::TooManyReportBytes {
                retry_after_secs, ..
            } => Self {
                message: format!("Rate limit exceeded: {error}"),
                ..Self::rate_limited(retry_after_secs)
            },
            Error::TooManyWaiters
            | Error::TooManyUploads
            | Error::TooManyBodies
            | Error::TooManySignIns => Self::busy(&error.to_string()),
            Error::SsoRefused
            | Error::SsoNotAuthenticated
            | Error::SsoEmailTaken
            | Error::SsoOtherSession => {
                let message = format!("Authorization failed: {error}");
                Self::new(
                    StatusCode::FORBIDDEN,
                    ErrorCode::AuthorizationFailed,
                    message,
                )
            }
            Error::Files(wrong) => Self::invalid("files", &wrong.to_string()),
            Error::Definition { field, reason } => Self::invalid(field, &reason),
            Error::Certificate(wrong) => {
                let is_key = wrong.is_about_key();
                let field = if is_key {
                    "private_key_pem"
                } else {
                    "chain_pem"
                };
                Self::invalid(field, &wrong.to_string())
            }
            Error::Store(_)
            | Error::Auth(_)
            | Error::Seal(_)
            | Error::Archive(_)
            | Error::Object(_)
            | Error::Stopped => Self::internal(&error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_database_is_answered_with_retry_after() {
        let problem = Problem::from(Error::Store(control_app::StoreError::Unwritable));
        assert_eq!(problem.status, StatusCode::SERVICE_UNAVAILABLE);
        let answer = problem.write("id", &HeaderMap::new(), FailureForm::Json);
        assert_eq!(answer.headers()[header::RETRY_AFTER], "5");
    }

    #[test]
    fn one_long_poll_too_many_is_answered_with_retry_after() {
        let problem = Problem::from(Error::TooManyWaiters);
        assert_eq!(problem.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(problem.code, ErrorCode::ServiceUnavailable);
        let answer = problem.write("id", &HeaderMap::new(), FailureForm::Json);
        assert_eq!(answer.headers()[header::RETRY_AFTER], "30");
    }
}
