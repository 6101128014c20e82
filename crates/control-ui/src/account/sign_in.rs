//! Sign-in by password and second factor, and sign-out.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::{Note, redirect};
use crate::request::path::{own_or_root, with_return_path};
use crate::request::visit::{Caller, Visit};
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use control_app::{Error, NewSession, SignedIn};
use control_auth::{Password, Secret};
use form_urlencoded::byte_serialize;
use std::sync::Arc;

/// Cookie of a sign-in that waits for its second factor. It is not a session.
pub(crate) const PENDING: &str = "pending";
/// Lifetime of the cookie, equal to the pending sign-in's.
const PENDING_SECONDS: u32 = 300;

/// Message for a refused code. Each is accepted once.
pub(crate) const WRONG_CODE: &str = "the code is wrong or was used already: type the next one";

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    form: Form,
    back: String,
    /// Link to the page of single sign-on.
    sso: String,
}

#[derive(Template)]
#[template(path = "set_up_first.html")]
struct SetUpFirstPage {
    frame: Frame,
}

#[derive(Template)]
#[template(path = "sign_in_code.html")]
struct CodePage {
    frame: Frame,
    form: Form,
    back: String,
    is_recovery: bool,
    /// Link to the page for the other kind of code.
    other: String,
}

#[derive(Template)]
#[template(path = "sign_in_sso.html")]
struct SsoPage {
    frame: Frame,
    form: Form,
    back: String,
    org: String,
    /// Link to the organization's provider, if the organization is known.
    start: Option<String>,
}

#[derive(Template)]
#[template(path = "signed_out.html")]
struct SignedOutPage {
    frame: Frame,
    /// URL that ends the session at the provider.
    provider: String,
}

/// Shows the password form, or explains the set-up if there is no user yet.
pub(crate) async fn show(State(ui): State<Arc<Ui>>, visit: Visit) -> Result<Response, Failure> {
    if ui.app.awaits_set_up().await? {
        let frame = Frame::bare("Set-up", Some(&visit));
        return Ok(shown(&SetUpFirstPage { frame }));
    }
    let back = visit.query.get("return").to_owned();
    let form = Form::new(&visit.csrf, Fields::default());
    Ok(password_page(&visit, form, &back))
}

/// Verifies the password.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    visit: Visit,
    fields: Fields,
) -> Result<Response, Failure> {
    let password = Password::new(fields.get("password").to_owned());
    let email = fields.get("email").trim().to_owned();
    let back = fields.get("return").to_owned();
    match ui.app.sign_in(&visit.stranger(), &email, password).await {
        Ok(SignedIn::Session(new)) => Ok(begin(&ui, &new, &back)),
        Ok(SignedIn::NeedsCode { secret, .. }) => {
            let mut response = redirect(&with_return_path("/sign-in/code", &back));
            let field = ui
                .cookie
                .field(PENDING, secret.reveal(), Some(PENDING_SECONDS));
            if let Ok(field) = field {
                response.headers_mut().append(header::SET_COOKIE, field);
            }
            Ok(response)
        }
        Err(error) => {
            let (status, faults) = refused(error, "the address or the password is wrong")?;
            let form = Form::refused(&visit.csrf, fields, faults);
            let mut response = password_page(&visit, form, &back);
            *response.status_mut() = status;
            Ok(response)
        }
    }
}

/// Shows the form for a code of the authenticator app.
pub(crate) async fn show_code(visit: Visit) -> Result<Response, Failure> {
    pending(&visit)?;
    let form = Form::new(&visit.csrf, Fields::default());
    Ok(code_page(&visit, form, false))
}

/// Shows the form for a recovery code.
pub(crate) async fn show_recovery(visit: Visit) -> Result<Response, Failure> {
    pending(&visit)?;
    let form = Form::new(&visit.csrf, Fields::default());
    Ok(code_page(&visit, form, true))
}

/// Page with a link to an organization's identity provider. A link and not a form, because browsers
/// apply this server's `form-action` policy to the redirect of a form.
pub(crate) async fn show_sso(visit: Visit) -> Response {
    let back = visit.query.get("return").to_owned();
    let org = visit.query.given("org").unwrap_or_default().to_owned();
    let start = (!org.is_empty()).then(|| {
        // In a path, a space is `%20` and not `+` as in a form.
        let encoded: String = byte_serialize(org.as_bytes()).collect();
        with_return_path(
            &format!("/sso/{}", encoded.replace('+', "%20")),
            own_or_root(&back),
        )
    });
    shown(&SsoPage {
        frame: Frame::bare("Single sign-on", Some(&visit)),
        form: Form::new(&visit.csrf, Fields::filled(&[("org", &org)])),
        back,
        org,
        start,
    })
}

/// Verifies a code of the authenticator app.
pub(crate) async fn send_code(
    State(ui): State<Arc<Ui>>,
    visit: Visit,
    fields: Fields,
) -> Result<Response, Failure> {
    let pending = pending(&visit)?;
    let (person, code) = (visit.stranger(), fields.get("code").trim().to_owned());
    let signed_in = ui.app.sign_in_code(&person, &pending, &code).await;
    finish(&ui, &visit, fields, signed_in, false)
}

