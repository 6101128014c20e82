//! The body of `/admin/upstreams`.

use proxy_plan::{Plan, TargetPlan, UpstreamPlan};
use proxy_telemetry::{Snapshot, TargetTotal, timestamp};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Metrics of targets, by upstream and address.
type Totals<'s> = HashMap<(&'s str, &'s str), &'s TargetTotal>;

pub(crate) fn document(plan: &Plan, snapshot: &Snapshot) -> Value {
    let totals: Totals<'_> = snapshot
        .targets
        .iter()
        .map(|(name, total)| ((&*name.upstream, &*name.address), total))
        .collect();
    let upstreams: Map<String, Value> = plan
        .upstreams()
        .iter()
        .map(|one| (one.name.to_string(), upstream(one, &totals)))
        .collect();
    json!({ "upstreams": upstreams })
}

fn upstream(upstream: &UpstreamPlan, totals: &Totals<'_>) -> Value {
    let healthy = upstream.targets.iter().any(|one| one.state.is_healthy());
    let targets = upstream.targets.iter().map(|one| {
        let total = totals.get(&(&*upstream.name, &*one.label));
        target(one, total.copied())
    });
    json!({ "healthy": healthy, "targets": targets.collect::<Vec<_>>() })
}

fn target(target: &TargetPlan, total: Option<&TargetTotal>) -> Value {
    let none = TargetTotal::default();
    let TargetTotal {
        requests,
        failures,
        active,
    } = total.unwrap_or(&none);
    // Read once, so that the fields of the document agree.
    let unhealthy_reason = target.state.unhealthy_reason();
    let mut entry = json!({
        "address": &*target.label,
        "healthy": unhealthy_reason.is_none(),
        "active_connections": active,
        "total_requests": requests,
        "failed_requests": failures,
    });
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
