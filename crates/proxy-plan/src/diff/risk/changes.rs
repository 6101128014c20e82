//! The risks of a change: of settings and parts, and of its requests.

use super::class::RiskClass;
use super::removed_tests::removed_test_risks;
use super::requests::region_risks;
use super::sent_requests::sent_request_risks;
use super::settings::{
    classified, default_certificate_risks, is_new_and_open, network_risks, rate_limit_risks,
    target_risks,
};
use super::{Compared, Risk};
use crate::diff::parts::{Change, Part, PartChange};
use crate::diff::setting_change::{SettingChange, SettingOwner};
use ipnet::IpNet;
use proxy_model::registry::policies::{self, access};
use proxy_model::registry::upstreams;
use proxy_model::{Model, Route};
use std::collections::BTreeSet;

/// Maximum number of settings that are named in one risk of [`RiskClass::Unlisted`]; further ones
/// are counted.
const MAX_NAMED_SETTINGS: usize = 5;

/// The risks of a change, most severe class first.
pub(in crate::diff) fn risks(compared: &Compared<'_>) -> Vec<Risk> {
    let mut risks = region_risks(compared);
    let together: Vec<Risk> = rate_limit_risks(compared)
        .into_iter()
        .chain(target_risks(compared))
        .chain(network_risks(compared))
        .collect();
    let mut unlisted: Vec<&SettingChange> = Vec::new();
    for change in compared.settings {
        if !stays(compared, change) {
            continue;
        }
        let subject = subject(&change.owner);
        match classified(compared, change, routes(compared, &change.owner)) {
            Some((class, change)) => risks.push(Risk {
                class,
                subject,
                change,
            }),
            None if is_compared_together(change)
                && together.iter().any(|risk| risk.subject == subject) => {}
            None => unlisted.push(change),
        }
    }
    risks.extend(together);
    risks.extend(default_certificate_risks(compared));
    risks.extend(
        compared
            .parts
            .iter()
            .filter_map(|part| part_risk(compared, part)),
    );
    risks.extend(sent_request_risks(compared));
    risks.extend(removed_test_risks(compared.before, compared.after));
    risks.extend(unlisted_settings(&unlisted));
    risks.extend(uncertainties(compared));
    risks.sort();
    risks.dedup();
    risks
}

/// The routes before and after that have a setting; `None` for settings of other parts.
fn routes<'m>(compared: &Compared<'m>, owner: &SettingOwner) -> [Option<&'m Route>; 2] {
    let SettingOwner::Route(id) = owner else {
        return [None; 2];
    };
    let models = [compared.before, compared.after];
    models.map(|model| model.routes.iter().find(|route| route.id == *id))
}

/// Returns true if the owner of a setting is in both models; for other owners, the changed requests
/// are reported instead.
fn stays(compared: &Compared<'_>, change: &SettingChange) -> bool {
    let both = |has: &dyn Fn(&Model) -> bool| has(compared.before) && has(compared.after);
    is_new_and_open(change)
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

/// Returns true if a setting is one of a rate limit, decides the share of a target, or names
/// networks of clients.
fn is_compared_together(change: &SettingChange) -> bool {
    let blocks = [
        access::LISTENER_ALLOW.path,
        access::LISTENER_DENY.path,
        access::ALLOW.path,
        access::DENY.path,
        policies::RATE_LIMIT.path,
        upstreams::TARGETS.path,
        upstreams::LOAD_BALANCING.path,
    ];
    blocks.iter().any(|block| change.row.starts_with(block))
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

fn part_risk(compared: &Compared<'_>, change: &PartChange) -> Option<Risk> {
    let (class, text) = match (&change.part, change.change) {
        (Part::Listener(_), Change::Removed) => (RiskClass::ListenerRemoved, "is gone"),
        (Part::Listener(name), _) if is_more_open(compared, name) => {
            let text = "is new, and admits networks or trusts proxies that no listener did before";
            (RiskClass::AccessWidened, text)
        }
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

/// Returns true if a new listener has no list of networks although all listeners before had one, or
/// trusts further proxies.
fn is_more_open(compared: &Compared<'_>, name: &str) -> bool {
    let before = &compared.before.listeners;
    let Some(new) = compared.after.listeners.iter().find(|one| one.name == name) else {
        return false;
    };
    let is_closed = !before.is_empty() && before.iter().all(|one| !one.access.is_open());
    let trusts = |network: &IpNet| {
        let trusted = before.iter().flat_map(|one| &one.trusted_proxies);
        trusted.into_iter().any(|one| **one == *network)
    };
    is_closed && new.access.is_open() || !new.trusted_proxies.iter().all(|one| trusts(one))
}

/// A single risk for all settings in no class.
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

/// Risks beyond the comparison: reached limits, another order of routes with sampled regexes, and
/// routes without requests.
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
