//! The risks of a change: of settings and parts, and of its requests.

use super::class::RiskClass;
use super::requests::region_risks;
use super::sent_requests::sent_request_risks;
use super::{Compared, Risk};
use crate::diff::parts::{Change, Part, PartChange};
use crate::diff::setting_change::{SettingChange, SettingOwner};
use proxy_model::registry::policies::{access, basic_auth, cache, jwt, rewrite};
use proxy_model::registry::{agents, limits, listener_tls, listeners, policies, routes, upstreams};
use proxy_model::{Model, RequestRate};
use serde_json::Value;
use std::collections::BTreeSet;

/// Settings that are named in one risk of [`RiskClass::Unlisted`]; further ones are counted.
const MAX_NAMED_SETTINGS: usize = 5;
/// Factor by which a limit is tightened if it is a risk.
const TIGHTENED: f64 = 10.0;

/// The risks of a change, most severe class first.
pub(in crate::diff) fn risks(compared: &Compared<'_>) -> Vec<Risk> {
    let mut risks = region_risks(compared);
    let mut unlisted: Vec<&SettingChange> = Vec::new();
    for change in compared.settings {
        if !stays(compared, change) {
            continue;
        }
        match classified(change) {
            Some((class, text)) => risks.push(Risk {
                class,
                subject: subject(&change.owner),
                change: text,
            }),
            None => unlisted.push(change),
        }
    }
    risks.extend(compared.parts.iter().filter_map(part_risk));
    risks.extend(sent_request_risks(compared));
    risks.extend(unlisted_settings(&unlisted));
    risks.extend(uncertainties(compared));
    risks.sort();
    risks.dedup();
    risks
}

/// Returns true if the owner of a setting is in both models; for other owners, the changed requests
/// are reported instead.
fn stays(compared: &Compared<'_>, change: &SettingChange) -> bool {
    let is_new_and_open = change.row == agents::FAILURE_MODE.path && becomes(change, "open");
    let both = |has: &dyn Fn(&Model) -> bool| has(compared.before) && has(compared.after);
    is_new_and_open
        || match &change.owner {
            SettingOwner::Listener(name) => {
                both(&|model| model.listeners.iter().any(|one| one.name == *name))
            }
            SettingOwner::Route(id) => both(&|model| model.routes.iter().any(|one| one.id == *id)),
            SettingOwner::Upstream(name) => {
                both(&|model| model.upstreams.iter().any(|one| one.name == *name))
            }
            SettingOwner::Agent(name) => {
                both(&|model| model.agents.iter().any(|one| one.name == *name))
            }
            SettingOwner::Process => true,
        }
}

fn subject(owner: &SettingOwner) -> String {
    match owner {
        SettingOwner::Listener(name) => format!("listener {name}"),
        SettingOwner::Route(id) => format!("route {id}"),
        SettingOwner::Upstream(name) => format!("upstream {name}"),
        SettingOwner::Agent(name) => format!("agent {name}"),
        SettingOwner::Process => "the process".to_owned(),
    }
}

/// The class of a setting's change with its text; `None` for a change in no class.
fn classified(change: &SettingChange) -> Option<(RiskClass, String)> {
    let gone = || listed(&missing(change));
    let row = change.row;
    let is = |rows: &[&str]| rows.contains(&row);
    if row == routes::AGENTS.path && !missing(change).is_empty() {
        return Some((RiskClass::AgentRemoved, format!("asks no more: {}", gone())));
    }
    if row == agents::FAILURE_MODE.path && becomes(change, "open") {
        let text = "requests continue while it is unavailable".to_owned();
        return Some((RiskClass::AgentFailsOpen, text));
    }
    if row == policies::REMOVE_RESPONSE.path && !missing(change).is_empty() {
        let text = format!("no longer removes from responses: {}", gone());
        return Some((RiskClass::InnerHeaderExposed, text));
    }
    let edits = [
        policies::SET_REQUEST.path,
        policies::ADD_REQUEST.path,
        policies::REMOVE_REQUEST.path,
        policies::SET_RESPONSE.path,
        policies::ADD_RESPONSE.path,
    ];
    if is(&edits) && !missing_names(change).is_empty() {
        let (names, edit) = (listed(&missing_names(change)), row.rsplit_once('.'));
        let edit = edit.map_or(row, |(_, edit)| edit);
        return Some((
            RiskClass::HeaderEditRemoved,
            format!("no longer has `{edit}` of {names}"),
        ));
    }
    if row == listeners::DEFAULT_ROUTE.path && change.change != Change::Removed {
        let text = format!(
            "requests without a route go to {}",
            listed(&texts(&change.after))
        );
        return Some((RiskClass::DefaultRouteChanged, text));
    }
    if is(&[
        policies::BUFFER_REQUESTS.path,
        policies::BUFFER_RESPONSES.path,
    ]) && change.after.contains(&Value::Bool(true))
    {
        let text = format!("holds bodies: `{}`", change.path);
        return Some((RiskClass::BodyHeld, text));
    }
    if row == agents::EVENTS.path && inspects_bodies(change) {
        return Some((RiskClass::BodyHeld, "inspects bodies".to_owned()));
    }
    if row.starts_with(rewrite::REWRITE.path) {
        let text = format!(
            "the upstream gets other paths: `{}` is {} instead of {}",
            change.path,
            shown(&change.after),
            shown(&change.before)
        );
        return Some((RiskClass::RequestsMoved, text));
    }
    access_risk(change)
        .or_else(|| credentials_risk(change))
        .or_else(|| token_risk(change))
        .or_else(|| cache_risk(change))
        .or_else(|| tls_risk(change))
        .or_else(|| limit_risk(change))
}

