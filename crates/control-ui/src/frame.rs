//! Layout of every page: title, navigation, search, user, status line.

pub(crate) mod confirmation;
pub(crate) mod failure_page;
pub(crate) mod form;
pub(crate) mod held;
mod navigation;

pub(crate) use navigation::{NavEntry, PageTitle};

use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::theme::Theme;
use crate::request::visit::{Caller, Visit};
use crate::ui::Ui;
use crate::view::asset::{ASSETS, Assets};
use crate::view::phrase::number;
use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use control_app::{Identity, ListFilter, Page, PageOrder};
use control_domain::{Access, NodeStanding, Org, Project, Role, Tenant};
use control_wire::{OrgId, ProjectId};
use navigation::{NavGroup, NodeCounts, org_group, personal_group, project_groups};

/// Renders a template as a response.
pub(crate) fn show(page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => Html(text).into_response(),
        Err(error) => {
            tracing::error!(cause = %error, "template failed");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A page with the faults of its form.
pub(crate) fn unprocessable(mut page: Response) -> Response {
    *page.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    page
}

/// Maximum number of projects in the switcher.
const MAX_PROJECTS: i64 = 20;

/// Data of a page's layout.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Title of the browser tab.
    pub(crate) title: String,
    pub(crate) assets: &'static Assets,
    pub(crate) theme: Option<Theme>,
    pub(crate) note: Option<Note>,
    /// Path of the page, for links that return to it.
    pub(crate) path: String,
    pub(crate) csrf: String,
    /// Name of the signed-in user; `None` for API keys and public pages.
    pub(crate) person: Option<String>,
    /// Whether the user administers the installation.
    pub(crate) has_installation: bool,
    /// Menu of projects; `None` on pages outside of an organization.
    pub(crate) switcher: Option<Switcher>,
    pub(crate) groups: Vec<NavGroup>,
    /// Action and text of the search field; `None` without one.
    pub(crate) search: Option<(String, String)>,
    /// Path of the event stream of a live page; `None` for other pages.
    pub(crate) events: Option<&'static str>,
    /// False for a live page with a form, which a reload without a script would clear.
    pub(crate) reloads: bool,
}

/// Menu of an organization's projects.
#[derive(Clone, Debug)]
pub(crate) struct Switcher {
    /// Name of the current project; on pages of the organization, of the organization.
    pub(crate) own: String,
    pub(crate) org: String,
    /// Path and name of each further project.
    pub(crate) others: Vec<(String, String)>,
}

impl Switcher {
    /// Menu of a page of the organization, or of its project `current`.
    async fn load(
        ui: &Ui,
        caller: &Caller,
        org: &Org,
        current: Option<&Project>,
    ) -> Result<Self, Failure> {
        let page = Page {
            after: None,
            limit: MAX_PROJECTS,
            order: PageOrder::Oldest,
        };
        let filter = ListFilter::default();
        let found = ui.app.projects(&caller.call, org.id, &filter, page).await?;
        let current_id = current.map(|project| project.id);
        let further = found.into_iter().map(|project| project.value);
        let further = further.filter(|project| Some(project.id) != current_id);
        let further = further.map(|project| {
            let href = format!("/projects/{}", project.id);
            (href, project.name.to_string())
        });
        Ok(Self {
            own: current.map_or_else(|| org.name.to_string(), |project| project.name.to_string()),
            org: org.name.to_string(),
            others: further.collect(),
        })
    }
}

/// Markup in front of a page's content. A template of its own, so that it is compiled once and not for each page.
#[derive(Template)]
#[template(path = "frame_top.html")]
pub(crate) struct FrameTop<'a> {
    frame: &'a Frame,
}

/// Markup behind a page's content.
#[derive(Template)]
#[template(path = "frame_bottom.html")]
pub(crate) struct FrameBottom<'a> {
    frame: &'a Frame,
}

