//! The gauge of healthy targets, and the events of changes.

use crate::targets::target_event::{TargetEvent, changes};
use crate::worker::heartbeat;
use proxy_health::{HealthCause, HealthCauses};
use proxy_plan::{Plan, TargetPlan};
use proxy_telemetry::{Gauge, Registry, names};
use proxy_upstream::TargetState;
use std::collections::HashMap;
use std::sync::Arc;

/// The targets of the active plan with their gauges, which are exposed while this value exists.
#[derive(Debug, Default)]
pub(crate) struct TargetHealth(Vec<ObservedTarget>);

#[derive(Debug)]
struct ObservedTarget {
    upstream: Arc<str>,
    label: Arc<str>,
    state: Arc<TargetState>,
    gauge: Arc<Gauge>,
    /// The causes at the last check.
    causes: HealthCauses,
    /// Accepted requests at the last check.
    took_requests: bool,
}

impl TargetHealth {
    /// Observes the targets of `plan`, with their current state. A new target starts slowly, unless
    /// there were no targets before.
    pub(crate) fn new(plan: &Plan, registry: &Registry, before: &Self) -> Self {
        let known = before.0.iter();
        let known = known.map(|one| {
            let last = (one.causes, one.took_requests);
            (Arc::as_ptr(&one.state), last)
        });
        let known: HashMap<_, _> = known.collect();
        let known = |state: &Arc<TargetState>| {
            let last = known.get(&Arc::as_ptr(state)).copied();
            last.unwrap_or((state.causes(), before.0.is_empty()))
        };
        let targets = plan.upstreams().iter().flat_map(|upstream| {
            upstream.targets.iter().map(|target| {
                let labels = [&*upstream.name, &*target.label];
                let gauge = registry.gauge(&names::UPSTREAM_TARGET_HEALTHY, labels);
                let (causes, took_requests) = known(&target.state);
                ObservedTarget {
                    upstream: Arc::clone(&upstream.name),
                    label: Arc::clone(&target.label),
                    state: Arc::clone(&target.state),
                    gauge,
                    causes,
                    took_requests,
                }
            })
        });
        let mut health = Self(targets.collect());
        health.update_gauges();
        health
    }

    /// Updates the gauge of each target, and returns the changes since the last call.
    pub(crate) fn publish(&mut self) -> Vec<TargetEvent> {
        self.update_gauges();
        let mut events = Vec::new();
        for target in &mut self.0 {
            let causes = target.state.causes();
            let before = std::mem::replace(&mut target.causes, causes);
            if before != causes {
                let changes = changes(
                    &target.upstream,
                    &target.label,
                    &target.state,
                    before,
                    causes,
                );
                events.extend(changes);
            }
        }
        events
    }

    /// Ends expired ejections of targets of `plan`. Returns whether there were any.
    pub(crate) fn end_ejections(plan: &Plan) -> bool {
        let now_ns = heartbeat::now_ns();
        let upstreams = plan.upstreams().iter();
        let targets = upstreams.flat_map(|upstream| {
            let targets = upstream.targets.iter();
            targets.map(move |target| (upstream.outlier_detection.is_some(), &target.state))
        });
        let mut ended = false;
        for (detects, state) in targets {
            // Order matters: a worker sets the ejection before the cause, so a cause that is read first
            // is not newer than the ejection.
            let has_cause = state.causes().contains(HealthCause::Ejection);
            let outlier = state.outlier();
            if detects {
                outlier.poll(now_ns);
            } else if outlier.to_word() != 0 {
                // Without detection an ejection would never end, and would count against the share
                // of targets that may be ejected once there is detection again.
                outlier.restore(0);
            }
            if has_cause && !outlier.is_ejected() {
                state.clear(HealthCause::Ejection);
                ended = true;
            }
        }
        ended
    }

    /// Ends the overrides of targets of `plan` by the admin interface, which last until a reload.
    pub(crate) fn end_overrides(plan: &Plan) {
        let targets = plan.upstreams().iter().flat_map(|one| &one.targets);
        for target in targets {
            target.state.override_weight(None);
            target.state.drain(false);
        }
    }

