//! Routes of the user's own second factor.

use crate::account::sign_in::renewed;
use crate::request::extract::{Body, Caller};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use control_app::{App, SecondFactor, TotpSetup};
use control_auth::RecoveryCode;
use control_http::SessionCookie;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// The user's second factor.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecondFactorView {
    enabled: bool,
    /// Time of its confirmation.
    #[schema(value_type = Option<String>, format = DateTime)]
    enabled_at: Option<Timestamp>,
    /// Recovery codes that were not used.
    recovery_codes_left: i64,
    /// Time when an administrator removed the second factor; absent once there is a new one.
    #[schema(value_type = Option<String>, format = DateTime)]
    reset_at: Option<Timestamp>,
}

/// A secret for an authenticator app, which does not count yet.
#[derive(Serialize, ToSchema)]
pub(crate) struct TotpView {
    /// The secret in Base32.
    secret: String,
    /// The content of the QR code.
    #[schema(format = "uri")]
    uri: String,
    /// The QR code as an SVG element.
    qr_svg: String,
}

/// A code of the app that has the secret.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmRequest {
    #[schema(max_length = 64)]
    code: String,
}

/// Recovery codes, each good once, shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecoveryCodesView {
    recovery_codes: Vec<String>,
}

impl RecoveryCodesView {
    fn new(codes: &[RecoveryCode]) -> Self {
        let codes = codes.iter().map(|code| code.reveal().to_owned());
        Self {
            recovery_codes: codes.collect(),
        }
    }
}

/// The user's second factor.
#[utoipa::path(
    get, path = "/users/me/totp", operation_id = "get_second_factor", tag = "users",
    responses((status = 200, body = SecondFactorView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
) -> Result<Json<SecondFactorView>, Problem> {
    let found = app.second_factor(&call).await?;
    let reset_at = app.second_factor_reset_at(&call).await?;
    let (enabled_at, recovery_codes_left) = match found {
        Some(SecondFactor {
            confirmed_at,
            recovery_codes_left,
        }) => (Some(confirmed_at), recovery_codes_left),
        None => (None, 0),
    };
    Ok(Json(SecondFactorView {
        enabled: enabled_at.is_some(),
        enabled_at,
        recovery_codes_left,
        reset_at,
    }))
}

/// A new secret for an authenticator app. It counts once a code confirmed it.
#[utoipa::path(
    post, path = "/users/me/totp", operation_id = "start_second_factor", tag = "users",
    responses((status = 200, body = TotpView))
)]
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
) -> Result<Resource<TotpView>, Problem> {
    let TotpSetup {
        base32,
        uri,
        qr_svg,
    } = app.start_totp(&call).await?;
    Ok(Resource::issued(TotpView {
        secret: base32,
        uri,
        qr_svg,
    }))
}

/// Lets the secret count, by a code of the app that has it. The session has another cookie from then on.
#[utoipa::path(
    post, path = "/users/me/totp/confirm", operation_id = "confirm_second_factor", tag = "users",
    request_body = ConfirmRequest, responses((status = 200, body = RecoveryCodesView))
)]
pub(crate) async fn confirm(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Caller(call): Caller,
    Body(ConfirmRequest { code }): Body<ConfirmRequest>,
) -> Result<Response, Problem> {
    let confirmed = app.confirm_totp(&call, &code).await?;
    let view = RecoveryCodesView::new(&confirmed.recovery_codes);
    Ok(renewed(cookie, &confirmed.session, Resource::issued(view)))
}

/// Removes the user's second factor, with the recovery codes.
#[utoipa::path(
    delete, path = "/users/me/totp", operation_id = "delete_second_factor", tag = "users",
    responses((status = 204))
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
) -> Result<StatusCode, Problem> {
    app.remove_totp(&call).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Creates ten new recovery codes, replacing all earlier ones.
#[utoipa::path(
    post, path = "/users/me/recovery-codes", operation_id = "renew_recovery_codes", tag = "users",
    responses((status = 200, body = RecoveryCodesView))
)]
pub(crate) async fn renew_codes(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
) -> Result<Resource<RecoveryCodesView>, Problem> {
    let codes = app.renew_recovery_codes(&call).await?;
    Ok(Resource::issued(RecoveryCodesView::new(&codes)))
}