/// The risk of other networks of clients.
fn access_risk(change: &SettingChange) -> Option<(RiskClass, String)> {
    let is_in = |rows: [&str; 4]| rows.contains(&change.row);
    let is_allow = is_in([
        access::LISTENER_ALLOW.path,
        access::LISTENER_ALLOW_FILE.path,
        access::ALLOW.path,
        access::ALLOW_FILE.path,
    ]);
    let is_deny = is_in([
        access::LISTENER_DENY.path,
        access::LISTENER_DENY_FILE.path,
        access::DENY.path,
        access::DENY_FILE.path,
    ]);
    if !is_allow && !is_deny {
        return None;
    }
    let (gone, new) = (missing(change), added(change));
    let is_wider = if is_allow {
        // An empty list admits all.
        change.after.is_empty() || !change.before.is_empty() && !new.is_empty()
    } else {
        !gone.is_empty()
    };
    let class = if is_wider {
        RiskClass::AccessWidened
    } else {
        RiskClass::RequestsRefused
    };
    let text = format!(
        "`{}` is {} instead of {}",
        change.path,
        shown(&change.after),
        shown(&change.before)
    );
    Some((class, text))
}

/// The risk of changed users, and of a password that is newly required or no longer required.
fn credentials_risk(change: &SettingChange) -> Option<(RiskClass, String)> {
    if change.row == basic_auth::BASIC_REALM.path {
        return match change.change {
            Change::Added => {
                let text = "asks for a password".to_owned();
                Some((RiskClass::RequestsRefused, text))
            }
            Change::Removed => {
                let text = "asks for no password any more".to_owned();
                Some((RiskClass::AccessWidened, text))
            }
            Change::Changed => None,
        };
    }
    let rows = [
        basic_auth::BASIC_USER.path,
        basic_auth::BASIC_USERS_FILE.path,
    ];
    if !rows.contains(&change.row) {
        return None;
    }
    let (gone, new) = (missing(change), added(change));
    let class = if new.is_empty() {
        RiskClass::RequestsRefused
    } else {
        RiskClass::AccessWidened
    };
    let text = format!(
        "users: {} instead of {}",
        shown(&change.after),
        shown(&change.before)
    );
    (!gone.is_empty() || !new.is_empty()).then_some((class, text))
}

/// The risk of changed token rules, and of a token that is newly required or no longer required.
fn token_risk(change: &SettingChange) -> Option<(RiskClass, String)> {
    let row = change.row;
    if row == jwt::JWT_REALM.path {
        return match change.change {
            Change::Added => Some((RiskClass::RequestsRefused, "asks for a token".to_owned())),
            Change::Removed => {
                let text = "asks for no token any more".to_owned();
                Some((RiskClass::AccessWidened, text))
            }
            Change::Changed => None,
        };
    }
    // The whole block was added or removed.
    if !row.starts_with(jwt::JWT.path) || change.change != Change::Changed && !is_list(row) {
        return None;
    }
    let (gone, new) = (missing(change), added(change));
    let are = |rows: &[&str]| rows.contains(&row);
    let is_wider = if are(&[jwt::JWT_REQUIRE_CLAIM.path, jwt::JWT_REQUIRE_SCOPE.path]) {
        !gone.is_empty()
    } else if row == jwt::JWT_ALGORITHMS.path {
        // An empty list allows the algorithms of the keys.
        change.after.is_empty() || !change.before.is_empty() && !new.is_empty()
    } else if row == jwt::JWT_AUDIENCE.path {
        !new.is_empty()
    } else if row == jwt::JWT_CLOCK_SKEW.path {
        number(&change.before) < number(&change.after)
    } else if are(&[
        jwt::JWT_ISSUER.path,
        jwt::JWKS_FILE.path,
        jwt::JWKS_URL.path,
        jwt::JWKS_UPSTREAM.path,
        jwt::HMAC_FILE.path,
        jwt::JWT_CLAIM_HEADER.path,
        jwt::JWT_FORWARD.path,
    ]) {
        true
    } else {
        return None;
    };
    let class = if is_wider {
        RiskClass::AccessWidened
    } else {
        RiskClass::RequestsRefused
    };
    let text = format!(
        "tokens: `{}` is {} instead of {}",
        change.path,
        shown(&change.after),
        shown(&change.before)
    );
    Some((class, text))
}

