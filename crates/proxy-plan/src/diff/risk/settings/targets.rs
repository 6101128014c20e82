//! The risk of other targets, other shares of requests, and other rules for healthy targets.

use super::values::{Classified, instead, listed, number};
use crate::diff::parts::Change;
use crate::diff::risk::class::RiskClass;
use crate::diff::risk::{Compared, Risk};
use crate::diff::setting_change::{SettingChange, SettingOwner, without_folder};
use proxy_model::registry::{health_check, outlier_detection, system, upstreams};
use proxy_model::{LoadBalancing, Model, Part, Service, Setting, Target, Upstream, effective_in};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum factor of a risky change of a target's share of requests.
const RISKY_SHARE_CHANGE: f64 = 2.0;

/// Minimum part of the requests that moves to or from a target to be a risk.
const MOVED_SHARE: f64 = 0.1;

/// Minimum time in seconds of a slow start that holds a recovered target back.
const LONG_START_SECS: f64 = 300.0;

/// Minimum factor of a risky growth of a slow start, or of a number of a health check.
const RISKY_GROWTH: f64 = 4.0;

/// Minimum factor of a risky decrease in a number of a health check.
const RISKY_DECREASE: f64 = 2.0;

/// Minimum interval in seconds of rare look-ups of targets' names.
const RARE_LOOKUP_SECS: f64 = 300.0;

/// The risk of targets that are checked or called differently. The first health check of an
/// upstream is no risk: nodes probe its targets before they serve the bundle.
pub(super) fn risk(compared: &Compared<'_>, change: &SettingChange) -> Classified {
    let row = change.row;
    if row.starts_with(health_check::HEALTH_CHECK.path) && !is_checked(compared.before, change) {
        return None;
    }
    if row == upstreams::VERIFY.path && change.change == Change::Added {
        return Some((
            RiskClass::TargetsChanged,
            "connects to its targets with TLS".to_owned(),
        ));
    }
    let numbers = || [&change.before, &change.after].map(|one| number(one).unwrap_or_default());
    let figures = [
        health_check::INTERVAL.path,
        health_check::TIMEOUT.path,
        health_check::HEALTHY_THRESHOLD.path,
        health_check::UNHEALTHY_THRESHOLD.path,
    ];
    if figures.contains(&row) && change.change == Change::Changed {
        let [before, after] = numbers();
        if before < after * RISKY_DECREASE && after <= before * RISKY_GROWTH {
            return None;
        }
    }
    if row == upstreams::SLOW_START.path {
        let [before, after] = numbers();
        return (LONG_START_SECS <= after && before * RISKY_GROWTH <= after).then(|| {
            let text = format!(
                "recovered targets get their share late: {}",
                instead(change)
            );
            (RiskClass::TargetsChanged, text)
        });
    }
    if row == upstreams::IDLE_TIMEOUT.path {
        let before = number(&change.before);
        let before = before.unwrap_or(upstreams::IDLE_TIMEOUT.default().as_secs_f64());
        let is_longer = number(&change.after).is_some_and(|after| before * RISKY_GROWTH <= after);
        return is_longer.then(|| {
            let text = format!(
                "requests are sent by connections that targets may have closed: {}",
                instead(change)
            );
            (RiskClass::TargetsChanged, text)
        });
    }
    if row == system::MIN_TTL_SECS.path {
        let [before, after] = numbers();
        return (RARE_LOOKUP_SECS <= after && before * RISKY_GROWTH <= after).then(|| {
            let text = format!("names of targets are looked up seldom: {}", instead(change));
            (RiskClass::TargetsChanged, text)
        });
    }
    if row == system::NAME_SERVERS.path {
        let text = format!(
            "names of targets are looked up elsewhere: {}",
            instead(change)
        );
        return Some((RiskClass::TargetsChanged, text));
    }
    let checks = [
        health_check::HEALTH_CHECK.path,
        outlier_detection::OUTLIER_DETECTION.path,
    ];
    if checks.iter().any(|block| row.starts_with(block)) {
        return Some((RiskClass::HealthCheckChanged, instead(change)));
    }
    let spoken = [upstreams::PROTOCOL.path, upstreams::SEND_PROXY.path];
    let is_sticky = row.starts_with(upstreams::STICKY.path);
    (is_sticky || spoken.contains(&row)).then(|| (RiskClass::TargetsChanged, instead(change)))
}

fn is_checked(model: &Model, change: &SettingChange) -> bool {
    let SettingOwner::Upstream(name) = &change.owner else {
        return true;
    };
    let mut upstreams = model.upstreams.iter();
    upstreams.any(|one| one.name == *name && one.health_check.is_some())
}

/// Returns true if two upstreams differ only in their names.
pub(crate) fn same_upstream([before, after]: [&Model; 2], old: &str, new: &str) -> bool {
    let named = |model: &'_ Model, name: &str| {
        let mut upstreams = model.upstreams.iter();
        upstreams.find(|one| one.name == name).cloned()
    };
    let (Some(old), Some(mut new)) = (named(before, old), named(after, new)) else {
        return false;
    };
    let addresses = |one: &Upstream| -> Vec<String> {
        let targets = one.targets.iter();
        targets.map(|target| target.address.to_string()).collect()
    };
    if addresses(&old) != addresses(&new) {
        return false;
    }
    new.name.clone_from(&old.name);
    let secret = |one: &Upstream| {
        one.sticky
            .secret
            .as_ref()
            .map(|secret| secret.value.clone())
    };
    let settings = |model: &Model, one: &Upstream| -> BTreeSet<(String, String)> {
        let all = effective_in(model, Part::Upstream(one)).into_iter();
        all.map(|one| (one.path, without_folder(model, one.value).to_string()))
            .collect()
    };
    secret(&old) == secret(&new) && settings(before, &old) == settings(after, &new)
}

