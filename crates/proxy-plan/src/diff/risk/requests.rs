//! Risks of requests that another route or service answers, and of upstreams without TLS.

use super::class::RiskClass;
use super::{Compared, Risk};
use crate::diff::answer::{Answer, AnsweringService};
use crate::diff::region::Region;
use proxy_model::{BuiltinHandler, HeaderEdits, Model};
use std::collections::BTreeSet;

/// The risks of all regions, and of upstreams that lose their TLS.
pub(in crate::diff) fn region_risks(compared: &Compared<'_>) -> Vec<Risk> {
    let regions = compared.regions.iter();
    let mut risks: Vec<Risk> = regions
        .filter_map(|region| region_risk(compared, region))
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

fn region_risk(compared: &Compared<'_>, region: &Region) -> Option<Risk> {
    let Region { before, after, .. } = region;
    let example = format!("{} {}", region.example.method, region.example_url());
    let lacking = lacking_guards(compared, before, after);
    let (class, change) = if is_refusal(after) && !is_refusal(before) {
        let text = format!("requests such as {example} get {}", after.service);
        (RiskClass::RequestsRefused, text)
    } else if is_same_refusal(before, after) {
        return None;
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
    } else if before.service == after.service {
        let text = format!("requests such as {example} go to {after}");
        (RiskClass::Unlisted, text)
    } else {
        let text = format!("requests such as {example} go to {after}");
        (RiskClass::RequestsMoved, text)
    };
    let subject = match &before.route {
        Some(route) => format!("route {route}"),
        None => "requests without a route".to_owned(),
    };
    Some(Risk {
        class,
        subject,
        change,
    })
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

/// Whether the proxy refuses before and after for the same reason, in its own words and without a route that edits
/// them. A `respond` is a page of the route's making, whatever its status.
fn is_same_refusal(before: &Answer, after: &Answer) -> bool {
    let is_own = matches!(after.service, AnsweringService::Refusal { .. });
    is_own
        && before.service == after.service
        && (after.route.is_none() || after.route == before.route)
}

/// The guards of the route before that the route after does not have.
fn lacking_guards(compared: &Compared<'_>, before: &Answer, after: &Answer) -> Vec<String> {
    if before.route == after.route {
        // The settings of a retained route are compared separately.
        return Vec::new();
    }
    let guards = |model: &Model, answer: &Answer| {
        let id = answer.route.as_deref().unwrap_or_default();
        guards(model, id)
    };
    let (old, new) = (
        guards(compared.before, before),
        guards(compared.after, after),
    );
    old.difference(&new).cloned().collect()
}

/// The agents, credentials, limits and header edits of a route.
fn guards(model: &Model, id: &str) -> BTreeSet<String> {
    let Some(route) = model.routes.iter().find(|route| route.id == id) else {
        return BTreeSet::new();
    };
    let agents = route
        .agents
        .iter()
        .filter_map(|index| model.agent(index.value));
    let agents = agents.map(|agent| format!("agent {}", agent.name));
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