/// The risk of responses that more requests share.
fn cache_risk(change: &SettingChange) -> Option<(RiskClass, String)> {
    let row = change.row;
    let is_wider = if row == cache::STATUSES.path {
        let before = items(&change.before);
        items(&change.after).any(|status| !before.clone().any(|known| known == status))
    } else if row == cache::IGNORE_QUERY.path {
        !added(change).is_empty()
    } else if row == cache::KEY_HEADERS.path {
        !missing(change).is_empty()
    } else if row == cache::TTL.path {
        number(&change.before).unwrap_or(0.0) < number(&change.after).unwrap_or(0.0)
    } else {
        false
    };
    let is_new = row == cache::STATUSES.path && change.change == Change::Added;
    let text = if is_new {
        "stores responses".to_owned()
    } else {
        format!(
            "stored responses: `{}` is {} instead of {}",
            change.path,
            shown(&change.after),
            shown(&change.before)
        )
    };
    is_wider.then_some((RiskClass::ResponsesShared, text))
}

/// The values, with those of lists in place of the lists.
fn items(values: &[Value]) -> impl Iterator<Item = &Value> + Clone {
    values.iter().flat_map(|value| match value.as_array() {
        Some(list) => list.as_slice(),
        None => std::slice::from_ref(value),
    })
}

/// Returns true if a rule of tokens is a list that may be empty.
fn is_list(row: &str) -> bool {
    [
        jwt::JWT_REQUIRE_CLAIM.path,
        jwt::JWT_REQUIRE_SCOPE.path,
        jwt::JWT_ALGORITHMS.path,
        jwt::JWT_CLAIM_HEADER.path,
    ]
    .contains(&row)
}

fn number(values: &[Value]) -> Option<f64> {
    values.first()?.as_f64()
}

fn tls_risk(change: &SettingChange) -> Option<(RiskClass, String)> {
    let row = change.row;
    let values = || {
        format!(
            "{} instead of {}",
            shown(&change.after),
            shown(&change.before)
        )
    };
    let first = |values: &[Value]| texts(values).into_iter().next().unwrap_or_default();
    let is_lower = first(&change.after) < first(&change.before);
    let text = if row == listeners::ADDRESS.path {
        return Some((
            RiskClass::ListenerRemoved,
            format!("listens on {}", values()),
        ));
    } else if row == listeners::PROTOCOL.path && becomes(change, "http") {
        "speaks in the clear".to_owned()
    } else if (row == listener_tls::MIN_VERSION.path || row == listener_tls::MAX_VERSION.path)
        && is_lower
    {
        format!("TLS `{}` is {}", change.path, values())
    } else if row == listener_tls::CLIENT_AUTH_MODE.path && !becomes(change, "required") {
        format!("client certificates: {}", values())
    } else if row == upstreams::CA_FILE.path && change.change == Change::Removed {
        let text = "targets are verified by the system's authorities".to_owned();
        return Some((RiskClass::VerificationWeakened, text));
    } else if row == upstreams::VERIFY.path && !change.after.contains(&Value::Bool(true)) {
        let text = "certificates of targets are not verified".to_owned();
        return Some((RiskClass::VerificationWeakened, text));
    } else if row == upstreams::PIN.path
        && !change.before.is_empty()
        && (change.after.is_empty() || !added(change).is_empty())
    {
        let text = format!("the pinned keys of targets are {}", values());
        return Some((RiskClass::VerificationWeakened, text));
    } else if row == upstreams::SNI.path {
        let text = format!("the verified name of targets is {}", values());
        return Some((RiskClass::VerificationWeakened, text));
    } else {
        return None;
    };
    Some((RiskClass::TlsWeakened, text))
}

