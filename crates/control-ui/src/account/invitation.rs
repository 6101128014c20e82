//! The page of an invitation's link: a person becomes a user and a member.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use control_app::NewAccount;
use control_auth::Password;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    frame: Frame,
    form: Form,
    token: String,
}

/// The form, for the bearer of the link.
pub(crate) async fn show(caller: Caller) -> Response {
    let fields = Fields::filled(&[("token", caller.visit.query.get("token"))]);
    respond(&caller, Form::new(&caller.visit.csrf, fields))
}

/// Creates the account, and signs it in.
pub(crate) async fn accept(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, Failure> {
    let account = NewAccount {
        email: fields.given("email").map(str::to_owned),
        name: fields.get("user_name").trim().to_owned(),
        password: Password::new(fields.get("password").to_owned()),
    };
    match ui.app.accept_invitation(&caller.call, account).await {
        Ok(joined) => {
            let mut response = Note::good("You are a member now.").at("/", ui.cookie);
            for field in ui.cookie.set_all(&joined.session) {
                response.headers_mut().append(header::SET_COOKIE, field);
            }
            Ok(response)
        }
        Err(error) => {
            let faults = Faults::from_error(error)?;
            let mut response = respond(&caller, Form::refused(&caller.visit.csrf, fields, faults));
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(response)
        }
    }
}

fn respond(caller: &Caller, form: Form) -> Response {
    let token = form.value("token").to_owned();
    let page = InvitationPage {
        frame: Frame::bare("Invitation", Some(&caller.visit)),
        form,
        token,
    };
    let mut response = shown(&page);
    // The address has a secret.
    let none = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, none);
    response
}