impl Frame {
    pub(crate) fn top(&self) -> FrameTop<'_> {
        FrameTop { frame: self }
    }

    pub(crate) fn bottom(&self) -> FrameBottom<'_> {
        FrameBottom { frame: self }
    }

    /// Layout of a public page or a failure.
    pub(crate) fn bare(title: &str, visit: Option<&Visit>) -> Self {
        Self {
            title: title.to_owned(),
            assets: &ASSETS,
            theme: visit.and_then(|visit| visit.theme),
            note: visit.and_then(|visit| visit.note.clone()),
            path: visit.map_or_else(|| "/".to_owned(), |visit| visit.path.clone()),
            csrf: visit.map_or_else(String::new, |visit| visit.csrf.clone()),
            person: None,
            has_installation: false,
            switcher: None,
            groups: Vec::new(),
            search: None,
            events: None,
            reloads: true,
        }
    }

    /// Layout of a page outside of projects.
    pub(crate) async fn personal(
        ui: &Ui,
        caller: &Caller,
        title: PageTitle<'_>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            person: person(ui, caller).await?,
            has_installation: has_installation(caller),
            groups: vec![personal_group(title.entry)],
            ..Self::bare(title.text, Some(&caller.visit))
        })
    }

    /// Layout of a project's page.
    pub(crate) async fn project(
        ui: &Ui,
        caller: &Caller,
        id: ProjectId,
        title: PageTitle<'_>,
    ) -> Result<Self, Failure> {
        let call = &caller.call;
        let project = ui.app.project(call, id).await?.value;
        let org = ui.app.org(call, project.org).await?.value;
        let switcher = Switcher::load(ui, caller, &org, Some(&project)).await?;
        let counts = node_counts(ui, caller, id).await?;
        let may_administer = caller.may(Access::ADMINISTER, project.tenant());
        let mut groups = project_groups(id, title.entry, &counts, may_administer);
        groups.push(org_group(caller, project.org, title.entry));
        let text = format!("{} · {}", title.text, project.name);
        let search = (format!("/projects/{id}/search"), search_text(caller));
        Ok(Self {
            person: person(ui, caller).await?,
            has_installation: has_installation(caller),
            groups,
            switcher: Some(switcher),
            search: Some(search),
            ..Self::bare(&text, Some(&caller.visit))
        })
    }

    /// Layout of an organization's page.
    pub(crate) async fn org(
        ui: &Ui,
        caller: &Caller,
        id: OrgId,
        title: PageTitle<'_>,
    ) -> Result<Self, Failure> {
        let org = ui.app.org(&caller.call, id).await?.value;
        let text = format!("{} · {}", title.text, org.name);
        let mut frame = Self::personal(ui, caller, title.entry.titled(&text)).await?;
        frame.switcher = Some(Switcher::load(ui, caller, &org, None).await?);
        frame.groups.push(org_group(caller, id, title.entry));
        Ok(frame)
    }

    /// Layout of a failure, with the user's navigation if the user is known.
    pub(crate) async fn for_failure(
        ui: &Ui,
        title: String,
        visit: &Visit,
        caller: Option<&Caller>,
    ) -> Self {
        let person = match caller {
            Some(caller) => person(ui, caller).await.ok().flatten(),
            None => None,
        };
        Self {
            person,
            ..Self::bare(&title, Some(visit))
        }
    }

    /// Makes the page live: it follows the stream `events`.
    pub(crate) fn live(self, events: &'static str) -> Self {
        Self {
            events: Some(events),
            ..self
        }
    }

    /// Marks a live page with a form for text.
    pub(crate) fn with_form(self) -> Self {
        Self {
            reloads: false,
            ..self
        }
    }
}

/// Text of the search field on a search page; empty on other pages.
fn search_text(caller: &Caller) -> String {
    let is_search = caller.visit.path.contains("/search?");
    let text = if is_search {
        caller.visit.query.get("q")
    } else {
        ""
    };
    text.to_owned()
}

fn has_installation(caller: &Caller) -> bool {
    caller.call.actor.holds(Access::InstanceAdmin).is_ok()
}

async fn person(ui: &Ui, caller: &Caller) -> Result<Option<String>, Failure> {
    Ok(match ui.app.identity(&caller.call).await? {
        Identity::User { user, .. } => Some(user.name.to_string()),
        Identity::ApiKey { .. } => None,
    })
}

async fn node_counts(ui: &Ui, caller: &Caller, project: ProjectId) -> Result<NodeCounts, Failure> {
    let standings = ui.app.count_standings(&caller.call, project).await?;
    let drifted = standings.get(&NodeStanding::Drifted).copied();
    Ok(NodeCounts {
        total: number(standings.values().sum()),
        drifted: drifted.map_or_else(String::new, number),
    })
}

/// Sentence on the role that the page's actions need; `None` if the actor has it.
pub(crate) fn foot(caller: &Caller, access: Access, tenant: Tenant, verbs: &str) -> Option<String> {
    if caller.may(access, tenant) {
        return None;
    }
    let Access::Member { role: needed, .. } = access else {
        return None;
    };
    let own = match caller.role(tenant.org) {
        Some(Role::Reader) => "You are a reader.",
        Some(Role::Operator) => "You are an operator.",
        Some(Role::Admin) | None => "",
    };
    let needed = match needed {
        Role::Reader => "Members",
        Role::Operator => "Operators",
        Role::Admin => "Administrators",
    };
    Some(format!("{own} {needed} {verbs}.").trim().to_owned())
}
