//! Converts rules to routes with priorities.

use super::routes::Frontend;
use crate::haproxy::backend::Backend;
use crate::haproxy::checks;
use crate::haproxy::condition;
use crate::haproxy::parser::{Line, Section};
use crate::site::{Service, Site};
use std::collections::HashMap;

/// Migrates a rule that answers requests: `deny`, `redirect` or `return`. If that is impossible,
/// closes the frontend.
pub(super) fn answer(site: &mut Site, frontend: &mut Frontend<'_>, section: &Section, line: &Line) {
    let Some(conditions) = condition::rule_conditions(line, section) else {
        frontend.is_closed = true;
        checks::note_check(site, line);
        return;
    };
    let Some(service) = service(line) else {
        frontend.is_closed = true;
        line.note(
            site,
            "write `redirect` or `respond` in a route; its routes answer 501 until then",
        );
        return;
    };
    for condition in conditions {
        let is_by_client = condition.is_empty() && !condition.sources.is_empty();
        if is_by_client && matches!(service, Service::Respond { status: 403, .. }) {
            frontend.policies.deny.extend(condition.sources);
            continue;
        }
        if !condition.sources.is_empty() {
            frontend.is_closed = true;
            line.note(site, "write `deny` in the policies of a route with that condition; its routes answer 501 until then",
            );
            continue;
        }
        let mut route = frontend.route(site, "rule", service.clone(), &condition);
        route.priority = Some(frontend.next_priority());
        if !route.listeners.is_empty() {
            site.push_route(route);
        }
    }
}

/// Response of a rule; `None` without a counterpart.
fn service(line: &Line) -> Option<Service> {
    let status = |name: &str, default: u16| {
        let written = line.option(name).and_then(|word| word.parse().ok());
        written.unwrap_or(default)
    };
    if line.has("redirect") {
        let to = match (
            line.option("scheme"),
            line.option("prefix"),
            line.option("location"),
        ) {
            (Some(scheme), _, _) => scheme.to_owned(),
            (_, Some(prefix), _) => prefix.trim_end_matches('/').to_owned(),
            // The location has its own query.
            (_, _, Some(location)) if location.contains('?') => location.to_owned(),
            (_, _, Some(location)) => format!("{location}?"),
            _ => return None,
        };
        if to.contains('%') {
            return None;
        }
        return Some(Service::Redirect {
            to: Some(to),
            status: status("code", 302),
            replace_prefix: None,
        });
    }
    let body = line.option("string").or(line.option("lf-string"));
    Some(match line.word(1) {
        "deny" => Service::refusal(status("deny_status", 403)),
        _ => Service::Respond {
            status: status("status", 200),
            body: body.map(str::to_owned),
            content_type: line.option("content-type").map(str::to_owned),
        },
    })
}

/// Migrates a `use_backend` to one route per alternative of its condition.
pub(super) fn use_backend(
    site: &mut Site,
    frontend: &mut Frontend<'_>,
    section: &Section,
    line: &Line,
    backends: &HashMap<String, Backend>,
) {
    let backend = line.word(1);
    let conditions = condition::rule_conditions(line, section);
    let Some(conditions) = conditions.filter(|_| backends.contains_key(backend)) else {
        line.note(site, "write a route with that condition and `upstream`; until then the other routes take its requests",
        );
        return;
    };
    for condition in conditions {
        let mut route = frontend.backend_route(site, backend, &condition, backends);
        route.priority = Some(frontend.next_priority());
        route.policies.allow = condition.sources;
        if !route.policies.allow.is_empty() {
            line.note(
                site,
                "clients of other networks are answered 403 here, and reach no other backend",
            );
        }
        site.push_route(route);
    }
}
