//! Set-up of the installation: the page of the one-time link.

use crate::frame::Frame;
use crate::frame::form::{Faults, Form};
use crate::frame::show as shown;
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use control_app::{Installation, NewInstallation};
use control_auth::Password;
use control_domain::NewUser;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "set_up.html")]
struct SetUpPage {
    frame: Frame,
    form: Form,
    token: String,
}

/// Shows the form for the bearer of the link.
pub(crate) async fn show(caller: Caller) -> Response {
    let fields = Fields::filled(&[("token", caller.visit.query.get("token"))]);
    respond(&caller, Form::new(&caller.visit.csrf, fields))
}

/// Creates the first organization, its administrator and an optional project; signs the
/// administrator in.
pub(crate) async fn set_up(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, Failure> {
    let new = NewInstallation {
        org_name: fields.get("org_name").trim().to_owned(),
        project_name: fields.given("project_name").map(str::to_owned),
        admin: NewUser {
            email: fields.get("email").trim().to_owned(),
            name: fields.get("user_name").trim().to_owned(),
            password: Password::new(fields.get("password").to_owned()),
        },
        api_key_name: None,
    };
    let installed = match ui.app.set_up(&caller.call, &new).await {
        Ok(installed) => installed,
        Err(error) => {
            // A refusal of the organization's name is for the field `name`.
            let faults = Faults::from_error(error)?.renamed("name", "org_name");
            let form = Form::refused(&caller.visit.csrf, fields, faults);
            let mut response = respond(&caller, form);
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            return Ok(response);
        }
    };
    let Installation {
        org,
        project,
        user,
        session,
        api_key: _,
    } = installed;
    let path = project.map_or_else(
        || "/".to_owned(),
        |project| format!("/projects/{}", project.id),
    );
    let note = Note::good(format!(
        "{} is set up, and {} administers it. The link has ended.",
        org.name, user.name
    ));
    let mut response = note.at(&path, ui.cookie);
    for field in ui.cookie.set_all(&session) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    Ok(response)
}

fn respond(caller: &Caller, form: Form) -> Response {
    let token = form.value("token").to_owned();
    let page = SetUpPage {
        frame: Frame::bare("Set up", Some(&caller.visit)),
        form,
        token,
    };
    let mut response = shown(&page);
    // The URL contains a secret, so browsers must not send it as a referrer.
    let none = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, none);
    response
}
