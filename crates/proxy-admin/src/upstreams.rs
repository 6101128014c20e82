//! The JSON document of `/admin/upstreams`: health and counts of targets.

use proxy_health::HealthCause;
use proxy_plan::{Plan, TargetPlan, UpstreamPlan};
use proxy_telemetry::names::DNS_NEXT_LOOKUP_TIMESTAMP_SECONDS;
use proxy_telemetry::{Snapshot, TargetTotal, UpstreamTotal, timestamp};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

/// Counts of targets, by upstream and address.
type Totals<'s> = HashMap<(&'s str, &'s str), &'s TargetTotal>;

/// Describes one target; `None` if there is no such target.
pub(crate) fn target_document(
    plan: &Plan,
    snapshot: &Snapshot,
    upstream: &str,
    address: &str,
) -> Option<Value> {
    let mut upstreams = plan.upstreams().iter();
    let found = upstreams.find(|one| *one.name == *upstream)?;
    let mut targets = found.targets.iter();
    let found = targets.find(|one| *one.label == *address)?;
    let totals = totals(snapshot);
    let total = totals.get(&(upstream, address)).copied();
    Some(target(found, total, snapshot))
}

fn totals(snapshot: &Snapshot) -> Totals<'_> {
    let targets = snapshot.targets.iter();
    targets
        .map(|(name, total)| ((&*name.upstream, &*name.address), total))
        .collect()
}

pub(crate) fn document(plan: &Plan, snapshot: &Snapshot) -> Value {
    let totals = totals(snapshot);
    let upstreams: Map<String, Value> = plan
        .upstreams()
        .iter()
        .map(|one| {
            let all = snapshot.upstreams.iter();
            let mut own = all.filter(|(name, _)| **name == *one.name);
            let total = own.next().map(|(_, total)| total);
            (
                one.name.to_string(),
                upstream(one, total, &totals, snapshot),
            )
        })
        .collect();
    json!({ "upstreams": upstreams })
}

fn upstream(
    upstream: &UpstreamPlan,
    total: Option<&UpstreamTotal>,
    totals: &Totals<'_>,
    snapshot: &Snapshot,
) -> Value {
    let (made, refused) = total.map_or((0, 0), |total| (total.retries, total.retries_refused));
    let healthy = upstream
        .targets
        .iter()
        .any(|one| one.state.causes().is_healthy());
    let targets = upstream.targets.iter().map(|one| {
        let total = totals.get(&(&*upstream.name, &*one.label));
        target(one, total.copied(), snapshot)
    });
    json!({
        "healthy": healthy,
        "retries": { "made": made, "refused_by_budget": refused },
        "targets": targets.collect::<Vec<_>>(),
    })
}

/// Describes changes by the admin interface; null if there are none.
fn overridden(target: &TargetPlan) -> Value {
    let weight = target.state.overridden_weight();
    let draining = target.state.causes().contains(HealthCause::Draining);
    if weight.is_none() && !draining {
        return Value::Null;
    }
    json!({ "weight": weight, "draining": draining })
}

fn target(target: &TargetPlan, total: Option<&TargetTotal>, snapshot: &Snapshot) -> Value {
    let none = TargetTotal::default();
    let TargetTotal {
        requests,
        failures,
        active,
    } = total.unwrap_or(&none);
    // Read once, so that the fields of the document agree.
    let unhealthy_reason = target.state.unhealthy_reason();
    let causes = target.state.causes();
    let causes = causes.iter().map(HealthCause::name);
    let mut entry = json!({
        "address": &*target.label,
        "healthy": unhealthy_reason.is_none(),
        "active_connections": active,
        "total_requests": requests,
        "failed_requests": failures,
        "weight": target.state.overridden_weight().unwrap_or(target.weight),
        "backup": target.is_backup,
        "override": overridden(target),
        "causes": causes.collect::<Vec<_>>(),
        "recent_checks": target.state.results().iter().collect::<Vec<_>>(),
    });
    if let (Some(entry), Some(name)) = (entry.as_object_mut(), target.name.as_deref()) {
        entry.insert("name".to_owned(), name.into());
        let next = snapshot.gauge(DNS_NEXT_LOOKUP_TIMESTAMP_SECONDS.metric.name, "name", name);
        let next = next.map(|secs| timestamp(UNIX_EPOCH + Duration::from_secs(secs)));
        entry.insert("next_lookup".to_owned(), next.into());
    }
    if let (Some(entry), Some(unhealthy_reason)) = (entry.as_object_mut(), unhealthy_reason) {
        entry.insert(
            "last_error".to_owned(),
            unhealthy_reason.last_error.as_str().into(),
        );
        let since = timestamp(unhealthy_reason.since);
        entry.insert("unhealthy_since".to_owned(), since.into());
    }
    entry
}
