//! Changes of one target, in force until the next reload.

use crate::json_body::parse_members;
use crate::state::AdminState;
use crate::upstreams;
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::{Plan, TargetPlan, UpstreamPlan};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Maximum weight, as in configurations.
const MAX_WEIGHT: u64 = 10_000;

/// Parsed body `{"weight": …, "draining": …}`; at least one of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TargetPatch {
    weight: Option<u32>,
    draining: Option<bool>,
}

/// Changes a target of the active plan and notifies all workers. Returns the target's entry of
/// `/admin/upstreams`.
pub(crate) fn apply(
    state: &AdminState,
    upstream: &str,
    address: &str,
    body: &[u8],
) -> Result<Value, Problem> {
    let documents = state.plan.load();
    let found = find(&documents.plan, upstream, address);
    let shown = found
        .first()
        .map(|target| Arc::clone(&target.label))
        .ok_or_else(|| Problem::new(Reason::AdminTargetUnknown, Detail::None))?;
    let TargetPatch { weight, draining } = TargetPatch::read(body)
        .map_err(|wrong| Problem::new(Reason::AdminBodyInvalid, Detail::text(wrong)))?;
    for target in found {
        if let Some(weight) = weight {
            target.state.override_weight(Some(weight));
        }
        if let Some(draining) = draining {
            target.state.drain(draining);
        }
    }
    // Workers see the change before the client has the response.
    state.sources.target_changes.note();
    state.sources.health_changes.notify_one();
    let snapshot = state.sources.registry.snapshot();
    let document = upstreams::target_document(&documents.plan, &snapshot, upstream, &shown);
    document.ok_or_else(|| Problem::new(Reason::AdminTargetUnknown, Detail::None))
}

/// Finds the target at `address`, or all current addresses of a target with that name.
fn find<'p>(plan: &'p Plan, upstream: &str, address: &str) -> Vec<&'p TargetPlan> {
    let mut upstreams = plan.upstreams().iter();
    let targets = upstreams.find(|one| *one.name == *upstream);
    let targets = targets.map_or(&[][..], |UpstreamPlan { targets, .. }| targets);
    let has_address = |target: &&TargetPlan| {
        let name = target.name.as_deref();
        *target.label == *address || name == Some(address)
    };
    targets.iter().filter(has_address).collect()
}

impl TargetPatch {
    fn read(body: &[u8]) -> Result<Self, String> {
        let members = parse_members(body)?;
        if members.is_empty() {
            return Err("write `weight` or `draining`".to_owned());
        }
        let known = ["weight", "draining"];
        if let Some(unknown) = members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!(
                "`{unknown}` is not known; write `weight` or `draining`"
            ));
        }
        Ok(Self {
            weight: weight(&members)?,
            draining: match members.get("draining") {
                None => None,
                Some(Value::Bool(draining)) => Some(*draining),
                Some(_) => return Err("`draining` is true or false".to_owned()),
            },
        })
    }
}

fn weight(members: &Map<String, Value>) -> Result<Option<u32>, String> {
    let Some(written) = members.get("weight") else {
        return Ok(None);
    };
    let weight = written.as_u64().filter(|weight| *weight <= MAX_WEIGHT);
    let weight = weight.and_then(|weight| u32::try_from(weight).ok());
    match weight {
        Some(weight) => Ok(Some(weight)),
        None => Err(format!("`weight` is a whole number from 0 to {MAX_WEIGHT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_contains_the_changed_fields_only() {
        let read = |body: &str| TargetPatch::read(body.as_bytes()).ok();
        let patch = |weight, draining| Some(TargetPatch { weight, draining });

        assert_eq!(read(r#"{"weight":0}"#), patch(Some(0), None));
        assert_eq!(
            read(r#"{"draining":true,"weight":10000}"#),
            patch(Some(10_000), Some(true))
        );
        for wrong in [
            "",
            "{}",
            "[]",
            "7",
            r#"{"weight":10001}"#,
            r#"{"weight":-1}"#,
            r#"{"weight":1.5}"#,
            r#"{"weight":null}"#,
            r#"{"draining":"yes"}"#,
            r#"{"weight":1,"wait":2}"#,
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused_with_its_place() {
        for (body, cause) in [
            (
                r#"{"weight":1,"weight":2}"#,
                "`weight` is set twice at line 1 column 20",
            ),
            (
                "{\"draining\": true,\n \"draining\": true}",
                "`draining` is set twice at line 2 column 11",
            ),
            (
                r#"{"weight":1,"w\u0065ight":1}"#,
                "`weight` is set twice at line 1 column 25",
            ),
        ] {
            let refused = TargetPatch::read(body.as_bytes()).unwrap_err();
            assert_eq!(refused, format!("the body cannot be used: {cause}"));
        }
    }
}
