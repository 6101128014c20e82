//! Generates `docs/reference/access.md`, the rights of each role and credential, from the tables of
//! routes and pages.

use crate::route::Route;
use axum::http::Method;
use control_domain::{Access, Role, ScopeRule};
use std::fmt::Write as _;

const OPENING: &str = "\
# Permissions of the control plane

<!-- Written by `cargo xtask reference` from the tables of routes and of pages; changes here are lost. -->

Roles are `admin` > `operator` > `reader`. A member has a role in the organization, and may have a higher one in single
projects: below `/projects/{project}` the higher one counts, elsewhere the organization's. An API key has at most the
permissions of its creator's role. Objects of other tenants are answered like missing ones, with 404.

*fresh*: a session must have proved the password or a code within the last 10 minutes (`POST /users/me/strong`), or gets
403 `STEP_UP_REQUIRED`. API keys need no such proof. *none* in the column of keys: API keys are refused.

## The interface

Below `/api/v1`.

| request | reader | operator | admin | fresh | API key | others |
|---|---|---|---|---|---|---|
";

const PAGES: &str = "
## The pages

`GET` shows a page, `POST` takes its form. Pages accept sessions, and the links of set-up and invitations; API keys are
ignored. Without a session they redirect to the sign-in, without a fresh proof to its page.

| page | reader | operator | admin | fresh | others |
|---|---|---|---|---|---|
";

/// Text of the page. `pages` are the browser's pages: method, path and access rule of each.
pub fn access_md<'a>(
    routes: &[Route],
    pages: impl IntoIterator<Item = (&'a Method, &'a str, Access)>,
) -> String {
    let mut text = OPENING.to_owned();
    for route in routes {
        let row = Row::new(route.access);
        let roles = row.roles();
        let (method, path, key, others) = (&route.method, route.path, &row.key, row.others);
        writeln!(text, "| {method} `{path}` | {roles} | {key} | {others} |").unwrap_or_default();
    }
    text.push_str(PAGES);
    for (method, path, access) in pages {
        let row = Row::new(access);
        let (roles, others) = (row.roles(), row.others);
        writeln!(text, "| {method} `{path}` | {roles} | {others} |").unwrap_or_default();
    }
    text
}

/// An access rule as a row of the table, by kind of caller.
struct Row {
    /// The minimum role of a user with a session; `None` if no role suffices.
    role: Option<Role>,
    fresh: bool,
    key: String,
    others: &'static str,
}

impl Row {
    /// Cells of the roles and of the fresh proof.
    fn roles(&self) -> String {
        let may = |role: Role| {
            let is_enough = self.role.is_some_and(|least| least <= role);
            if is_enough { "yes" } else { "" }
        };
        let fresh = if self.fresh { "fresh" } else { "" };
        let roles = [Role::Reader, Role::Operator, Role::Admin].map(may);
        format!("{} | {fresh}", roles.join(" | "))
    }

    fn new(access: Access) -> Self {
        let none = || "none".to_owned();
        let (role, key, others) = match access {
            Access::Public => (Some(Role::Reader), "any".to_owned(), "everyone"),
            Access::SetUp => (None, none(), "the set-up link"),
            Access::Invitee => (None, none(), "an invitation"),
            Access::SignedIn => (Some(Role::Reader), "any".to_owned(), "any user"),
            Access::Session | Access::FreshSession => (Some(Role::Reader), none(), "any user"),
            Access::InstanceAdmin | Access::FreshInstanceAdmin => {
                (None, none(), "the installation's administrator")
            }
            Access::OwnNode | Access::OwnNodeKey => (None, none(), "the node itself"),
            Access::System => (None, none(), "the control plane itself"),
            Access::Enrolment => {
                let row = Self::new(Access::WRITE_NODES);
                (row.role, row.key, "an enrolment token")
            }
            Access::Member { scope, role, .. } => {
                let key = match scope {
                    ScopeRule::Any => "any".to_owned(),
                    ScopeRule::Has(scope) => format!("`{scope}`"),
                    ScopeRule::Unlimited => "without scopes".to_owned(),
                };
                (Some(role), key, "")
            }
        };
        let fresh = matches!(
            access,
            Access::FreshSession | Access::FreshInstanceAdmin | Access::Member { fresh: true, .. }
        );
        Self {
            role,
            fresh,
            key,
            others,
        }
    }
}