/// The risk of a limit of rate, size, number or time.
fn limit_risk(change: &SettingChange) -> Option<(RiskClass, String)> {
    let named = [
        policies::MAX_BODY_SIZE.path,
        policies::REQUESTS_PER_SECOND.path,
        policies::RATE.path,
        policies::BURST.path,
        policies::REQUEST.path,
        policies::READ.path,
        policies::CONNECT.path,
        upstreams::MAX_CONNECTIONS.path,
        upstreams::REQUEST.path,
        upstreams::READ.path,
        upstreams::CONNECT.path,
    ];
    let is_limit = named.contains(&change.row) || change.row.starts_with("limits.");
    let numbers = |values: &[Value]| {
        let value = values.first()?;
        let rate = || value.as_str()?.parse::<RequestRate>().ok();
        value.as_f64().or_else(|| rate().map(RequestRate::as_f64))
    };
    if !is_limit || change.row == limits::STANDARD_STATUSES.path {
        return None;
    }
    match (numbers(&change.before), numbers(&change.after)) {
        (None, Some(after)) => {
            let text = format!("new limit: `{}` is {after}", change.path);
            Some((RiskClass::LimitTightened, text))
        }
        (Some(before), None) => {
            let text = format!("no limit any more: `{}` was {before}", change.path);
            Some((RiskClass::LimitRemoved, text))
        }
        (Some(before), Some(after)) if after * TIGHTENED <= before => {
            let text = format!("`{}` is {after} instead of {before}", change.path);
            Some((RiskClass::LimitTightened, text))
        }
        _ => None,
    }
}

fn part_risk(change: &PartChange) -> Option<Risk> {
    let (class, text) = match (&change.part, change.change) {
        (Part::Listener(_), Change::Removed) => (RiskClass::ListenerRemoved, "is gone"),
        (Part::Listener(_), _) => (RiskClass::Unlisted, "is new"),
        (Part::Certificate { .. } | Part::ObtainedHost { .. }, Change::Removed) => {
            (RiskClass::TlsWeakened, "is gone")
        }
        _ => return None,
    };
    Some(Risk {
        class,
        subject: change.part.to_string(),
        change: text.to_owned(),
    })
}

/// One risk for all settings in no class.
fn unlisted_settings(settings: &[&SettingChange]) -> Option<Risk> {
    let paths: BTreeSet<&str> = settings.iter().map(|one| one.path.as_str()).collect();
    let named: Vec<String> = paths
        .iter()
        .take(MAX_NAMED_SETTINGS)
        .map(|path| format!("`{path}`"))
        .collect();
    let more = paths.len().saturating_sub(MAX_NAMED_SETTINGS);
    let rest = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    (!named.is_empty()).then(|| Risk {
        class: RiskClass::Unlisted,
        subject: "settings".to_owned(),
        change: format!("{}{rest}", named.join(", ")),
    })
}

/// Risks beyond the comparison: reached limits, another order of routes with sampled regexes, and routes
/// without requests.
fn uncertainties(compared: &Compared<'_>) -> Vec<Risk> {
    let risk = |subject: &str, change: String| Risk {
        class: RiskClass::Unlisted,
        subject: subject.to_owned(),
        change,
    };
    let limits = compared
        .limits
        .iter()
        .map(|limit| risk("the comparison", limit.to_string()));
    let order = |model: &Model| -> Vec<String> {
        let routes = model.routes.iter();
        routes.map(|route| route.id.clone()).collect()
    };
    let is_reordered = compared.is_sampled && order(compared.before) != order(compared.after);
    let text = "another order, and paths of regexes are only sampled".to_owned();
    let order = is_reordered.then(|| risk("routes", text));
    let lost = compared.unreachable.iter();
    let lost = lost.map(|id| risk(&format!("route {id}"), "takes no request".to_owned()));
    limits.chain(order).chain(lost).collect()
}

/// The values before that are not among those after, as text.
fn missing(change: &SettingChange) -> Vec<String> {
    let gone = change
        .before
        .iter()
        .filter(|value| !change.after.contains(value));
    texts(&gone.cloned().collect::<Vec<_>>())
}

/// The values after that are not among those before, as text.
fn added(change: &SettingChange) -> Vec<String> {
    let new = change
        .after
        .iter()
        .filter(|value| !change.before.contains(value));
    texts(&new.cloned().collect::<Vec<_>>())
}

/// The names of header fields before that are not among those after.
fn missing_names(change: &SettingChange) -> Vec<String> {
    let name = |text: String| match text.split_once(':') {
        Some((name, _)) => name.to_owned(),
        None => text,
    };
    let names = |values: &[Value]| -> Vec<String> { texts(values).into_iter().map(name).collect() };
    let after = names(&change.after);
    names(&change.before)
        .into_iter()
        .filter(|name| !after.contains(name))
        .collect()
}

fn becomes(change: &SettingChange, word: &str) -> bool {
    change.change != Change::Removed && texts(&change.after).iter().any(|value| value == word)
}

fn inspects_bodies(change: &SettingChange) -> bool {
    added(change).iter().any(|event| event.ends_with("-body"))
}

fn texts(values: &[Value]) -> Vec<String> {
    let text = |value: &Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    values.iter().map(text).collect()
}

fn shown(values: &[Value]) -> String {
    if values.is_empty() {
        return "none".to_owned();
    }
    texts(values).join(", ")
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
