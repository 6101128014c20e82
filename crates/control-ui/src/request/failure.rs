//! Failures of requests, with texts for users.

use crate::view::phrase::sentence;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control_app::StoreError::{Conflict, Reference, Stale, Unavailable, Unwritable};
use control_app::{Error, ObjectError};
use control_domain::{Refusal, Role};

/// `Retry-After` for a busy replica or an unavailable database, in seconds.
const BUSY_RETRY_SECS: u64 = 30;
const UNAVAILABLE_RETRY_SECS: u64 = 5;
/// Maximum number of characters of an unknown field's name in a message.
const MAX_FIELD_CHARS: usize = 60;

/// A failure that becomes a response.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Redirect to another page.
    See(String),
    /// Redirect to the sign-in, and from there back.
    SignIn,
    /// Redirect to the page at this path, which asks for a proof of identity, and from there back.
    Proof(&'static str),
    /// A failure page.
    Text(Box<FailureText>),
}

/// Texts of a failure page.
#[derive(Clone, Debug)]
pub(crate) struct FailureText {
    pub(crate) status: StatusCode,
    /// Heading of the page, one sentence.
    pub(crate) sentence: String,
    /// Advice on what to do next.
    pub(crate) advice: String,
    pub(crate) retry_after: Option<u64>,
    /// Cause, for the log only.
    pub(crate) cause: Option<String>,
}

impl FailureText {
    /// 401 for a form of a session that ended while the page was open.
    pub(crate) fn ended() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            sentence: "Your session has ended.".to_owned(),
            advice: "Nothing was changed. Sign in in another tab, come back to this one, and send the form again."
                .to_owned(),
            retry_after: None,
            cause: None,
        }
    }
}

/// Start of a field's name, as the client sent it.
fn quoted(name: &str) -> String {
    let short: String = name.chars().take(MAX_FIELD_CHARS).collect();
    format!("{short:?}")
}

impl Failure {
    fn with_text(status: StatusCode, sentence: &str, advice: &str) -> Self {
        Self::Text(Box::new(FailureText {
            status,
            sentence: sentence.to_owned(),
            advice: advice.to_owned(),
            retry_after: None,
            cause: None,
        }))
    }

    /// 404, also for objects of other tenants.
    pub(crate) fn not_found() -> Self {
        Self::with_text(
            StatusCode::NOT_FOUND,
            "No page has this address.",
            "It may have been deleted, or belong to an organization that you are not a member of.",
        )
    }

    /// 400 for a value that no database can hold.
    pub(crate) fn nul() -> Self {
        Self::with_text(
            StatusCode::BAD_REQUEST,
            "A value has the character NUL.",
            "Nothing was changed. Remove the character, and send the request again.",
        )
    }

    /// 405, for example for a form's URL that is opened as a page.
    pub(crate) fn no_method() -> Self {
        Self::with_text(
            StatusCode::METHOD_NOT_ALLOWED,
            "This address is not a page.",
            "Nothing was changed. Forms are sent to it: open the page of the form, and send it from there.",
        )
    }

    /// 401 for the script of a live page.
    pub(crate) fn unauthenticated() -> Self {
        Self::with_text(
            StatusCode::UNAUTHORIZED,
            "You are no longer signed in.",
            "Sign in again to go on.",
        )
    }

    /// 401 for an invalid secret in a link.
    pub(crate) fn link_ended() -> Self {
        Self::with_text(
            StatusCode::UNAUTHORIZED,
            "This link has ended.",
            "A link works once and for a limited time. Ask for a new one; a set-up link is printed when controld \
             starts, as long as the installation has no user.",
        )
    }

    /// 403 for a form from another site.
    pub(crate) fn other_site() -> Self {
        Self::with_text(
            StatusCode::FORBIDDEN,
            "Another site sent this form.",
            "Nothing was changed. Open the page here, and send its own form.",
        )
    }

    /// 403 for a form of an ended session.
    pub(crate) fn stale_form() -> Self {
        Self::with_text(
            StatusCode::FORBIDDEN,
            "This form belongs to an earlier sign-in.",
            "Nothing was changed, as you have signed in again since.",
        )
    }

    /// 415 for a body that no form of this site sends.
    pub(crate) fn no_form() -> Self {
        Self::with_text(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The server cannot read this form.",
            "Nothing was changed. Load the page again, and send its form once more.",
        )
    }

    /// 422 for a field that the page's form does not have.
    pub(crate) fn unknown_field(name: &str) -> Self {
        Self::wrong_field(&format!("The form has the unknown field {}.", quoted(name)))
    }

    /// 422 for a duplicate field.
    pub(crate) fn repeated_field(name: &str) -> Self {
        Self::wrong_field(&format!("The form has the field {} twice.", quoted(name)))
    }

    fn wrong_field(sentence: &str) -> Self {
        let advice = "Nothing was changed. Load the page again, and send its form once more.";
        Self::with_text(StatusCode::UNPROCESSABLE_ENTITY, sentence, advice)
    }

    /// 413 for a form of more than `limit` bytes.
    pub(crate) fn too_large(limit: usize) -> Self {
        let sentence = format!("The form is larger than {} KiB.", limit / 1024);
        let advice = "Nothing was changed. Larger configurations are sent by controld ctl.";
        Self::with_text(StatusCode::PAYLOAD_TOO_LARGE, &sentence, advice)
    }

