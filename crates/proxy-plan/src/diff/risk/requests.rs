//! Risks of requests that another route or service answers, and of upstreams without TLS.

use super::class::RiskClass;
use super::settings::{classified, network_changes, rate_limit_risk, same_agent, same_upstream};
use super::{Compared, Risk};
use crate::diff::answer::{Answer, AnsweringService};
use crate::diff::region::Region;
use crate::diff::setting_change::route_changes;
use proxy_model::{BuiltinHandler, HeaderEdits, Model, Route};
use std::collections::BTreeSet;

/// First word of a guard that is an agent.
const AGENT: &str = "agent ";

/// Pairs of a route before and its successor, which answers some of its requests under another
/// name: the service is the same, and no other setting that differs is in a class of risk.
pub(in crate::diff) fn successors(compared: &Compared<'_>) -> BTreeSet<(String, String)> {
    let moves = compared.regions.iter().filter_map(|region| {
        let Region { before, after, .. } = region;
        let (old, new) = (before.route.as_deref()?, after.route.as_deref()?);
        (old != new).then(|| ((old.to_owned(), new.to_owned()), region))
    });
    let (mut kept, mut changed) = (BTreeSet::new(), BTreeSet::new());
    for (routes, Region { before, after, .. }) in moves {
        let is_kept = !is_refusal(after)
            && is_same_service(compared, before, after)
            && lacking_guards(compared, before, after).is_empty()
            && changed_settings(compared, before, after).is_empty();
        let pairs = if is_kept { &mut kept } else { &mut changed };
        pairs.insert(routes);
    }
    kept.retain(|routes| !changed.contains(routes));
    kept
}

/// The risks of all regions, and of upstreams that lose their TLS.
pub(in crate::diff) fn region_risks(compared: &Compared<'_>) -> Vec<Risk> {
    let regions = compared.regions.iter();
    let mut risks: Vec<Risk> = regions
        .flat_map(|region| region_risk(compared, region))
        .collect();
    let new = |name: &str| compared.after.upstreams.iter().find(|one| one.name == name);
    let old = compared
        .before
        .upstreams
        .iter()
        .filter(|one| one.tls.is_some());
    let plain = old.filter(|one| new(&one.name).is_some_and(|new| new.tls.is_none()));
    risks.extend(plain.map(|upstream| Risk {
        class: RiskClass::VerificationWeakened,
        subject: format!("upstream {}", upstream.name),
        change: "connects to its targets without TLS".to_owned(),
    }));
    risks
}

fn region_risk(compared: &Compared<'_>, region: &Region) -> Vec<Risk> {
    let Region { before, after, .. } = region;
    let example = format!("{} {}", region.example.method, region.example_url());
    let lacking = lacking_guards(compared, before, after);
    let (class, change) = if is_refusal(after) && !is_refusal(before) {
        let text = format!("requests such as {example} get {}", after.service);
        (RiskClass::RequestsRefused, text)
    } else if is_same_refusal(before, after) {
        return Vec::new();
    } else if is_refusal(before) && is_refusal(after) {
        let text =
            format!("requests such as {example}, refused before, get another answer: {after}");
        (RiskClass::Unlisted, text)
    } else if is_refusal(before) {
        let text = format!("requests such as {example}, refused before, go to {after}");
        (RiskClass::Unlisted, text)
    } else if !lacking.is_empty() {
        let text = format!(
            "requests such as {example} go to {after}, without {}",
            lacking.join(", ")
        );
        (RiskClass::FewerGuards, text)
    } else if is_same_service(compared, before, after) {
        let changed = changed_settings(compared, before, after);
        if !changed.is_empty() {
            let risks = changed.into_iter().map(|(class, change)| Risk {
                class,
                subject: subject(before),
                change: format!("requests such as {example} go to {after}: {change}"),
            });
            return risks.collect();
        }
        let text = format!("requests such as {example} go to {after}");
        (RiskClass::Unlisted, text)
    } else {
        let text = format!("requests such as {example} go to {after}");
        (RiskClass::RequestsMoved, text)
    };
    vec![Risk {
        class,
        subject: subject(before),
        change,
    }]
}

fn subject(before: &Answer) -> String {
    match &before.route {
        Some(route) => format!("route {route}"),
        None => "requests without a route".to_owned(),
    }
}

