//! Page of a password reset's link.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::visit::Visit;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use control_app::Error;
use control_auth::{Password, Secret};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "password_reset.html")]
struct ResetPage {
    frame: Frame,
    form: Form,
    secret: String,
}

/// Shows the form. The link's secret is checked when the form is sent.
pub(crate) async fn show(visit: Visit) -> Response {
    let fields = Fields::filled(&[("secret", visit.query.get("secret"))]);
    respond(&visit, Form::new(&visit.csrf, fields))
}

/// Sets the password and ends all sessions of the user.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    visit: Visit,
    fields: Fields,
) -> Result<Response, Failure> {
    let secret = Secret::presented(fields.get("secret"));
    let password = Password::new(fields.get("password").to_owned());
    let used = ui
        .app
        .use_password_reset(&visit.stranger(), &secret, &password)
        .await;
    match used {
        Ok(browser) => {
            let note =
                Note::good("The password is changed, and all sessions ended. Sign in with it.");
            let mut response = note.at("/sign-in", ui.cookie);
            if let Ok(field) = ui.cookie.set_browser(&browser) {
                response.headers_mut().append(header::SET_COOKIE, field);
            }
            Ok(response)
        }
        Err(Error::Unauthenticated) => Err(Failure::link_ended()),
        Err(error) => {
            let form = Form::refused(&visit.csrf, fields, Faults::from_error(error)?);
            let mut response = respond(&visit, form);
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(response)
        }
    }
}

fn respond(visit: &Visit, form: Form) -> Response {
    let secret = form.value("secret").to_owned();
    let mut response = shown(&ResetPage {
        frame: Frame::bare("New password", Some(visit)),
        form,
        secret,
    });
    // The URL contains a secret, so browsers must not send it as a referrer.
    let none = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, none);
    response
}