    /// 408 for a form that does not arrive in time.
    pub(crate) fn too_slow() -> Self {
        Self::with_text(
            StatusCode::REQUEST_TIMEOUT,
            "The form did not arrive in time.",
            "Nothing was changed. Send it once more.",
        )
    }

    /// 429 with the number of seconds to wait.
    pub(crate) fn rate_limited(retry_after: u64) -> Self {
        Self::retried(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many requests from your address.",
            retry_after,
        )
    }

    fn retried(status: StatusCode, sentence: &str, seconds: u64) -> Self {
        let advice = format!("Wait {seconds} seconds, and load the page again.");
        let Self::Text(with_text) = Self::with_text(status, sentence, &advice) else {
            return Self::not_found();
        };
        Self::Text(Box::new(FailureText {
            retry_after: Some(seconds),
            ..*with_text
        }))
    }

    fn forbidden(refusal: &Refusal) -> Self {
        let sentence = if let Refusal::LowerRole(role) = refusal {
            format!("Only {} see this page.", plural(*role))
        } else {
            "Your account has no permission for this.".to_owned()
        };
        let advice = "An administrator of the organization can change your role.";
        Self::with_text(StatusCode::FORBIDDEN, &sentence, advice)
    }

    fn internal(error: &Error) -> Self {
        let is_unavailable = matches!(
            error,
            Error::Store(Unavailable(_) | Unwritable)
                | Error::Object(ObjectError::Failed(_))
                | Error::Stopped
        );
        let failure = if is_unavailable {
            let sentence = "The database or the object store does not answer.";
            Self::retried(
                StatusCode::SERVICE_UNAVAILABLE,
                sentence,
                UNAVAILABLE_RETRY_SECS,
            )
        } else {
            Self::with_text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The server failed.",
                "Its log has the cause, under this request’s ID.",
            )
        };
        match failure {
            Self::Text(with_text) => Self::Text(Box::new(FailureText {
                cause: Some(format!("{error:?}")),
                ..*with_text
            })),
            kept @ (Self::See(_) | Self::SignIn | Self::Proof(_)) => kept,
        }
    }
}

/// Plural of the role's name.
pub(crate) fn plural(role: Role) -> &'static str {
    match role {
        Role::Reader => "members",
        Role::Operator => "operators",
        Role::Admin => "administrators",
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::not_found(),
            Refusal::Ended => Self::unauthenticated(),
            Refusal::NotFresh => Self::Proof("/profile/prove"),
            Refusal::NoSecondFactor => Self::Proof("/profile/totp"),
            Refusal::MissingScope(_)
            | Refusal::LimitedToProject
            | Refusal::LowerRole(_)
            | Refusal::MakerRole(_)
            | Refusal::WrongCredential
            | Refusal::OwnApproval
            | Refusal::DependentPerson
            | Refusal::UnknownPerson
            | Refusal::SharedMember
            | Refusal::MoreThanOwn(_) => Self::forbidden(&refusal),
            Refusal::WrongState { .. }
            | Refusal::NoSigningKey
            | Refusal::Held
            | Refusal::NeedsApproval
            | Refusal::CertificateExchange
            | Refusal::UnknownWarnings
            | Refusal::Warnings(_)
            | Refusal::Frozen { .. }
            | Refusal::InUse(_)
            | Refusal::Taken(_)
            | Refusal::LastAdmin
            | Refusal::NoPassword
            | Refusal::Quota { .. }
            | Refusal::Invalid { .. }
            | Refusal::InvalidFields(_) => Self::with_text(
                StatusCode::CONFLICT,
                "This cannot be done now.",
                &sentence(&refusal.to_string()),
            ),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unauthenticated => Self::unauthenticated(),
            Error::Refused(refusal) => refusal.into(),
            Error::Precondition | Error::Store(Stale | Conflict | Reference) => Self::with_text(
                StatusCode::CONFLICT,
                "Another request changed this at the same time.",
                "Load the page again to see it as it is now.",
            ),
            Error::WrongSignIn
            | Error::SsoRefused
            | Error::SsoNotAuthenticated
            | Error::SsoEmailTaken
            | Error::SsoOtherSession => Self::with_text(
                StatusCode::FORBIDDEN,
                "You are not signed in.",
                &sentence(&error.to_string()),
            ),
            Error::TooManyAttempts { retry_after_secs }
            | Error::TooManyReportBytes {
                retry_after_secs, ..
            } => Self::retried(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many tries.",
                retry_after_secs,
            ),
            Error::TooManySignIns
            | Error::TooManyWaiters
            | Error::TooManyBodies
            | Error::TooManyUploads => Self::retried(
                StatusCode::SERVICE_UNAVAILABLE,
                "The server is busy.",
                BUSY_RETRY_SECS,
            ),
            Error::Files(_) | Error::Definition { .. } | Error::Certificate(_) => Self::with_text(
                StatusCode::UNPROCESSABLE_ENTITY,
                "This cannot be used.",
                &sentence(&error.to_string()),
            ),
            Error::Store(_)
            | Error::Auth(_)
            | Error::Seal(_)
            | Error::Archive(_)
            | Error::Object(_)
            | Error::Stopped => Self::internal(&error),
        }
    }
}

/// Response without a page: admission adds the page, which depends on the actor.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