    /// Extends an override of all former addresses of a DNS name to its new addresses in `plan`.
    pub(crate) fn extend_overrides(before: &Plan, plan: &Plan) {
        for (upstream, target) in named_targets(plan) {
            let former = named_targets(before).filter(|(of, other)| {
                *of == upstream && other.name == target.name && other.position == target.position
            });
            let former: Vec<_> = former.map(|(_, other)| &other.state).collect();
            let Some((first, rest)) = former.split_first() else {
                continue;
            };
            if former.iter().any(|state| Arc::ptr_eq(state, &target.state)) {
                continue;
            }
            let is_draining = |state: &TargetState| state.causes().contains(HealthCause::Draining);
            if former.iter().all(|state| is_draining(state)) {
                target.state.drain(true);
            }
            let weight = first.overridden_weight();
            if rest.iter().all(|state| state.overridden_weight() == weight) {
                target.state.override_weight(weight);
            }
        }
    }

    /// Updates the gauge of each target, and begins the slow start of targets that take requests
    /// again.
    fn update_gauges(&mut self) {
        for target in &mut self.0 {
            let causes = target.state.causes();
            target.gauge.set(u64::from(causes.is_healthy()));
            let takes_requests = causes.takes_requests();
            if takes_requests && !target.took_requests {
                target.state.serves_since(heartbeat::now_ns());
            }
            target.took_requests = takes_requests;
        }
    }
}

/// The targets of `plan` that are written by name, with the names of their upstreams.
fn named_targets(plan: &Plan) -> impl Iterator<Item = (&str, &TargetPlan)> {
    plan.upstreams().iter().flat_map(|upstream| {
        let named = upstream.targets.iter().filter(|one| one.name.is_some());
        named.map(|target| (&*upstream.name, target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::system_clock::now;
    use proxy_plan::TargetRegistry;

    fn reload(registry: &mut TargetRegistry, more: &str) -> Plan {
        let text = format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
             routes {{ route \"r\" {{ upstream \"u\" }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"127.0.0.1:81\"; target \"127.0.0.1:82\"; {more} }} }}"
        );
        let loaded = proxy_config::parse(&text, "test.kdl").unwrap();
        let mut transaction = registry.begin();
        let plan = Plan::compile(1, Arc::new(loaded.model), &mut transaction);
        registry.commit(transaction);
        plan
    }

    /// Ejects the target at `position`; false if it may not be ejected.
    fn eject(plan: &Plan, position: usize) -> bool {
        let upstream = &plan.upstreams()[0];
        let settings = upstream.outlier_detection.as_ref().unwrap();
        let peers = upstream.targets.iter().map(|peer| peer.state.outlier());
        let state = &upstream.targets[position].state;
        let is_ejected = state
            .outlier()
            .try_eject(peers, settings, heartbeat::now_ns());
        if is_ejected {
            state.fail(HealthCause::Ejection, "failures", now());
        }
        is_ejected
    }

    #[test]
    fn detection_that_is_removed_and_added_again_ejects_as_before() {
        let mut registry = TargetRegistry::default();
        let detecting = reload(&mut registry, "outlier-detection");
        assert!(eject(&detecting, 0));
        assert!(!eject(&detecting, 1), "at most half of the targets");
        assert!(
            !TargetHealth::end_ejections(&detecting),
            "it has just begun"
        );

        let without = reload(&mut registry, "");
        assert!(TargetHealth::end_ejections(&without));
        assert!(!TargetHealth::end_ejections(&without));

        let again = reload(&mut registry, "outlier-detection");
        assert!(eject(&again, 1), "no target is ejected any more");
        assert!(!TargetHealth::end_ejections(&again));
    }

    #[test]
    fn a_cause_without_an_ejection_ends() {
        let mut registry = TargetRegistry::default();
        let plan = reload(&mut registry, "outlier-detection");
        let state = &plan.upstreams()[0].targets[0].state;
        state.fail(HealthCause::Ejection, "failures", now());

        assert!(TargetHealth::end_ejections(&plan));
        assert!(state.causes().is_healthy());
    }
}
