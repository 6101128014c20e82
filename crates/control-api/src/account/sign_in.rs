//! Routes of sign-in by password and second factor.

use crate::account::session::SessionView;
use crate::request::extract::{Body, Caller, Visitor};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use control_app::{App, NewSession, SignedIn, StrongProof};
use control_auth::{Password, Secret};
use control_http::SessionCookie;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// An address and its password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInRequest {
    #[schema(format = "email", max_length = 254)]
    email: String,
    #[schema(format = "password")]
    password: String,
}

/// The second factor of a sign-in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodeRequest {
    /// The `sign_in` of the step before.
    #[schema(max_length = 256)]
    sign_in: String,
    /// A code of the authenticator app, or a recovery code.
    #[schema(max_length = 64)]
    code: String,
}

/// Another proof of identity: one of the two fields.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StrongRequest {
    #[serde(default)]
    #[schema(format = "password")]
    password: Option<String>,
    /// A code of the authenticator app.
    #[serde(default)]
    #[schema(max_length = 64)]
    code: Option<String>,
}

/// Result of the sign-in.
#[derive(Serialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum SignInView {
    /// A session; its secret is in the cookie.
    SignedIn { session: SessionView },
    /// `POST /sign-in/code` or `POST /sign-in/recovery` completes it.
    CodeRequired {
        /// Names this sign-in; it is not a session.
        sign_in: String,
        #[schema(value_type = String, format = DateTime)]
        ends_at: Timestamp,
    },
}

/// Signs a user in, or requires the second factor.
#[utoipa::path(
    post, path = "/sign-in", operation_id = "sign_in", tag = "sign-in",
    request_body = SignInRequest, responses((status = 200, body = SignInView))
)]
pub(crate) async fn sign_in(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Visitor(visit): Visitor,
    Body(request): Body<SignInRequest>,
) -> Result<Response, Problem> {
    let SignInRequest { email, password } = request;
    let password = Password::new(password);
    match app.sign_in(&visit, &email, password).await? {
        SignedIn::Session(new) => Ok(signed_in(cookie, &new)),
        SignedIn::NeedsCode { secret, ends_at } => {
            let view = SignInView::CodeRequired {
                sign_in: secret.reveal().to_owned(),
                ends_at,
            };
            Ok(Resource::issued(view).into_response())
        }
    }
}

/// Completes a sign-in by a code of the authenticator app.
#[utoipa::path(
    post, path = "/sign-in/code", operation_id = "sign_in_by_code", tag = "sign-in",
    request_body = CodeRequest, responses((status = 200, body = SignInView))
)]
pub(crate) async fn code(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Visitor(visit): Visitor,
    Body(CodeRequest { sign_in, code }): Body<CodeRequest>,
) -> Result<Response, Problem> {
    let pending = Secret::presented(&sign_in);
    let new = app.sign_in_code(&visit, &pending, &code).await?;
    Ok(signed_in(cookie, &new))
}

/// Completes a sign-in by a recovery code, which is used up.
#[utoipa::path(
    post, path = "/sign-in/recovery", operation_id = "sign_in_by_recovery_code", tag = "sign-in",
    request_body = CodeRequest, responses((status = 200, body = SignInView))
)]
pub(crate) async fn recovery(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Visitor(visit): Visitor,
    Body(CodeRequest { sign_in, code }): Body<CodeRequest>,
) -> Result<Response, Problem> {
    let pending = Secret::presented(&sign_in);
    let new = app.sign_in_recovery(&visit, &pending, &code).await?;
    Ok(signed_in(cookie, &new))
}

/// Verifies the user's identity again, for operations that require a recent proof. The session gets
/// a new cookie.
#[utoipa::path(
    post, path = "/users/me/strong", operation_id = "prove_again", tag = "users",
    request_body = StrongRequest, responses((status = 204))
)]
pub(crate) async fn prove_again(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Caller(call): Caller,
    Body(StrongRequest { password, code }): Body<StrongRequest>,
) -> Result<Response, Problem> {
    let proof = match (password, code) {
        (Some(password), None) => StrongProof::Password(Password::new(password)),
        (None, Some(code)) => StrongProof::Code(code),
        _ => {
            return Err(Problem::invalid(
                "password",
                "or `code` is needed, not both",
            ));
        }
    };
    let secret = app.prove_again(&call, proof).await?;
    Ok(renewed(cookie, &secret, StatusCode::NO_CONTENT))
}

/// Response that carries the session's new secret as a cookie.
pub(crate) fn renewed(cookie: SessionCookie, secret: &Secret, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    if let Ok(field) = cookie.set(secret) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    response
}

fn signed_in(cookie: SessionCookie, new: &NewSession) -> Response {
    let view = SignInView::SignedIn {
        session: SessionView::new(&new.session, true),
    };
    let mut response = Resource::issued(view).into_response();
    for field in cookie.set_all(new) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    response
}
