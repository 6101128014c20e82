//! The user's profile: sessions, second factor, password, linked identities.

use crate::account::identities::{self, Identities};
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, when};
use crate::view::phrase::{count, pick};
use askama::Template;
use axum::extract::State;
use axum::http::header;
use axum::response::Response;
use control_app::{Identity, Page, SessionInfo};
use control_auth::{Password, Secret};
use control_domain::{Refusal, SignInMethod};
use control_wire::SessionId;
use jiff::Timestamp;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "profile.html")]
struct ProfilePage {
    frame: Frame,
    heading: String,
    email: String,
    sessions: Vec<Row>,
    second_factor: Option<(RelativeTime, String)>,
    /// Time when an administrator removed the second factor; `None` once there is another.
    was_reset: Option<RelativeTime>,
    has_password: bool,
    identities: Identities,
    name: Form,
    password: Form,
}

/// Maximum number of sessions on the page.
const SHOWN: i64 = 100;

/// The forms of the page; a refused form is shown again with its faults.
#[derive(Default)]
struct Forms {
    name: Option<Form>,
    password: Option<Form>,
}

struct Row {
    id: SessionId,
    browser: String,
    address: String,
    method: &'static str,
    seen: RelativeTime,
    begun: RelativeTime,
    is_own: bool,
}

/// Shows the user's profile.
pub(crate) async fn show(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    respond(&ui, &caller, Forms::default()).await
}

async fn respond(ui: &Ui, caller: &Caller, forms: Forms) -> Result<Response, Failure> {
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let Identity::User { user, .. } = app.identity(call).await? else {
        return Err(Refusal::WrongCredential.into());
    };
    let form = |fields| Form::new(&caller.visit.csrf, fields);
    let name = || form(Fields::filled(&[("user_name", user.name.as_str())]));
    let password = || form(Fields::default());
    let found = app.sessions(call, Page::newest(None, SHOWN)).await?;
    let sessions: Vec<Row> = found.into_iter().map(|found| row(found, now)).collect();
    let factor = app.second_factor(call).await?;
    let was_reset = app.second_factor_reset_at(call).await?;
    Ok(shown(&ProfilePage {
        frame: Frame::personal(ui, caller, NavEntry::Profile.titled("Profile")).await?,
        heading: heading(sessions.len(), factor.is_some()),
        was_reset: was_reset.map(|at| when(at, now)),
        has_password: user.password.is_some(),
        identities: identities::find(ui, caller).await?,
        email: user.email.to_string(),
        name: forms.name.unwrap_or_else(name),
        password: forms.password.unwrap_or_else(password),
        sessions,
        second_factor: factor.map(|factor| {
            let left = factor.recovery_codes_left;
            let words = format!(
                "{} {} left",
                count(left, "recovery code"),
                pick(left, "is", "are")
            );
            (when(factor.confirmed_at, now), words)
        }),
    }))
}

fn row(found: SessionInfo, now: Timestamp) -> Row {
    let session = found.session;
    let address = session.origin.address.map(|address| address.to_string());
    Row {
        id: session.id,
        browser: match session.origin.browser.as_str() {
            "" => "Unknown browser".to_owned(),
            browser => browser.to_owned(),
        },
        address: address.unwrap_or_default(),
        method: method(session.origin.method),
        seen: when(session.seen_at, now),
        begun: when(session.created_at, now),
        is_own: found.is_own,
    }
}

fn heading(sessions: usize, has_factor: bool) -> String {
    let sessions = i64::try_from(sessions).unwrap_or(i64::MAX);
    let factor = if has_factor {
        "with a second factor"
    } else {
        "without a second factor"
    };
    format!(
        "{} {} signed in as you; you sign in {factor}.",
        count(sessions, "browser"),
        pick(sessions, "is", "are")
    )
}

fn method(method: SignInMethod) -> &'static str {
    match method {
        SignInMethod::Password => "Password",
        SignInMethod::PasswordTotp => "Password and code",
        SignInMethod::PasswordRecovery => "Password and recovery code",
        SignInMethod::OidcTotp | SignInMethod::SamlTotp => "Single sign-on and code",
        SignInMethod::Oidc | SignInMethod::Saml => "Single sign-on",
    }
}

pub(crate) async fn end_session(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<SessionId>,
) -> Result<Response, Failure> {
    let note = match ui.app.revoke_session(&caller.call, id).await {
        Ok(()) => Note::good("That browser is signed out."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at("/profile", ui.cookie))
}

/// Ends all other sessions of the user.
pub(crate) async fn end_others(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
) -> Result<Response, Failure> {
    let ended = ui.app.revoke_other_sessions(&caller.call).await?;
    let ended = i64::try_from(ended).unwrap_or(i64::MAX);
    let note = Note::good(format!(
        "{} {} signed out.",
        count(ended, "other browser"),
        pick(ended, "is", "are")
    ));
    Ok(note.at("/profile", ui.cookie))
}

/// Changes the password and ends all other sessions.
pub(crate) async fn change_password(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, Failure> {
    let password = Password::new(fields.get("password").to_owned());
    match ui.app.change_password(&caller.call, password).await {
        Ok(secret) => {
            let note = "The password is changed, and all other browsers are signed out.";
            Ok(with_session(
                &ui,
                &secret,
                Note::good(note).at("/profile", ui.cookie),
            ))
        }
        Err(error) => {
            let form = Form::refused(&caller.visit.csrf, fields, Faults::from_error(error)?);
            let forms = Forms {
                password: Some(form),
                ..Forms::default()
            };
            refuse(&ui, &caller, forms).await
        }
    }
}

/// Renames the user.
pub(crate) async fn rename(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, Failure> {
    let name = fields.get("user_name").trim();
    match ui.app.rename_user(&caller.call, name).await {
        Ok(()) => Ok(Note::good("Your name is changed.").at("/profile", ui.cookie)),
        Err(error) => {
            let faults = Faults::from_error(error)?.renamed("name", "user_name");
            let form = Form::refused(&caller.visit.csrf, fields, faults);
            let forms = Forms {
                name: Some(form),
                ..Forms::default()
            };
            refuse(&ui, &caller, forms).await
        }
    }
}

async fn refuse(ui: &Ui, caller: &Caller, forms: Forms) -> Result<Response, Failure> {
    respond(ui, caller, forms).await.map(unprocessable)
}

/// Adds the session's new secret to the response as a cookie.
pub(crate) fn with_session(ui: &Ui, secret: &Secret, mut response: Response) -> Response {
    if let Ok(field) = ui.cookie.set(secret) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_says_how_many_browsers_and_which_proof() {
        assert_eq!(
            heading(1, false),
            "1 browser is signed in as you; you sign in without a second factor."
        );
        assert_eq!(
            heading(3, true),
            "3 browsers are signed in as you; you sign in with a second factor."
        );
    }
}
