//! Converts rules to routes with priorities.

use super::routes::Frontend;
use crate::haproxy::backend::Backend;
use crate::haproxy::checks;
use crate::haproxy::condition;
use crate::haproxy::parser::{Line, Section};
use crate::haproxy::rule;
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
    let Some(service) = rule::service(line) else {
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
        // The text may be the content that an unconverted check protects.
        let is_text = matches!(service, Service::Respond { status: ..400, .. });
        let service = if is_text && frontend.is_closed {
            Service::not_migrated()
        } else {
            service.clone()
        };
        let mut route = frontend.route(site, "rule", service, &condition);
        route.policies.deny.clone_from(&frontend.policies.deny);
        route.priority = Some(frontend.next_priority());
        if !route.listeners.is_empty() {
            site.push_route(route);
        }
    }
}

/// Migrates a `use_backend` to one route per alternative of its condition. If that is impossible,
/// closes the frontend: later routes would take the requests of the rule.
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
        frontend.is_closed = true;
        line.note(site, "write a route with that condition and `upstream`; the routes of the rules after it answer 501 until then",
        );
        return;
    };
    for condition in conditions {
        let priority = Some(frontend.next_priority());
        let routes = frontend.backend_routes(site, backend, &condition, backends);
        let is_list = !condition.sources.is_empty();
        for mut route in routes {
            route.priority = priority;
            route.policies.allow.clone_from(&condition.sources);
            site.push_route(route);
        }
        if is_list {
            line.note(
                site,
                "clients of other networks are answered 403 here, and reach no other backend",
            );
        }
    }
}