/// Verifies a recovery code.
pub(crate) async fn send_recovery(
    State(ui): State<Arc<Ui>>,
    visit: Visit,
    fields: Fields,
) -> Result<Response, Failure> {
    let pending = pending(&visit)?;
    let (person, code) = (visit.stranger(), fields.get("code").trim().to_owned());
    let signed_in = ui.app.sign_in_recovery(&person, &pending, &code).await;
    finish(&ui, &visit, fields, signed_in, true)
}

/// Secret of the pending sign-in; without one the sign-in restarts.
fn pending(visit: &Visit) -> Result<Secret, Failure> {
    let pending = visit.pending.clone();
    pending.ok_or_else(|| Failure::See("/sign-in".to_owned()))
}

fn finish(
    ui: &Ui,
    visit: &Visit,
    fields: Fields,
    signed_in: Result<NewSession, Error>,
    is_recovery: bool,
) -> Result<Response, Failure> {
    let back = fields.get("return").to_owned();
    let mut response = match signed_in {
        Ok(new) => begin(ui, &new, &back),
        Err(Error::Unauthenticated) => {
            let note = Note::bad("That sign-in took too long: start again.");
            note.at(&with_return_path("/sign-in", &back), ui.cookie)
        }
        Err(error) => {
            let (status, faults) = refused(error, WRONG_CODE)?;
            let form = Form::refused(&visit.csrf, fields, faults);
            let mut response = code_page(visit, form, is_recovery);
            *response.status_mut() = status;
            return Ok(response);
        }
    };
    if let Ok(field) = ui.cookie.field(PENDING, "", Some(0)) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    Ok(response)
}

/// Sets the session cookie, and redirects to the requested page.
fn begin(ui: &Ui, new: &NewSession, back: &str) -> Response {
    let mut response = match new.notice() {
        Some(notice) => Note::bad(notice).at(own_or_root(back), ui.cookie),
        None => redirect(own_or_root(back)),
    };
    for field in ui.cookie.set_all(new) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    response
}

/// Status and message for a wrong proof of identity; `wrong` does not reveal which of its parts is
/// wrong.
pub(crate) fn refused(error: Error, wrong: &'static str) -> Result<(StatusCode, Faults), Failure> {
    if let Error::TooManyAttempts { retry_after_secs } = error {
        let reason = format!("too many tries: wait {retry_after_secs} seconds");
        return Ok((
            StatusCode::TOO_MANY_REQUESTS,
            Faults::from_field("", reason),
        ));
    }
    if matches!(error, Error::WrongSignIn) {
        let faults = Faults::from_field("", wrong);
        return Ok((StatusCode::UNAUTHORIZED, faults));
    }
    Ok((StatusCode::UNPROCESSABLE_ENTITY, Faults::from_error(error)?))
}

fn password_page(visit: &Visit, form: Form, back: &str) -> Response {
    shown(&SignInPage {
        frame: Frame::bare("Sign in", Some(visit)),
        form,
        back: back.to_owned(),
        sso: with_return_path("/sign-in/sso", back),
    })
}

fn code_page(visit: &Visit, form: Form, is_recovery: bool) -> Response {
    let sent = form.value("return");
    let back = if sent.is_empty() {
        visit.query.get("return")
    } else {
        sent
    };
    let other = if is_recovery {
        "/sign-in/code"
    } else {
        "/sign-in/recovery"
    };
    shown(&CodePage {
        frame: Frame::bare("Sign in", Some(visit)),
        back: back.to_owned(),
        other: with_return_path(other, back),
        form,
        is_recovery,
    })
}

/// Ends the session, and continues at its provider to end the session there as well.
pub(crate) async fn sign_out(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
) -> Result<Response, Failure> {
    ui.app.sign_out(&caller.call).await?;
    let mut response = Note::good("You are signed out.").at("/sign-in", ui.cookie);
    if let Some(provider) = ui.app.provider_logout(&caller.call).await? {
        let noted = response.headers_mut().remove(header::SET_COOKIE);
        response = leave(&caller, provider);
        response
            .headers_mut()
            .extend(noted.map(|field| (header::SET_COOKIE, field)));
    }
    if let Ok(field) = ui.cookie.clear() {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    Ok(response)
}

/// Page that redirects to the provider by itself: browsers apply this server's `form-action` policy
/// to the redirect of a form.
fn leave(caller: &Caller, provider: String) -> Response {
    let refresh = HeaderValue::try_from(format!("0; url={provider}"));
    let mut response = shown(&SignedOutPage {
        frame: Frame::bare("Signed out", Some(&caller.visit)),
        provider,
    });
    if let Ok(refresh) = refresh {
        response.headers_mut().insert(header::REFRESH, refresh);
    }
    response
}