/// The risks of changed targets in retained upstreams. A new target, or one in place of some of
/// them, is no risk by itself, unless it is a target of another upstream.
pub(crate) fn target_risks(compared: &Compared<'_>) -> Vec<Risk> {
    let risks = compared.after.upstreams.iter().filter_map(|after| {
        let before = compared
            .before
            .upstreams
            .iter()
            .find(|one| one.name == after.name)?;
        Some(Risk {
            class: RiskClass::TargetsChanged,
            subject: format!("upstream {}", after.name),
            change: changed(before, after).or_else(|| replaced(compared, before, after))?,
        })
    });
    risks.collect()
}

fn changed(before: &Upstream, after: &Upstream) -> Option<String> {
    if after.targets.len() < before.targets.len() {
        return Some(format!(
            "has {} targets instead of {}",
            after.targets.len(),
            before.targets.len()
        ));
    }
    let keeps = |upstream: &Upstream| {
        matches!(
            *upstream.load_balancing,
            LoadBalancing::Sticky | LoadBalancing::IpHash
        )
    };
    if *before.load_balancing != *after.load_balancing && (keeps(before) || keeps(after)) {
        return Some(format!(
            "clients do not stay with their target: `load-balancing` is {} instead of {}",
            after.load_balancing.name(),
            before.load_balancing.name()
        ));
    }
    let (old, new) = (kept(before, after), kept(after, before));
    let moved = old.iter().find(|(address, old)| {
        let new = new.get(*address).copied().unwrap_or_default();
        is_far(**old, new)
    })?;
    let (address, share) = moved;
    let percent = |share: f64| (share * 100.0).round();
    Some(format!(
        "target {address} gets {} % of the requests of its kept targets instead of {} %",
        percent(new.get(address).copied().unwrap_or_default()),
        percent(*share)
    ))
}

/// The change if the new targets replace all former ones, or if one of them belonged to another
/// upstream only.
fn replaced(compared: &Compared<'_>, before: &Upstream, after: &Upstream) -> Option<String> {
    let addresses = |upstream: &Upstream| -> BTreeSet<String> {
        let used = upstream.targets.iter().filter(|one| *one.weight > 0);
        used.map(|target| target.address.to_string()).collect()
    };
    let (old, new) = (addresses(before), addresses(after));
    let is_relayed = || {
        [compared.before, compared.after]
            .iter()
            .any(|model| relays(model, after))
    };
    if old.is_disjoint(&new) && !old.is_empty() && !new.is_empty() {
        let sends = if is_relayed() {
            "relays connections"
        } else {
            "sends all requests"
        };
        return Some(format!(
            "{sends} to other targets: {} instead of {}",
            listed(&new.into_iter().collect::<Vec<_>>()),
            listed(&old.into_iter().collect::<Vec<_>>())
        ));
    }
    let others = compared.before.upstreams.iter();
    let others = others.filter(|other| other.name != before.name);
    let mut others = others.map(|other| (other, addresses(other)));
    others.find_map(|(other, targets)| {
        let taken = new.difference(&old).find(|one| targets.contains(*one))?;
        // Upstreams with common targets are two names of one service.
        targets
            .is_disjoint(&old)
            .then(|| format!("target {taken} was one of upstream {} alone", other.name))
    })
}

/// Returns true if a listener relays connections to an upstream, without requests that have a
/// status.
fn relays(model: &Model, upstream: &Upstream) -> bool {
    let is_relayed = |name: &Setting<String>| {
        let mut listeners = model.listeners.iter();
        listeners.any(|one| one.name == name.value && one.protocol.is_relayed())
    };
    let mut routes = model.routes.iter();
    routes.any(|route| {
        let Service::Upstream(index) = &route.service else {
            return false;
        };
        let own = model.upstream(index.value);
        own.is_some_and(|own| own.name == upstream.name) && route.listeners.iter().any(is_relayed)
    })
}

/// Each target's share in the weights of the targets that `other` has, too. Backup targets have
/// none.
fn kept(upstream: &Upstream, other: &Upstream) -> BTreeMap<String, f64> {
    let is_kept = |target: &&Target| {
        let mut others = other.targets.iter();
        others.any(|one| *one.address == *target.address)
    };
    let weight = |target: &Target| {
        let weight = if *target.backup { 0 } else { *target.weight };
        f64::from(weight)
    };
    let targets: Vec<&Target> = upstream.targets.iter().filter(is_kept).collect();
    let total: f64 = targets.iter().map(|target| weight(target)).sum();
    let share = |target: &Target| {
        if total > 0.0 {
            weight(target) / total
        } else {
            0.0
        }
    };
    let shares = targets
        .iter()
        .map(|target| (target.address.to_string(), share(target)));
    shares.collect()
}

fn is_far(old: f64, new: f64) -> bool {
    let (least, greatest) = if old < new { (old, new) } else { (new, old) };
    least + MOVED_SHARE <= greatest && least * RISKY_SHARE_CHANGE <= greatest
}
