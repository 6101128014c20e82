//! List of an organization's API keys.

use crate::frame::confirmation::confirmation;
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::organization::members::member_names;
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, Tone, more, when};
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use crate::view::listing;
use crate::view::phrase::{count, few, pick, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{ApiKeyTenant, ListFilter, PageOrder};
use control_domain::{ApiKey, ApiKeyState, NewApiKey, Role, Scope};
use control_wire::{ApiKeyId, OrgId, ProjectId};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// Maximum number of keys, and of projects, shown.
const PAGE_ROWS: usize = 200;
/// Offered lifetimes in days, with their labels; 0 is unlimited.
const LIFETIMES: &[(i64, &str)] = &[
    (30, "30 days"),
    (90, "90 days"),
    (365, "A year"),
    (0, "No end"),
];

#[derive(Template)]
#[template(path = "api_keys.html")]
struct KeysPage {
    frame: Frame,
    org: OrgId,
    csrf: String,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    form: Form,
    lifetimes: Vec<(String, String)>,
    projects: Vec<(String, String)>,
    scopes: Vec<(&'static str, String)>,
}

#[derive(Template)]
#[template(path = "api_key_made.html")]
struct CreatedPage {
    frame: Frame,
    org: OrgId,
    heading: String,
    secret: String,
}

struct Row {
    id: ApiKeyId,
    name: String,
    status: Status,
    scopes: Vec<&'static str>,
    /// Name of the project that the key is limited to; empty without one.
    project: String,
    made: RelativeTime,
    /// Name of the creator; the key has at most its rights. Empty if unknown.
    creator: String,
    /// Current role of the creator, if the scopes need a higher one; empty otherwise.
    limit: &'static str,
    ends: Option<RelativeTime>,
    is_active: bool,
}

/// Organization in the query, or the user's only one.
fn org(caller: &Caller) -> Result<OrgId, Failure> {
    let asked = caller.visit.query.get("org").parse().ok();
    let own = caller.call.actor.orgs();
    asked
        .or_else(|| own.first().copied())
        .ok_or_else(Failure::not_found)
}

/// Shows the keys, and the form for a new one.
pub(crate) async fn list(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let fields = Fields::filled(&[("days", "90")]);
    let form = Form::new(&caller.visit.csrf, fields);
    respond(&ui, &caller, org(&caller)?, form).await
}

async fn respond(ui: &Ui, caller: &Caller, org: OrgId, form: Form) -> Result<Response, Failure> {
    let frame = Frame::org(ui, caller, org, NavEntry::ApiKeys.titled("API keys")).await?;
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let after = caller.visit.query.get("after");
    let page = listing::page(after, PageOrder::Newest, PAGE_ROWS);
    let place = ApiKeyTenant {
        org: Some(org),
        project: None,
    };
    let mut found = app
        .api_keys(call, place, &ListFilter::default(), page)
        .await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |found| found.value.id.0);
    let all_projects = listing::page("", PageOrder::Oldest, PAGE_ROWS);
    let projects = app
        .projects(call, org, &ListFilter::default(), all_projects)
        .await?;
    let projects: BTreeMap<ProjectId, String> = projects
        .into_iter()
        .map(|project| (project.value.id, project.value.name.to_string()))
        .collect();
    let creators = member_names(ui, caller, org).await?;
    let mut rows: Vec<Row> = found
        .iter()
        .map(|found| row(&found.value, &projects, &creators, now))
        .collect();
    rows.sort_by_key(|row| !row.is_active);
    let projects = projects
        .into_iter()
        .map(|(id, name)| (id.to_string(), format!("Only {name}")));
    let all = [(String::new(), "The whole organization".to_owned())];
    let lifetimes = LIFETIMES.iter();
    Ok(shown(&KeysPage {
        frame,
        org,
        csrf: caller.visit.csrf.clone(),
        heading: heading(&rows),
        rows,
        more: more(
            last.map(|last| format!("?org={org}&after={last}")),
            "Show older keys",
        ),
        form,
        lifetimes: lifetimes
            .map(|(days, words)| (days.to_string(), (*words).to_owned()))
            .collect(),
        projects: all.into_iter().chain(projects).collect(),
        scopes: { Scope::ALL.iter() }
            .map(|scope| {
                (
                    scope.name(),
                    format!("{}: {}", scope.name(), scope_words(*scope)),
                )
            })
            .collect(),
    }))
}

fn row(
    key: &ApiKey,
    projects: &BTreeMap<ProjectId, String>,
    creators: &BTreeMap<Uuid, String>,
    now: Timestamp,
) -> Row {
    let state = key.state(now);
    let is_active = state == ApiKeyState::Active;
    let (tone, icon, word) = match state {
        ApiKeyState::Active => (Tone::Ok, "ok", "Active"),
        ApiKeyState::Expired => (Tone::Off, "off", "Ended"),
        ApiKeyState::Revoked | ApiKeyState::Deleted => (Tone::Off, "off", "Revoked"),
    };
    Row {
        id: key.id,
        name: key.name.to_string(),
        status: Status::new(tone, icon, word),
        scopes: key.scopes.iter().map(|scope| scope.name()).collect(),
        project: { key.tenant.project }.map_or_else(String::new, |project| {
            let name = projects.get(&project).cloned();
            name.unwrap_or_else(|| format!("…{}", short(project)))
        }),
        made: when(key.created_at, now),
        creator: { key.made_by }
            .and_then(|creator| creators.get(&creator.user.0).cloned())
            .unwrap_or_default(),
        limit: { key.made_by }
            .and_then(|creator| creator.role)
            .filter(|role| is_active && *role < needed_role(&key.scopes))
            .map_or("", Role::name),
        ends: key.expires_at.map(|at| when(at, now)),
        is_active,
    }
}

/// Lowest role with all rights of the scopes.
fn needed_role(scopes: &BTreeSet<Scope>) -> Role {
    let needed = scopes.iter().map(|scope| match scope {
        Scope::NodesRead | Scope::BundlesRead | Scope::RolloutsRead | Scope::ServicesRead => {
            Role::Reader
        }
        Scope::NodesWrite | Scope::BundlesWrite | Scope::RolloutsWrite | Scope::ServicesWrite => {
            Role::Operator
        }
        Scope::ApiKeysAdmin => Role::Admin,
    });
    // A key without scopes has full access.
    needed.max().unwrap_or(Role::Admin)
}

/// Permissions of a scope, in words.
fn scope_words(scope: Scope) -> &'static str {
    match scope {
        Scope::NodesRead => "see nodes, their traffic and enrolment tokens",
        Scope::NodesWrite => "enrol, label and delete nodes",
        Scope::BundlesRead => "see and compare bundles",
        Scope::BundlesWrite => "create, assign and revoke bundles",
        Scope::RolloutsRead => "see rollouts",
        Scope::RolloutsWrite => "plan, start, stop and roll back rollouts",
        Scope::ServicesRead => "see services, upstreams and certificates",
        Scope::ServicesWrite => "change services, upstreams and certificates",
        Scope::ApiKeysAdmin => "create, revoke and delete API keys",
    }
}

