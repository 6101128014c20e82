//! List of an organization's members and invitations.

use crate::frame::confirmation::confirmation;
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, Tone, when};
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use crate::view::listing;
use crate::view::phrase::{count, few, pick, sentence};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{ListFilter, PageOrder};
use control_domain::{Access, Role, Tenant};
use control_wire::{InvitationId, OrgId, ProjectId, UserId};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Maximum number of members, of project roles and of invitations shown.
const PAGE_ROWS: usize = 200;

#[derive(Template)]
#[template(path = "members.html")]
struct MembersPage {
    frame: Frame,
    org: OrgId,
    csrf: String,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    project_roles: Vec<RoleInProject>,
    has_more_roles: bool,
    invited: Vec<Invited>,
    removed: Vec<Removed>,
    roles: Vec<(String, String)>,
    role_words: Vec<(&'static str, &'static str)>,
    form: Form,
}

#[derive(Template)]
#[template(path = "invitation_made.html")]
struct InvitedPage {
    frame: Frame,
    org: OrgId,
    heading: String,
    link: String,
    ends: RelativeTime,
}

struct Row {
    id: UserId,
    name: String,
    email: String,
    role: Role,
    second_factor: Status,
    last_sign_in: Option<RelativeTime>,
    joined: RelativeTime,
    is_own: bool,
}

/// A role in a single project.
struct RoleInProject {
    user: UserId,
    user_name: String,
    project: ProjectId,
    project_name: String,
    role: Role,
    since: RelativeTime,
}

struct Invited {
    id: InvitationId,
    email: String,
    role: Role,
    ends: RelativeTime,
}

struct Removed {
    id: UserId,
    name: String,
    email: String,
    since: RelativeTime,
}

/// Shows the members, and the form for an invitation.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let form = Form::new(&caller.visit.csrf, Fields::filled(&[("role", "reader")]));
    respond(&ui, &caller, org, form).await
}

async fn respond(ui: &Ui, caller: &Caller, org: OrgId, form: Form) -> Result<Response, Failure> {
    let frame = Frame::org(ui, caller, org, NavEntry::Members.titled("Members")).await?;
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let after = caller.visit.query.get("after");
    let page = listing::page(after, PageOrder::Oldest, PAGE_ROWS);
    let own = call.actor.user();
    let mut found = app.members(call, org, &ListFilter::default(), page).await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |found| found.value.membership.user.0);
    let page = listing::page("", PageOrder::Newest, PAGE_ROWS);
    let rows = found.into_iter().map(|found| {
        let member = found.value;
        Row {
            id: member.membership.user,
            name: member.name.to_string(),
            email: member.email.to_string(),
            role: member.membership.role,
            second_factor: second_factor(member.second_factor),
            last_sign_in: member.last_sign_in_at.map(|at| when(at, now)),
            joined: when(member.membership.created_at, now),
            is_own: own == Some(member.membership.user),
        }
    });
    let rows: Vec<Row> = rows.collect();
    let (project_roles, has_more_roles) = project_roles(ui, caller, org).await?;
    let invited = app
        .invitations(call, org, &ListFilter::default(), page)
        .await?
        .into_iter();
    let invited = invited.map(|invitation| Invited {
        id: invitation.id,
        email: invitation.email.to_string(),
        role: invitation.role,
        ends: when(invitation.expires_at, now),
    });
    let removed = app
        .removed_members(call, org, &ListFilter::default(), page)
        .await?
        .into_iter();
    let removed = removed.map(|removed| Removed {
        id: removed.user,
        name: removed.name.to_string(),
        email: removed.email.to_string(),
        since: when(removed.removed_at, now),
    });
    Ok(shown(&MembersPage {
        frame,
        org,
        csrf: caller.visit.csrf.clone(),
        heading: heading(&rows, last.is_some() || !after.is_empty()),
        rows,
        more: listing::next(last, "Show further members"),
        project_roles,
        has_more_roles,
        invited: invited.collect(),
        removed: removed.collect(),
        roles: roles(),
        role_words: Role::ALL.iter().copied().map(role_words).collect(),
        form,
    }))
}

/// Names of the newest members by identifier; empty if the caller may not read them.
pub(super) async fn member_names(
    ui: &Ui,
    caller: &Caller,
    org: OrgId,
) -> Result<BTreeMap<Uuid, String>, Failure> {
    if !caller.may(Access::ADMINISTER, Tenant::org(org)) {
        return Ok(BTreeMap::new());
    }
    let page = listing::page("", PageOrder::Newest, PAGE_ROWS);
    let filter = ListFilter::default();
    let members = ui.app.members(&caller.call, org, &filter, page);
    let members = members.await?.into_iter().map(|member| member.value);
    Ok(members
        .map(|member| (member.membership.user.0, member.name.to_string()))
        .collect())
}

/// Roles in single projects, and whether there are more.
async fn project_roles(
    ui: &Ui,
    caller: &Caller,
    org: OrgId,
) -> Result<(Vec<RoleInProject>, bool), Failure> {
    let limit = i64::try_from(PAGE_ROWS)
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    let found = ui.app.project_roles_of_org(&caller.call, org, limit);
    let mut found = found.await?;
    let has_more = PAGE_ROWS < found.len();
    found.truncate(PAGE_ROWS);
    let rows = found.into_iter().map(|found| RoleInProject {
        user: found.given.user,
        user_name: found.user_name.to_string(),
        project: found.given.project,
        project_name: found.project_name.to_string(),
        role: found.given.role,
        since: when(found.given.created_at, caller.visit.now),
    });
    Ok((rows.collect(), has_more))
}