/// The classes of the settings in which the two routes for the same requests differ.
fn changed_settings(
    compared: &Compared<'_>,
    before: &Answer,
    after: &Answer,
) -> Vec<(RiskClass, String)> {
    if before.route == after.route {
        return Vec::new();
    }
    let (Some(old), Some(new)) = (route(compared.before, before), route(compared.after, after))
    else {
        return Vec::new();
    };
    let changes = route_changes([compared.before, compared.after], old, new);
    let routes = [Some(old), Some(new)];
    let classes = changes
        .iter()
        .filter_map(|change| classified(compared, change, routes));
    let networks = network_changes(compared, [&old.policies.access, &new.policies.access]);
    classes
        .chain(rate_limit_risk(routes))
        .chain(networks)
        .collect()
}

/// Returns true if the same service answers, perhaps an upstream of another name with equal
/// settings.
fn is_same_service(compared: &Compared<'_>, before: &Answer, after: &Answer) -> bool {
    match (&before.service, &after.service) {
        (AnsweringService::Upstream(old), AnsweringService::Upstream(new)) if old != new => {
            same_upstream([compared.before, compared.after], old, new)
        }
        (old, new) => old == new,
    }
}

fn is_refusal(answer: &Answer) -> bool {
    match &answer.service {
        AnsweringService::Refusal { .. } => true,
        AnsweringService::Builtin(handler) => *handler == BuiltinHandler::NotFound.name(),
        AnsweringService::Respond(status) => 400 <= *status,
        AnsweringService::Upstream(_)
        | AnsweringService::Files(_)
        | AnsweringService::Redirect(_) => false,
    }
}

/// Returns true if the proxy itself refuses the requests before and after, for the same reason, and
/// no other route edits the response. A `respond` is not a refusal, whatever its status.
fn is_same_refusal(before: &Answer, after: &Answer) -> bool {
    let is_own = matches!(after.service, AnsweringService::Refusal { .. });
    is_own
        && before.service == after.service
        && (after.route.is_none() || after.route == before.route)
}

fn route<'m>(model: &'m Model, answer: &Answer) -> Option<&'m Route> {
    let id = answer.route.as_deref()?;
    model.routes.iter().find(|route| route.id == id)
}

/// The guards of the route before that the route after lacks.
fn lacking_guards(compared: &Compared<'_>, before: &Answer, after: &Answer) -> Vec<String> {
    if before.route == after.route {
        // The settings of a retained route are compared separately.
        return Vec::new();
    }
    let guards = |model: &Model, answer: &Answer| {
        let route = route(model, answer);
        route.map_or_else(BTreeSet::new, |route| guards(model, route))
    };
    let (old, new) = (
        guards(compared.before, before),
        guards(compared.after, after),
    );
    let is_renamed = |guard: &String| {
        let Some(old) = guard.strip_prefix(AGENT) else {
            return false;
        };
        let mut agents = new.iter().filter_map(|guard| guard.strip_prefix(AGENT));
        agents.any(|new| same_agent([compared.before, compared.after], old, new))
    };
    let gone = old.difference(&new).filter(|guard| !is_renamed(guard));
    gone.cloned().collect()
}

/// The agents, credentials, limits and header edits of a route.
fn guards(model: &Model, route: &Route) -> BTreeSet<String> {
    let agents = route
        .agents
        .iter()
        .filter_map(|index| model.agent(index.value));
    let agents = agents.map(|agent| format!("{AGENT}{}", agent.name));
    let policies = &route.policies;
    let limit = policies
        .rate_limit
        .iter()
        .map(|_| "a rate limit".to_owned());
    let access = (!policies.access.is_open()).then(|| "the networks of clients".to_owned());
    let password = policies
        .basic_auth
        .as_ref()
        .map(|_| "a password".to_owned());
    let token = policies.jwt.as_ref().map(|_| "a token".to_owned());
    let requests = edited(&policies.request_headers, "request");
    let responses = edited(&policies.response_headers, "response");
    agents
        .chain(limit)
        .chain(access)
        .chain(password)
        .chain(token)
        .chain(requests)
        .chain(responses)
        .collect()
}

fn edited(edits: &HeaderEdits, message: &str) -> Vec<String> {
    let HeaderEdits { remove, set, add } = edits;
    let removed = remove
        .iter()
        .map(|name| format!("removing {} of the {message}", name.value));
    let set = set.iter().chain(add);
    let set = set.map(|field| format!("{} of the {message}", field.name));
    removed.chain(set).collect()
}
