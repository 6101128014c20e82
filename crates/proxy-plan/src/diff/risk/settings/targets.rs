//! The risk of other targets, other shares of requests, and other rules for healthy targets.

use super::values::{Classified, instead};
use crate::diff::risk::class::RiskClass;
use crate::diff::risk::{Compared, Risk};
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::{health_check, outlier_detection, upstreams};
use proxy_model::{LoadBalancing, Target, Upstream};
use std::collections::BTreeMap;

/// Factor by which a target's share of requests changes if it is a risk.
const FACTOR: f64 = 2.0;

/// The risk of targets that are checked or spoken to otherwise.
pub(super) fn risk(change: &SettingChange) -> Classified {
    let row = change.row;
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

/// The risks of the targets of upstreams that stay. A new target, or one in place of another, is in no class of its own.
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
            change: changed(before, after)?,
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
    let moved = { old.iter() }.find(|(address, old)| {
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

/// The share of each target's weight in the weights of the targets that `other` has too. Backup targets have none.
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
    greatest > 0.0 && least * FACTOR <= greatest
}