fn second_factor(is_set_up: bool) -> Status {
    if is_set_up {
        Status::new(Tone::Ok, "ok", "Set up")
    } else {
        Status::new(Tone::Off, "off", "None")
    }
}

/// Name of a role, and its permissions in words.
fn role_words(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::Reader => (
            "Reader",
            "sees nodes, bundles, rollouts, services and certificates, and changes none of them",
        ),
        Role::Operator => (
            "Operator",
            "changes them as well, starts and stops rollouts, and creates projects",
        ),
        Role::Admin => (
            "Administrator",
            "also manages members, keys, single sign-on and policies, and reads the audit log",
        ),
    }
}

/// Options of the role field.
fn roles() -> Vec<(String, String)> {
    let choice = |role: Role| (role.name().to_owned(), role_words(role).0.to_owned());
    Role::ALL.iter().copied().map(choice).collect()
}

/// Heading; `is_part` says whether there are more members.
fn heading(rows: &[Row], is_part: bool) -> String {
    let number = |role: Option<Role>| {
        let found = rows
            .iter()
            .filter(|row| role.is_none_or(|role| row.role == role));
        i64::try_from(found.count()).unwrap_or(i64::MAX)
    };
    let (all, admins) = (number(None), number(Some(Role::Admin)));
    if all == 1 && !is_part {
        return "You are the only member.".to_owned();
    }
    let shown = if is_part { " on this page" } else { "" };
    sentence(&format!(
        "{}{shown}, {} of them {} it",
        count(all, "member"),
        few(admins),
        pick(admins, "administers", "administer")
    ))
}

/// Invites a person, and shows the link this once.
pub(crate) async fn invite(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let role = Role::from_name(fields.get("role"));
    let faults = match role {
        None => Faults::from_field("role", "is not one of the choices"),
        Some(role) => {
            let email = fields.get("email").trim().to_owned();
            match ui
                .app
                .create_invitation(&caller.call, org, &email, role)
                .await
            {
                Ok((invitation, secret)) => {
                    let frame =
                        Frame::org(&ui, &caller, org, NavEntry::Members.titled("Invitation"));
                    return Ok(shown(&InvitedPage {
                        frame: frame.await?,
                        org,
                        heading: format!("{} is invited.", invitation.email),
                        link: format!(
                            "{}/invitations/accept?token={}",
                            ui.server_url(&caller.visit),
                            secret.reveal()
                        ),
                        ends: when(invitation.expires_at, caller.visit.now),
                    }));
                }
                Err(error) => Faults::from_error(error)?,
            }
        }
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, org, form).await.map(unprocessable)
}

/// Withdraws an invitation.
pub(crate) async fn withdraw(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, id)): Path<(OrgId, InvitationId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.delete_invitation(&caller.call, org, id).await {
        Ok(()) => Note::good("The invitation is withdrawn; its link no longer works."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/orgs/{org}/members"), ui.cookie))
}

/// Changes a member's role.
pub(crate) async fn change_role(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let role = Role::from_name(fields.get("role")).ok_or_else(Failure::not_found)?;
    let note = match ui.app.change_role(&caller.call, org, user, role).await {
        Ok(member) => Note::good(format!(
            "{} is {} {role} now.",
            member.value.name,
            if role == Role::Reader { "a" } else { "an" }
        )),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/orgs/{org}/members"), ui.cookie))
}

/// The confirmation page of removing a member.
pub(crate) async fn ask_removal(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<Response, Failure> {
    let member = ui.app.member(&caller.call, org, user).await?.value;
    let frame = Frame::org(
        &ui,
        &caller,
        org,
        NavEntry::Members.titled("Remove a member"),
    )
    .await?;
    let back = format!("/orgs/{org}/members");
    Ok(confirmation(frame, Confirm {
            over: Link {
                text: "Members".to_owned(),
                path: back.clone(),
            },
            heading: format!("Remove {} from the organization?", member.name),
            effects: vec![
                format!(
                    "{} ({}) no longer sees the organization.",
                    member.name, member.email
                ),
                "API keys, invitations and enrolment tokens created by this person end at once."
                    .to_owned(),
                "Single sign-on is refused to this person, until an administrator sends an invitation or admits the \
                 person again at the list of removed members."
                    .to_owned(),
            ],
            action: format!("/orgs/{org}/members/{user}/remove"),
            back,
            csrf: caller.visit.csrf.clone(),
            button: "Remove".to_owned(),
        }))
}

/// Removes a member.
pub(crate) async fn remove(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.remove_member(&caller.call, org, user).await {
        Ok(()) => Note::good("The person is no longer a member."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/orgs/{org}/members"), ui.cookie))
}

pub(crate) async fn readmit(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.readmit_member(&caller.call, org, user).await {
        Ok(()) => Note::good("The next single sign-on makes the person a member again."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/orgs/{org}/members"), ui.cookie))
}
