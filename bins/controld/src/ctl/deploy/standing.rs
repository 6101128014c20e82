//! State of these bytes on the nodes: rollouts that are under way, and the nodes' reports.

use crate::ctl::client::Call;
use crate::ctl::deploy::{Deployment, preview};
use crate::ctl::error::CtlError;
use crate::ctl::lookup::text;
use crate::ctl::output::escape::inline;
use crate::ctl::output::report;
use crate::ctl::value::is_within;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

type Fields = Map<String, Value>;

impl Deployment<'_> {
    /// Returns the rollout that is under way with bytes that nodes are ordered to run already.
    pub(super) async fn rollout_of_ordered(&self) -> Result<Option<Value>, CtlError> {
        for bundle in preview::same_bundles(&self.preview) {
            if let Some(found) = self.under_way(bundle).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the rollout of this bundle to the same nodes that has not ended. Its nodes take part in
    /// no other one, so it goes on with its own settings: those of the command line that differ are
    /// reported.
    pub(super) async fn under_way(&self, bundle: &str) -> Result<Option<Value>, CtlError> {
        let list = format!("{}/rollouts", self.project);
        let query = format!("{list}?bundle={bundle}");
        for found in self.lookup.all(&query, None).await? {
            if !is_under_way(text(&found, "state")) {
                continue;
            }
            let path = format!("{list}/{}", text(&found, "id"));
            let rollout = self.lookup.client.json(&Call::get(path.as_str())).await?;
            if !has_same_labels(&self.rollout, &rollout)
                || !self.has_same_nodes(&path, &rollout).await?
            {
                continue;
            }
            let kept = kept_settings(&self.rollout, &rollout);
            if !kept.is_empty() {
                let (id, kept) = (inline(text(&rollout, "id")), kept.join(", "));
                report(&format!(
                    "rollout {id} of the same bytes is under way and goes on with its own settings: {kept}"
                ));
            }
            return Ok(Some(rollout));
        }
        Ok(None)
    }

    /// Returns true if the rollout has the nodes that a new one would have.
    async fn has_same_nodes(&self, path: &str, rollout: &Value) -> Result<bool, CtlError> {
        let Some(named) = named_nodes(&self.rollout) else {
            let nodes = rollout.get("nodes").and_then(Value::as_i64);
            return Ok(nodes == Some(preview::nodes(&self.preview)));
        };
        let nodes = self.lookup.all(&format!("{path}/nodes"), None).await?;
        let nodes = nodes.iter().map(|node| text(node, "id").to_owned());
        Ok(nodes.collect::<BTreeSet<String>>() == named)
    }

    /// Returns true if a new rollout would change nothing: bundles with these bytes are ordered, none
    /// was revoked, and each node reports that it has accepted the order.
    pub(super) async fn is_in_force(&self) -> Result<bool, CtlError> {
        let same = preview::same_bundles(&self.preview);
        let named = named_nodes(&self.rollout);
        if same.is_empty() || named.is_none() && !preview::is_ordered(&self.preview) {
            return Ok(false);
        }
        for bundle in &same {
            let path = format!("{}/bundles/{bundle}", self.project);
            let found = self.lookup.client.json(&Call::get(path)).await?;
            if text(&found, "state") != "signed" {
                return Ok(false);
            }
        }
        let nodes = match self
            .lookup
            .all(&format!("{}/nodes", self.project), None)
            .await
        {
            Err(error) if error.status() == Some(403) => {
                report("the key has no right to read nodes (nodes:read): a rollout asks them");
                return Ok(false);
            }
            nodes => nodes?,
        };
        let labels = self.rollout.get("labels").unwrap_or(&Value::Null);
        let mut chosen = nodes
            .iter()
            .filter(|node| match &named {
                Some(named) => named.contains(text(node, "id")),
                None => is_chosen(node, labels),
            })
            .peekable();
        Ok(chosen.peek().is_some() && chosen.all(|node| has_accepted(node, &same)))
    }
}

/// Returns the IDs of the nodes that the command line names, in lower case as in answers.
fn named_nodes(fields: &Fields) -> Option<BTreeSet<String>> {
    let nodes = fields.get("nodes")?.as_array()?;
    let ids = nodes.iter().filter_map(Value::as_str);
    Some(ids.map(str::to_ascii_lowercase).collect())
}

fn is_under_way(state: &str) -> bool {
    matches!(
        state,
        "awaiting_approval" | "running" | "paused" | "failed" | "rolling_back"
    )
}

/// Returns true if the rollout selects nodes by the labels of the command line.
fn has_same_labels(given: &Fields, rollout: &Value) -> bool {
    let no_labels = Value::Object(Map::new());
    let labels = given.get("labels").unwrap_or(&no_labels);
    rollout.get("labels") == Some(labels)
}

/// Returns the settings of the rollout that differ from the command line, as flags, with their values
/// unless these are objects. Settings that the command line leaves out are not compared.
fn kept_settings(given: &Fields, rollout: &Value) -> Vec<String> {
    let own = |name: &str| rollout.get(name).unwrap_or(&Value::Null);
    let is_same = |(name, value): (&String, &Value)| match name.as_str() {
        "labels" | "nodes" => true,
        "skip_gate" => *value != Value::Bool(true) || own("gate").is_null(),
        // The project's policy may require it as well.
        "needs_approval" => *value != Value::Bool(true) || own(name) == value,
        name => is_within(value, own(name)),
    };
    let differing = given.iter().filter(|field| !is_same(*field));
    let shown = differing.map(|(name, _)| {
        let name = match name.as_str() {
            "skip_gate" => "gate",
            name => name,
        };
        let flag = name.replace('_', "-");
        let value = own(name);
        if value.is_object() {
            return flag;
        }
        format!("{flag} {}", inline(&value.to_string()))
    });
    shown.collect()
}

/// Returns true if a rollout to nodes with these labels includes the node. Nodes that wait for the
/// approval of their labels are in none.
fn is_chosen(node: &Value, labels: &Value) -> bool {
    let own = node.get("labels").unwrap_or(&Value::Null);
    let is_waiting = node.get("requested_labels").is_some_and(Value::is_object);
    let wanted = labels.as_object().into_iter().flatten();
    let mut pairs = wanted.map(|(name, value)| own.get(name) == Some(value));
    !is_waiting && pairs.all(|is_same| is_same)
}

/// Returns true if the node was ordered to run one of the bundles, has accepted that order, and
/// reports the bundle as active.
fn has_accepted(node: &Value, bundles: &[&str]) -> bool {
    let own = |pointer: &str| node.pointer(pointer);
    let ordered = own("/desired/bundle").and_then(Value::as_str);
    ordered.is_some_and(|ordered| bundles.contains(&ordered))
        && own("/status/active") == own("/desired/bundle")
        && own("/status/order") == own("/desired/order")
        && own("/status/verdict").and_then(Value::as_str) == Some("accepted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_has_accepted_only_the_order_that_it_answered() {
        let node = |active: &str, order: i64, verdict: &str| {
            json!({"desired": {"bundle": "b", "order": 7},
                "status": {"active": active, "order": order, "verdict": verdict}})
        };
        assert!(has_accepted(&node("b", 7, "accepted"), &["a", "b"]));
        for (other, bundles) in [
            (node("b", 7, "accepted"), &["a"]),
            (node("a", 7, "accepted"), &["b"]),
            (node("b", 6, "accepted"), &["b"]),
            (node("b", 7, "rejected"), &["b"]),
            (
                json!({"desired": {"bundle": "b", "order": 7}, "status": null}),
                &["b"],
            ),
            (json!({"desired": null, "status": null}), &["b"]),
        ] {
            assert!(!has_accepted(&other, bundles), "{other}");
        }
    }

    #[test]
    fn a_rollout_under_way_keeps_its_settings_and_names_those_that_differ() {
        let rollout = json!({"labels": {"tier": "edge"}, "soak_secs": 60, "gate": {"min_requests": 100, "p99_slack_ms": 10},
            "needs_approval": true});
        for (given, kept) in [
            (json!({"soak_secs": 1}), &["soak-secs 60"][..]),
            (json!({}), &[]),
            (json!({"soak_secs": 60, "gate": {"min_requests": 100}}), &[]),
            (json!({"skip_gate": true}), &["gate"]),
            (json!({"skip_gate": false, "needs_approval": false}), &[]),
            (
                json!({"gate": {"min_requests": 1}, "not_before": "2026-11-30T08:00:00Z"}),
                &["gate", "not-before null"],
            ),
        ] {
            let given = given.as_object().unwrap();
            assert_eq!(kept_settings(given, &rollout), kept, "{given:?}");
        }
        for (given, same) in [
            (json!({"labels": {"tier": "edge"}, "soak_secs": 1}), true),
            (json!({}), false),
            (json!({"labels": {"tier": "core"}}), false),
        ] {
            let given = given.as_object().unwrap();
            assert_eq!(has_same_labels(given, &rollout), same, "{given:?}");
        }
    }

    #[test]
    fn nodes_are_named_in_capitals_too() {
        let fields = json!({"nodes": ["01900000-0000-7000-8000-00000000ABCD"]});
        let named = named_nodes(fields.as_object().unwrap()).unwrap();
        assert!(named.contains("01900000-0000-7000-8000-00000000abcd"));
    }

    #[test]
    fn a_node_that_waits_for_its_labels_is_in_no_rollout() {
        let node = json!({"labels": {"tier": "edge", "zone": "1"}, "requested_labels": null});
        assert!(is_chosen(&node, &Value::Null));
        assert!(is_chosen(&node, &json!({"tier": "edge"})));
        assert!(!is_chosen(&node, &json!({"tier": "core"})));
        let waits = json!({"labels": {}, "requested_labels": {"tier": "edge"}});
        assert!(!is_chosen(&waits, &Value::Null));
    }
}
