//! Navigation of a page, in three groups of entries.

use crate::request::visit::Caller;
use crate::view::component::{Icon, icon};
use control_domain::{Access, Tenant};
use control_wire::{OrgId, ProjectId};

/// Entry of the navigation that a page belongs to.
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
    pub(super) entry: NavEntry,
    pub(super) text: &'a str,
}

impl NavEntry {
    /// A page title that belongs to this entry.
    pub(crate) fn titled(self, text: &str) -> PageTitle<'_> {
        PageTitle { entry: self, text }
    }
}

/// A group of entries under a heading.
#[derive(Clone, Debug)]
pub(crate) struct NavGroup {
    /// Heading; empty for the first group.
    pub(crate) heading: &'static str,
    pub(crate) entries: Vec<NavLink>,
}

/// Link of an entry.
#[derive(Clone, Debug)]
pub(crate) struct NavLink {
    pub(crate) href: String,
    pub(crate) icon: Icon,
    pub(crate) label: &'static str,
    /// Number of objects; empty if it is not shown.
    pub(crate) count: String,
    pub(crate) is_current: bool,
}

/// Numbers of nodes in the navigation, as text.
pub(super) struct NodeCounts {
    /// Number of nodes in the project.
    pub(super) total: String,
    /// Number of nodes with drift; empty if there are none.
    pub(super) drifted: String,
}

/// Row of the tables below.
#[derive(Clone, Copy)]
struct NavRow {
    entry: NavEntry,
    /// Path below the project or the organization.
    path: &'static str,
    icon: &'static str,
    label: &'static str,
}

/// Entries about a project's nodes.
const FLEET: [NavRow; 8] = [
    row(NavEntry::Overview, "", "home", "Overview"),
    row(NavEntry::Nodes, "/nodes", "node", "Nodes"),
    row(NavEntry::Traffic, "/traffic", "traffic", "Traffic"),
    row(NavEntry::Rollouts, "/rollouts", "rollout", "Rollouts"),
    row(NavEntry::Bundles, "/bundles", "bundle", "Bundles"),
    row(NavEntry::Drift, "/drift", "drift", "Drift"),
    row(NavEntry::Explain, "/explain", "ask", "Explain a request"),
    row(NavEntry::Replay, "/replay", "replay", "Replay requests"),
];

/// Entries about a project's definitions and settings.
#[rustfmt::skip]
const CONFIGURATION: [NavRow; 6] = [
    row(NavEntry::Services, "/services", "service", "Services"),
    row(NavEntry::Upstreams, "/upstreams", "upstream", "Upstreams"),
    row(NavEntry::Certificates, "/certificates", "lock", "Certificates"),
    row(NavEntry::EnrolmentTokens, "/enrolment-tokens", "ticket", "Enrolment tokens"),
    row(NavEntry::Webhooks, "/webhooks", "hook", "Webhooks"),
    row(NavEntry::ProjectSettings, "/policy", "settings", "Project settings"),
];

/// Entries of an organization, each with the permission that it requires.
#[rustfmt::skip]
const ORGANIZATION: [(Access, NavRow); 6] = [
    (Access::ADMINISTER, row(NavEntry::Members, "/members", "people", "Members")),
    (Access::ADMINISTER, row(NavEntry::Sso, "/sso", "sso", "Single sign-on")),
    (Access::READ_API_KEYS, row(NavEntry::ApiKeys, "", "key", "API keys")),
    (Access::READ_ORG, row(NavEntry::SigningKeys, "/signing-keys", "sign", "Signing keys")),
    (Access::ADMINISTER, row(NavEntry::Audit, "/audit", "audit", "Audit log")),
    (Access::READ_ORG, row(NavEntry::OrgSettings, "", "settings", "Settings")),
];

const fn row(
    entry: NavEntry,
    path: &'static str,
    icon: &'static str,
    label: &'static str,
) -> NavRow {
    NavRow {
        entry,
        path,
        icon,
        label,
    }
}

impl NavRow {
    fn link(self, base: &str, current: NavEntry) -> NavLink {
        NavLink {
            href: format!("{base}{}", self.path),
            icon: icon(self.icon),
            label: self.label,
            count: String::new(),
            is_current: self.entry == current,
        }
    }
}

/// Group of pages outside of projects.
pub(super) fn personal_group(current: NavEntry) -> NavGroup {
    let projects = row(NavEntry::Projects, "/", "home", "Projects");
    NavGroup {
        heading: "",
        entries: vec![projects.link("", current)],
    }
}

/// Groups of a project; webhooks only for administrators.
pub(super) fn project_groups(
    project: ProjectId,
    current: NavEntry,
    counts: &NodeCounts,
    may_administer: bool,
) -> Vec<NavGroup> {
    let base = format!("/projects/{project}");
    let fleet = FLEET.iter().map(|row| {
        let count = if row.entry == NavEntry::Nodes {
            counts.total.clone()
        } else if row.entry == NavEntry::Drift {
            counts.drifted.clone()
        } else {
            String::new()
        };
        let link = row.link(&base, current);
        NavLink { count, ..link }
    });
    let configuration = CONFIGURATION.iter();
    let configuration =
        configuration.filter(|row| may_administer || row.entry != NavEntry::Webhooks);
    vec![
        NavGroup {
            heading: "",
            entries: fleet.collect(),
        },
        NavGroup {
            heading: "Configuration",
            entries: configuration.map(|row| row.link(&base, current)).collect(),
        },
    ]
}

/// Group of an organization, with the pages that the caller may read.
pub(super) fn org_group(caller: &Caller, org: OrgId, current: NavEntry) -> NavGroup {
    let base = format!("/orgs/{org}");
    let rows = ORGANIZATION.iter();
    let allowed = rows.filter(|(access, _)| caller.may(*access, Tenant::org(org)));
    let entries = allowed.map(|(_, row)| {
        let link = row.link(&base, current);
        if row.entry != NavEntry::ApiKeys {
            return link;
        }
        NavLink {
            href: format!("/api-keys?org={org}"),
            ..link
        }
    });
    NavGroup {
        heading: "Organization",
        entries: entries.collect(),
    }
}