fn heading(rows: &[Row]) -> String {
    let active = rows.iter().filter(|row| row.is_active).count();
    let full = rows
        .iter()
        .filter(|row| row.is_active && row.scopes.is_empty())
        .count();
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (active, full) = (number(active), number(full));
    let keys = count(active, "API key");
    let are = pick(active, "is", "are");
    match full {
        _ if active == 0 => "No API key is active.".to_owned(),
        0 => format!("{keys} {are} active, within scopes."),
        _ if full == active => format!("{keys} {are} active, with full access."),
        _ => format!(
            "{keys} {are} active, {} of them with full access.",
            few(full)
        ),
    }
}

/// Creates a key, and shows its secret once.
pub(crate) async fn create(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, Failure> {
    let org = fields
        .get("org")
        .parse::<OrgId>()
        .map_err(|_| Failure::not_found())?;
    let faults = match read(&fields, org, caller.visit.now) {
        Err(faults) => faults,
        Ok((place, new)) => match ui.app.create_api_key(&caller.call, place, new).await {
            Ok((key, secret)) => {
                return Ok(shown(&CreatedPage {
                    frame: Frame::org(&ui, &caller, org, NavEntry::ApiKeys.titled("New API key"))
                        .await?,
                    org,
                    heading: format!("API key {} is created.", key.value.name),
                    secret: secret.reveal().to_owned(),
                }));
            }
            Err(error) => Faults::from_error(error)?,
        },
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, org, form).await.map(unprocessable)
}

/// Parses the form. A value that the page does not offer is a fault: ignoring a scope or a project
/// would give the key more rights than the form requests.
fn read(fields: &Fields, org: OrgId, now: Timestamp) -> Result<(ApiKeyTenant, NewApiKey), Faults> {
    let unknown = |field: &'static str| Faults::from_field(field, "is not one of the choices");
    let project = fields.given("project").map(str::parse::<ProjectId>);
    let scopes = fields.all("scope").map(Scope::from_name);
    let scopes: Option<BTreeSet<Scope>> = scopes.collect();
    let days = fields.get("days").parse::<i64>().ok();
    let days = days.filter(|days| LIFETIMES.iter().any(|(own, _)| own == days));
    let days = days.ok_or_else(|| unknown("days"))?;
    let place = ApiKeyTenant {
        org: Some(org),
        project: project.transpose().map_err(|_| unknown("project"))?,
    };
    let new = NewApiKey {
        name: fields.get("name").trim().to_owned(),
        scopes: scopes.ok_or_else(|| unknown("scope"))?,
        expires_at: (0 < days).then(|| now + SignedDuration::from_hours(days * 24)),
    };
    Ok((place, new))
}

/// The confirmation page of revoking a key.
pub(crate) async fn ask_revocation(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ApiKeyId>,
) -> Result<Response, Failure> {
    let key = ui.app.api_key(&caller.call, id).await?.value;
    let org = key.tenant.org;
    let title = NavEntry::ApiKeys.titled("Revoke an API key");
    let frame = Frame::org(&ui, &caller, org, title).await?;
    let list = format!("/api-keys?org={org}");
    Ok(confirmation(
        frame,
        Confirm {
            over: Link {
                text: "API keys".to_owned(),
                path: list.clone(),
            },
            heading: format!("Revoke {}?", key.name),
            effects: vec![
                "Programs that use it are refused from their next request on.".to_owned(),
                "A revoked key does not work again. The audit log keeps its name.".to_owned(),
            ],
            action: format!("/api-keys/{id}/revoke"),
            back: list,
            csrf: caller.visit.csrf.clone(),
            button: "Revoke it".to_owned(),
        },
    ))
}

/// Revokes a key.
pub(crate) async fn revoke(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ApiKeyId>,
) -> Result<Response, Failure> {
    let key = ui.app.api_key(&caller.call, id).await?.value;
    let note = match ui.app.revoke_api_key(&caller.call, id).await {
        Ok(key) => Note::good(format!("API key {} is revoked.", key.value.name)),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/api-keys?org={}", key.tenant.org), ui.cookie))
}

/// Deletes a key that is no longer valid; the audit log keeps its name.
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ApiKeyId>,
) -> Result<Response, Failure> {
    let key = ui.app.api_key(&caller.call, id).await?.value;
    let note = match ui.app.delete_api_key(&caller.call, id).await {
        Ok(()) => Note::good(format!("API key {} is deleted.", key.name)),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/api-keys?org={}", key.tenant.org), ui.cookie))
}
