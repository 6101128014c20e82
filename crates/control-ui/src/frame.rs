//! The frame of every page: title, navigation, search, user, status line.

pub(crate) mod failure_page;
pub(crate) mod form;

use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::theme::Theme;
use crate::request::visit::{Caller, Visit};
use crate::ui::Ui;
use crate::view::asset::{ASSETS, Assets};
use crate::view::component::{Icon, icon};
use crate::view::phrase::number;
use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use control_app::{Identity, ListFilter, Page, PageOrder};
use control_domain::{Access, NodeStanding, Role, Tenant};
use control_wire::{OrgId, ProjectId};

/// A page, from its template.
pub(crate) fn show(page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => Html(text).into_response(),
        Err(error) => {
            tracing::error!(cause = %error, "template failed");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Projects that the switcher lists.
const MAX_PROJECTS: i64 = 20;

/// The entry of the navigation that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavEntry {
    Projects,
    Profile,
    Installation,
    Overview,
    Nodes,
    Traffic,
    Rollouts,
    Bundles,
    Drift,
    Explain,
    Replay,
    EnrolmentTokens,
    Services,
    Upstreams,
    Certificates,
    Webhooks,
    ProjectSettings,
    Members,
    Sso,
    ApiKeys,
    SigningKeys,
    Audit,
    OrgSettings,
}

/// The title of a page, and its entry in the navigation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageTitle<'a> {
    entry: NavEntry,
    text: &'a str,
}

impl NavEntry {
    /// The title of a page that belongs to this entry.
    pub(crate) fn titled(self, text: &str) -> PageTitle<'_> {
        PageTitle { entry: self, text }
    }
}

/// The frame of a page.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Of the browser's tab.
    pub(crate) title: String,
    pub(crate) assets: &'static Assets,
    pub(crate) theme: Option<Theme>,
    pub(crate) note: Option<Note>,
    /// Path of the page, to return to.
    pub(crate) path: String,
    pub(crate) csrf: String,
    /// The name of the person that is signed in.
    pub(crate) person: Option<String>,
    /// True if that person administers the installation.
    pub(crate) has_installation: bool,
    /// The project or organization of the page, and the rest of the list.
    pub(crate) switcher: Option<Switcher>,
    /// The navigation.
    pub(crate) groups: Vec<Group>,
    /// Target and contents of the search field.
    pub(crate) search: Option<(String, String)>,
    /// The events that the page follows, if it is live.
    pub(crate) events: Option<&'static str>,
}

/// The project of the page, and its siblings.
#[derive(Clone, Debug)]
pub(crate) struct Switcher {
    pub(crate) own: String,
    pub(crate) org: String,
    pub(crate) others: Vec<(String, String)>,
}

/// Entries of the navigation under one heading.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Empty for the first.
    pub(crate) heading: &'static str,
    pub(crate) entries: Vec<Entry>,
}

/// One entry of the navigation.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) href: String,
    pub(crate) icon: Icon,
    pub(crate) label: &'static str,
    /// Their number; empty if it is meaningless.
    pub(crate) count: String,
    pub(crate) is_current: bool,
}

impl Frame {
    /// The frame of a public page, and of failures.
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
        }
    }

    /// The frame of a page that belongs to no project.
    pub(crate) async fn personal(
        ui: &Ui,
        caller: &Caller,
        title: PageTitle<'_>,
    ) -> Result<Self, Failure> {
        let entry = Entry {
            href: "/".to_owned(),
            icon: icon("home"),
            label: "Projects",
            count: String::new(),
            is_current: title.entry == NavEntry::Projects,
        };
        Ok(Self {
            person: person(ui, caller).await?,
            has_installation: has_installation(caller),
            groups: vec![Group {
                heading: "",
                entries: vec![entry],
            }],
            ..Self::bare(title.text, Some(&caller.visit))
        })
    }

    /// The frame of a page of a project.
    pub(crate) async fn project(
        ui: &Ui,
        caller: &Caller,
        id: ProjectId,
        title: PageTitle<'_>,
    ) -> Result<Self, Failure> {
        let call = &caller.call;
        let project = ui.app.project(call, id).await?.value;
        let org = ui.app.org(call, project.org).await?.value;
        let page = Page {
            after: None,
            limit: MAX_PROJECTS,
            order: PageOrder::Oldest,
        };
        let others = ui
            .app
            .projects(call, project.org, &ListFilter::default(), page)
            .await?;
        let others = others.into_iter().filter(|other| other.value.id != id);
        let others = others.map(|other| {
            let href = format!("/projects/{}", other.value.id);
            (href, other.value.name.to_string())
        });
        let nodes = nodes(ui, caller, project.tenant()).await?;
        let switcher = Switcher {
            own: project.name.to_string(),
            org: org.name.to_string(),
            others: others.collect(),
        };
        let text = format!("{} · {}", title.text, project.name);
        let search = (format!("/projects/{id}/search"), searched(caller));
        Ok(Self {
            person: person(ui, caller).await?,
            has_installation: has_installation(caller),
            groups: groups(
                id,
                title.entry,
                &nodes,
                caller.may(Access::ADMINISTER, project.tenant()),
                org_entries(caller, project.org, title.entry),
            ),
            switcher: Some(switcher),
            search: Some(search),
            ..Self::bare(&text, Some(&caller.visit))
        })
    }

    /// The frame of a page of an organization.
    pub(crate) async fn org(
        ui: &Ui,
        caller: &Caller,
        id: OrgId,
        title: PageTitle<'_>,
    ) -> Result<Self, Failure> {
        let org = ui.app.org(&caller.call, id).await?.value;
        let text = format!("{} · {}", title.text, org.name);
        let mut frame = Self::personal(ui, caller, title.entry.titled(&text)).await?;
        frame.groups.push(Group {
            heading: "Organization",
            entries: org_entries(caller, id, title.entry),
        });
        Ok(frame)
    }

    /// The frame of a failure: of the person, if that is known.
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

    /// The frame of a page that follows `events`.
    pub(crate) fn live(self, events: &'static str) -> Self {
        Self {
            events: Some(events),
            ..self
        }
    }
}

