//! The risk of other agents, and of changes to their calls.

use super::values::{Classified, added, becomes, instead, listed, missing};
use crate::diff::parts::Change;
use crate::diff::risk::Compared;
use crate::diff::risk::class::RiskClass;
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::{agents, routes};
use proxy_model::{Model, effective};
use std::collections::BTreeSet;

pub(super) fn risk(compared: &Compared<'_>, change: &SettingChange) -> Classified {
    let row = change.row;
    if row == routes::AGENTS.path {
        let new = added(change);
        let is_renamed = |old: &String| {
            let mut new = new.iter();
            new.any(|new| same_agent([compared.before, compared.after], old, new))
        };
        let gone: Vec<String> = missing(change)
            .into_iter()
            .filter(|old| !is_renamed(old))
            .collect();
        if missing(change).is_empty() && added(change).is_empty() {
            let text = format!("another order of agents: {}", instead(change));
            return Some((RiskClass::AgentChanged, text));
        }
        return (!gone.is_empty()).then(|| {
            (
                RiskClass::AgentRemoved,
                format!("no longer asks: {}", listed(&gone)),
            )
        });
    }
    if row == agents::FAILURE_MODE.path && becomes(change, "open") {
        let text = "requests continue while it is unavailable".to_owned();
        return Some((RiskClass::AgentFailsOpen, text));
    }
    if row == agents::EVENTS.path && added(change).iter().any(|event| event.ends_with("-body")) {
        return Some((RiskClass::BodyHeld, "inspects bodies".to_owned()));
    }
    if row == agents::COPY_HEADERS.path && !missing(change).is_empty() {
        let text = format!(
            "no longer replaces the client's own {}",
            listed(&missing(change))
        );
        return Some((RiskClass::AgentChanged, text));
    }
    let changed = [
        agents::UNIX_SOCKET.path,
        agents::PATH.path,
        agents::UPSTREAM.path,
        agents::PROTOCOL.path,
        agents::REQUEST_PATH.path,
        agents::REQUEST_HOST.path,
        agents::COPY_RESPONSE_HEADERS.path,
        agents::ENCODING.path,
    ];
    let is_less = row == agents::EVENTS.path && !missing(change).is_empty()
        || row == agents::ON_OVERSIZE.path && change.change == Change::Changed;
    (is_less || changed.contains(&row)).then(|| (RiskClass::AgentChanged, instead(change)))
}

/// Returns true if an agent is new, or differs, and requests continue without it.
pub(crate) fn is_new_and_open(change: &SettingChange) -> bool {
    change.row == agents::FAILURE_MODE.path && becomes(change, "open")
}

/// Returns true if the agents `old` of `before` and `new` of `after` differ only in their names.
pub(crate) fn same_agent([before, after]: [&Model; 2], old: &str, new: &str) -> bool {
    let old = settings(before, old);
    !old.is_empty() && old == settings(after, new)
}

/// The settings of an agent, without its name.
fn settings(model: &Model, name: &str) -> BTreeSet<(&'static str, String)> {
    let block = format!("agents.agent[{name:?}].");
    let own = effective(model)
        .into_iter()
        .filter(|one| one.path.starts_with(&block));
    own.map(|one| (one.row, one.value.to_string())).collect()
}
