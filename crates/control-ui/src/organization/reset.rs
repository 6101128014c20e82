//! Creation of a password reset for a member.

use crate::frame::confirmation::confirmation;
use crate::frame::form::Faults;
use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, when};
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::Error;
use control_domain::Refusal;
use control_wire::{OrgId, UserId};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "reset_made.html")]
struct CreatedPage {
    frame: Frame,
    org: OrgId,
    heading: String,
    link: String,
    ends: RelativeTime,
}

/// The confirmation page of creating a link.
pub(crate) async fn ask(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<Response, Failure> {
    let member = ui.app.member(&caller.call, org, user).await?.value;
    let frame = Frame::org(
        &ui,
        &caller,
        org,
        NavEntry::Members.titled("Reset a password"),
    )
    .await?;
    let back = format!("/orgs/{org}/members");
    Ok(confirmation(frame, Confirm {
            over: Link {
                text: "Members".to_owned(),
                path: back.clone(),
            },
            heading: format!("Let {} reset the password?", member.name),
            effects: vec![
                format!(
                    "The next page has a link to send to {} over a trusted channel: anyone with it can choose the password.",
                    member.email
                ),
                "It works once, within 24 hours; an earlier link ends. The second factor is unchanged."
                    .to_owned(),
                "Once it is used, all sessions of the member end.".to_owned(),
            ],
            action: format!("/orgs/{org}/members/{user}/reset-password"),
            back,
            csrf: caller.visit.csrf.clone(),
            button: "Create the link".to_owned(),
        }))
}

/// Creates a link, and shows it once.
pub(crate) async fn create(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<Response, Failure> {
    let member = ui.app.member(&caller.call, org, user).await?.value;
    match ui.app.create_password_reset(&caller.call, org, user).await {
        Ok((reset, secret)) => {
            let frame =
                Frame::org(&ui, &caller, org, NavEntry::Members.titled("Reset link")).await?;
            Ok(shown(&CreatedPage {
                frame,
                org,
                heading: format!("{} may reset the password.", member.name),
                link: format!(
                    "{}/password-resets/use?secret={}",
                    ui.server_url(&caller.visit),
                    secret.reveal()
                ),
                ends: when(reset.ends_at, caller.visit.now),
            }))
        }
        // The actor must control every organization of the member.
        Err(Error::Refused(refusal @ Refusal::SharedMember)) => {
            let note = Faults::from_field("", refusal.to_string()).note();
            Ok(note.at(&format!("/orgs/{org}/members"), ui.cookie))
        }
        Err(error) => {
            let note = Faults::from_error(error)?.note();
            Ok(note.at(&format!("/orgs/{org}/members"), ui.cookie))
        }
    }
}