/// The search text of this page, to keep in its field.
fn searched(caller: &Caller) -> String {
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

/// Counts in the navigation.
struct Counts {
    nodes: String,
    /// Empty if no node drifted.
    drifted: String,
}

async fn nodes(ui: &Ui, caller: &Caller, tenant: Tenant) -> Result<Counts, Failure> {
    let Some(project) = tenant.project else {
        return Err(Failure::not_found());
    };
    let standings = ui.app.count_standings(&caller.call, project).await?;
    let drifted = standings.get(&NodeStanding::Drifted).copied();
    Ok(Counts {
        nodes: number(standings.values().sum()),
        drifted: drifted.map_or_else(String::new, number),
    })
}

fn groups(
    project: ProjectId,
    current: NavEntry,
    counts: &Counts,
    has_webhooks: bool,
    org: Vec<Entry>,
) -> Vec<Group> {
    let entry = |own: NavEntry, path: &str, sign: &'static str, label: &'static str| Entry {
        href: format!("/projects/{project}{path}"),
        icon: icon(sign),
        label,
        count: String::new(),
        is_current: own == current,
    };
    let fleet = vec![
        entry(NavEntry::Overview, "", "home", "Overview"),
        Entry {
            count: counts.nodes.clone(),
            ..entry(NavEntry::Nodes, "/nodes", "node", "Nodes")
        },
        entry(NavEntry::Traffic, "/traffic", "traffic", "Traffic"),
        entry(NavEntry::Rollouts, "/rollouts", "rollout", "Rollouts"),
        entry(NavEntry::Bundles, "/bundles", "bundle", "Bundles"),
        Entry {
            count: counts.drifted.clone(),
            ..entry(NavEntry::Drift, "/drift", "drift", "Drift")
        },
        entry(NavEntry::Explain, "/explain", "ask", "Explain a request"),
        entry(NavEntry::Replay, "/replay", "replay", "Replay requests"),
    ];
    let mut configuration = vec![
        entry(NavEntry::Services, "/services", "service", "Services"),
        entry(NavEntry::Upstreams, "/upstreams", "upstream", "Upstreams"),
        entry(
            NavEntry::Certificates,
            "/certificates",
            "lock",
            "Certificates",
        ),
        entry(
            NavEntry::EnrolmentTokens,
            "/enrolment-tokens",
            "key",
            "Enrolment tokens",
        ),
    ];
    if has_webhooks {
        configuration.push(entry(
            NavEntry::Webhooks,
            "/webhooks",
            "rollout",
            "Webhooks",
        ));
    }
    configuration.push(entry(
        NavEntry::ProjectSettings,
        "/policy",
        "settings",
        "Project settings",
    ));
    vec![
        Group {
            heading: "",
            entries: fleet,
        },
        Group {
            heading: "Configuration",
            entries: configuration,
        },
        Group {
            heading: "Organization",
            entries: org,
        },
    ]
}

/// The pages of an organization visible to the actor.
fn org_entries(caller: &Caller, org: OrgId, current: NavEntry) -> Vec<Entry> {
    let entry = |own: NavEntry, path: &str, sign: &'static str, label: &'static str| Entry {
        href: format!("/orgs/{org}{path}"),
        icon: icon(sign),
        label,
        count: String::new(),
        is_current: own == current,
    };
    let api_keys = Entry {
        href: format!("/api-keys?org={org}"),
        ..entry(NavEntry::ApiKeys, "", "key", "API keys")
    };
    let all = [
        (
            Access::ADMINISTER,
            entry(NavEntry::Members, "/members", "people", "Members"),
        ),
        (
            Access::ADMINISTER,
            entry(NavEntry::Sso, "/sso", "sso", "Single sign-on"),
        ),
        (Access::READ_API_KEYS, api_keys),
        (
            Access::READ_ORG,
            entry(
                NavEntry::SigningKeys,
                "/signing-keys",
                "sign",
                "Signing keys",
            ),
        ),
        (
            Access::ADMINISTER,
            entry(NavEntry::Audit, "/audit", "audit", "Audit log"),
        ),
        (
            Access::READ_ORG,
            entry(NavEntry::OrgSettings, "", "settings", "Settings"),
        ),
    ];
    let allowed = all
        .into_iter()
        .filter(|(access, _)| caller.may(*access, Tenant::org(org)));
    allowed.map(|(_, entry)| entry).collect()
}

/// The role that the actions of a page need, for its foot; `None` if the actor may.
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
