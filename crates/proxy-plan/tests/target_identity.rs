//! A target keeps its id while it stays the same, and no other target ever has it.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

use proxy_health::HealthCause;
use proxy_plan::{Plan, TargetRegistry};
use proxy_upstream::{TargetId, TargetState};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

/// A configuration with an upstream for each of `targets`, by name and with more settings.
fn config(targets: &[(&str, &str)]) -> String {
    let upstreams: Vec<String> = targets
        .iter()
        .map(|(name, more)| format!("upstream \"{name}\" {{ target \"127.0.0.1:81\"; {more} }}"))
        .collect();
    format!(
        "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
         routes {{ route \"all\" {{ upstream \"{}\" }} }}\n\
         upstreams {{ {} }}",
        targets[0].0,
        upstreams.join("\n")
    )
}

fn ids(plan: &Plan) -> Vec<TargetId> {
    let upstreams = plan.upstreams().iter();
    upstreams.map(|upstream| upstream.targets[0].id).collect()
}

/// The state of the first target after a reload to `targets`.
fn reloaded_state(registry: &mut TargetRegistry, targets: &[(&str, &str)]) -> Arc<TargetState> {
    let loaded = proxy_config::parse(&config(targets), "test.kdl").unwrap();
    let mut transaction = registry.begin();
    let plan = Plan::compile(1, Arc::new(loaded.model), &mut transaction);
    registry.commit(transaction);
    Arc::clone(&plan.upstreams()[0].targets[0].state)
}

/// The IDs that a reload to `targets` assigns; the reload is committed if `kept`.
fn reload(registry: &mut TargetRegistry, targets: &[(&str, &str)], kept: bool) -> Vec<TargetId> {
    let loaded = proxy_config::parse(&config(targets), "test.kdl").unwrap();
    let mut transaction = registry.begin();
    let plan = Plan::compile(1, Arc::new(loaded.model), &mut transaction);
    if kept {
        registry.commit(transaction);
    }
    ids(&plan)
}

#[test]
fn a_target_that_stays_keeps_its_id() {
    let mut registry = TargetRegistry::default();
    let first = reload(&mut registry, &[("a", ""), ("b", "")], true);
    let second = reload(&mut registry, &[("b", ""), ("c", ""), ("a", "")], true);

    assert_eq!([second[2], second[0]], [first[0], first[1]]);
    assert!(!first.contains(&second[1]));
}

#[test]
fn a_refused_reload_frees_no_slot() {
    let mut registry = TargetRegistry::default();
    let old = reload(&mut registry, &[("old", "")], true);
    for _ in 0..5 {
        reload(&mut registry, &[("other", "")], false);
    }

    let next = reload(&mut registry, &[("new", ""), ("old", "")], true);
    assert_eq!(next[1], old[0]);
    assert_ne!(next[0].slot, old[0].slot);
}

#[test]
fn a_slot_is_used_again_under_another_epoch() {
    let mut registry = TargetRegistry::default();
    let mut seen = BTreeSet::new();
    for number in 0..50 {
        let name = format!("upstream-{number}");
        let kept = number % 3 != 0;
        let ids = reload(&mut registry, &[(&name, "")], kept);
        assert!(seen.insert(ids[0].epoch), "epoch {} twice", ids[0].epoch);
        assert!(ids[0].slot < 2, "slot {}", ids[0].slot);
    }
}

#[test]
fn another_protocol_or_other_tls_is_another_target() {
    let mut registry = TargetRegistry::default();
    let kinds = [
        "",
        "protocol \"h2\"",
        "tls { sni \"a.test\" }",
        "tls { sni \"b.test\" }",
        "tls { pin-sha256 \"d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM=\" }",
        "tls { verify #false; pin-sha256 \"d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM=\" }",
        "send-proxy \"v1\"",
        "send-proxy \"v2\"",
    ];
    let mut seen = BTreeSet::new();
    for more in kinds {
        seen.insert(reload(&mut registry, &[("u", more)], true)[0].epoch);
    }
    assert_eq!(seen.len(), kinds.len());
}

#[test]
fn targets_of_one_plan_have_slots_of_their_own() {
    let mut registry = TargetRegistry::default();
    for names in [["a", "b", "c"], ["c", "d", "e"], ["f", "e", "a"]] {
        let targets = names.map(|name| (name, ""));
        let ids = reload(&mut registry, &targets, true);
        let slots: BTreeSet<u32> = ids.iter().map(|id| id.slot).collect();
        assert_eq!(slots.len(), 3, "{ids:?}");
    }
}

#[test]
fn a_target_that_is_removed_and_added_again_has_its_state() {
    let mut registry = TargetRegistry::default();
    let first = reloaded_state(&mut registry, &[("a", "")]);
    first.fail(HealthCause::Ejection, "500", SystemTime::UNIX_EPOCH);
    first.drain(true);
    for _ in 0..3 {
        let other = reloaded_state(&mut registry, &[("b", "")]);
        assert!(!other.causes().contains(HealthCause::Ejection));
    }

    let again = reloaded_state(&mut registry, &[("a", "")]);

    assert!(again.causes().contains(HealthCause::Ejection));
    assert!(!again.causes().contains(HealthCause::Draining));
}

#[test]
fn states_of_removed_targets_are_evicted_after_many() {
    let mut registry = TargetRegistry::default();
    let first = reloaded_state(&mut registry, &[("a", "")]);
    first.fail(HealthCause::Ejection, "500", SystemTime::UNIX_EPOCH);
    let names: Vec<String> = (0..1_100).map(|number| format!("u{number}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    reloaded_state(&mut registry, &many);
    reloaded_state(&mut registry, &[("b", "")]);

    let again = reloaded_state(&mut registry, &[("a", "")]);

    assert!(!again.causes().contains(HealthCause::Ejection));
}
