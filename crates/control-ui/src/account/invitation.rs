//! Pages of an invitation's link: a person becomes a user and a member, or a user joins a further
//! organization.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use control_app::{Error, Identity, NewAccount, OwnInvitation};
use control_auth::{Password, Secret};
use control_domain::Refusal;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    frame: Frame,
    form: Form,
    token: String,
    org: String,
    role: &'static str,
    email: String,
}

#[derive(Template)]
#[template(path = "invitation_join.html")]
struct JoinPage {
    frame: Frame,
    form: Form,
    /// Address of the user that joins.
    email: String,
}

/// Shows the form for the bearer of the link.
pub(crate) async fn show(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let own = ui.app.own_invitation(&caller.call).await?;
    let fields = Fields::filled(&[
        ("token", caller.visit.query.get("token")),
        ("email", own.invitation.email.as_str()),
    ]);
    Ok(respond(&caller, own, Form::new(&caller.visit.csrf, fields)))
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
            let own = ui.app.own_invitation(&caller.call).await?;
            let form = Form::refused(&caller.visit.csrf, fields, faults);
            let mut response = respond(&caller, own, form);
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(response)
        }
    }
}

/// Asks a signed-in user for confirmation. The link's secret is checked when the form is sent.
pub(crate) async fn ask_join(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
) -> Result<Response, Failure> {
    let fields = Fields::filled(&[("secret", caller.visit.query.get("secret"))]);
    let form = Form::new(&caller.visit.csrf, fields);
    ask(&ui, &caller, form).await
}

/// Makes the signed-in user a member of the organization that invited.
pub(crate) async fn join(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, Failure> {
    let secret = Secret::presented(fields.get("secret").trim());
    match ui.app.join_organization(&caller.call, &secret).await {
        Ok(_) => Ok(Note::good("You are a member now.").at("/", ui.cookie)),
        Err(error) => {
            let faults = if matches!(error, Error::Refused(Refusal::Taken(_))) {
                Faults::from_field("", "you are a member of this organization already")
            } else {
                Faults::from_error(error)?
            };
            let form = Form::refused(&caller.visit.csrf, fields, faults);
            ask(&ui, &caller, form).await.map(unprocessable)
        }
    }
}

async fn ask(ui: &Ui, caller: &Caller, form: Form) -> Result<Response, Failure> {
    let email = match ui.app.identity(&caller.call).await? {
        Identity::User { user, .. } => user.email.to_string(),
        Identity::ApiKey { .. } => String::new(),
    };
    Ok(shown(&JoinPage {
        frame: Frame::personal(ui, caller, NavEntry::Profile.titled("Invitation")).await?,
        form,
        email,
    }))
}

fn respond(caller: &Caller, own: OwnInvitation, form: Form) -> Response {
    let OwnInvitation {
        invitation,
        org_name,
    } = own;
    let token = form.value("token").to_owned();
    let page = InvitationPage {
        frame: Frame::bare("Invitation", Some(&caller.visit)),
        form,
        token,
        org: org_name,
        role: invitation.role.name(),
        email: invitation.email.to_string(),
    };
    let mut response = shown(&page);
    // The URL contains a secret, so browsers must not send it as a referrer.
    let none = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, none);
    response
}
