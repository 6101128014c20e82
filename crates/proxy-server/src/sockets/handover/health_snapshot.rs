//! The states of targets and circuit breakers of the old process, for the new one.

use crate::runtime::system_clock::now;
use proxy_health::{CircuitBreaker, HealthCause};
use proxy_plan::{Plan, Service, TargetPlan};
use std::collections::HashMap;

/// First field of the text; any other version is ignored.
const VERSION: &str = "proxyd-knowledge-1";

/// Maximum size of the text: it is one variable of the environment, which Linux limits to 128 KiB.
const MAX_BYTES: usize = 100 * 1024;

/// Health, ejections and breaker states of one process, by the names of the configuration. Times
/// are of the machine's monotonic clock, which both processes read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HealthSnapshot(HashMap<String, Vec<String>>);

impl HealthSnapshot {
    /// The text for the new process: unhealthy targets, and breakers that have counted a failure.
    /// Entries above the maximum size are omitted.
    pub(crate) fn encode(plan: &Plan) -> String {
        let mut text = VERSION.to_owned();
        let targets = plan.upstreams().iter().flat_map(|upstream| {
            let targets = upstream.targets.iter();
            targets.filter_map(|target| target_entry(&upstream.name, target))
        });
        let breakers = named_breakers(plan).filter_map(|(key, breaker)| {
            let word = breaker.to_word();
            (word != 0).then(|| entry(&key, &[word.to_string()]))
        });
        for line in targets.chain(breakers) {
            if text.len() + line.len() < MAX_BYTES {
                text.push_str(&line);
            }
        }
        text
    }

    /// Parses the text of [`Self::encode`]. The text of another version results in an empty
    /// snapshot.
    pub(crate) fn decode(text: &str) -> Self {
        let mut records = text.split(RECORD_END);
        if records.next() != Some(VERSION) {
            return Self::default();
        }
        let parsed = records.filter_map(|record| {
            let mut fields = record.split(FIELD_END).map(str::to_owned);
            Some((fields.next()?, fields.collect()))
        });
        Self(parsed.collect())
    }

    /// Restores the states of the targets and breakers of `plan`, before it serves.
    pub(crate) fn restore(&self, plan: &Plan) {
        let upstreams = plan.upstreams().iter().zip(&plan.model().upstreams);
        for (upstream, model) in upstreams {
            let kept = [
                (HealthCause::ActiveCheck, model.health_check.is_some()),
                (HealthCause::Ejection, upstream.outlier_detection.is_some()),
                (HealthCause::Connect, true),
            ];
            for target in &upstream.targets {
                let key = target_key(&upstream.name, target);
                if let Some(fields) = self.0.get(&key) {
                    restore_target(target, fields, &kept);
                }
            }
        }
        for (key, breaker) in named_breakers(plan) {
            let word = self.0.get(&key).and_then(|fields| fields.first());
            if let Some(Ok(word)) = word.map(|word| word.parse()) {
                breaker.restore(word);
            }
        }
    }
}

/// The separators of ASCII, which no name contains.
const RECORD_END: char = '\u{1e}';
const FIELD_END: char = '\u{1f}';

fn entry(key: &str, fields: &[String]) -> String {
    let clean = |text: &str| text.replace([RECORD_END, FIELD_END, '\0'], " ");
    let fields = fields
        .iter()
        .map(|field| format!("{FIELD_END}{}", clean(field)));
    format!("{RECORD_END}{}{}", clean(key), fields.collect::<String>())
}

fn target_key(upstream: &str, target: &TargetPlan) -> String {
    format!("target {upstream} {}", target.label)
}

/// Ejections and failed connects as packed numbers, the last error, and the causes; `None` for a
/// healthy target without them.
fn target_entry(upstream: &str, target: &TargetPlan) -> Option<String> {
    let state = &target.state;
    let (ejection, connects) = (state.outlier().to_word(), state.connect_backoff().to_word());
    let causes = state.causes();
    if causes.is_healthy() && ejection == 0 && connects == 0 {
        return None;
    }
    let last_error = state.unhealthy_reason().map(|reason| reason.last_error);
    let mut fields = vec![
        ejection.to_string(),
        connects.to_string(),
        last_error.unwrap_or_default(),
    ];
    fields.extend(causes.iter().map(|cause| cause.name().to_owned()));
    Some(entry(&target_key(upstream, target), &fields))
}

fn restore_target(target: &TargetPlan, fields: &[String], kept: &[(HealthCause, bool)]) {
    let [ejection, connects, last_error, causes @ ..] = fields else {
        return;
    };
    let (Ok(ejection), Ok(connects)) = (ejection.parse(), connects.parse()) else {
        return;
    };
    target.state.outlier().restore(ejection);
    target.state.connect_backoff().restore(connects);
    for (cause, is_kept) in kept {
        if *is_kept && causes.iter().any(|name| name == cause.name()) {
            target.state.fail(*cause, last_error, now());
        }
    }
    let mut causes = target.state.causes().iter();
    if target.state.outlier().is_ejected() && causes.all(|cause| cause != HealthCause::Ejection) {
        // The ejection would count against the share of targets that may be ejected, and never end.
        target.state.outlier().restore(0);
    }
}

/// The breakers of routes and of agents, by their owner and settings.
fn named_breakers(plan: &Plan) -> impl Iterator<Item = (String, &CircuitBreaker)> {
    let route_breakers = plan.routes().iter().filter_map(|route| {
        let Service::Upstream(position) = route.service else {
            return None;
        };
        let upstream = plan.upstreams().get(position)?;
        let owner = format!("route {} {}", route.id, upstream.name);
        Some((owner, route.breaker.as_ref()?))
    });
    let agent_breakers = plan.agents().iter().filter_map(|agent| {
        let owner = format!("agent {}", agent.name);
        Some((owner, agent.state.breaker.as_ref()?))
    });
    route_breakers
        .chain(agent_breakers)
        .map(|(owner, breaker)| {
            let settings = breaker.settings();
            (format!("{owner} {settings:?}"), breaker)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_health::BreakerState;
    use proxy_plan::TargetRegistry;
    use std::sync::Arc;

    fn plan(more: &str) -> Plan {
        let text = format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
             routes {{ route \"r\" {{ upstream \"u\"; circuit-breaker {{ failure-threshold 1 }} }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"127.0.0.1:81\"; target \"127.0.0.1:82\"; {more} }} }}"
        );
        let loaded = proxy_config::parse(&text, "test.kdl").unwrap();
        let mut targets = TargetRegistry::default().begin();
        Plan::compile(1, Arc::new(loaded.model), &mut targets)
    }

    #[test]
    fn health_ejections_and_breakers_are_those_of_the_old_process() {
        let checked = "health-check type=\"tcp\"; outlier-detection";
        let old = plan(checked);
        let target = &old.upstreams()[0].targets[1].state;
        for cause in [HealthCause::ActiveCheck, HealthCause::Connect] {
            target.fail(cause, "refused\0", now());
        }
        target.connect_backoff().fail(0);
        let settings = old.upstreams()[0].outlier_detection.as_ref().unwrap();
        let ejected = target.outlier().try_eject(std::iter::empty(), settings, 0);
        assert!(ejected && target.outlier().is_ejected());
        target.fail(HealthCause::Ejection, "refused", now());
        let breaker = old.routes()[0].breaker.as_ref().unwrap();
        breaker.admit(0).unwrap().failure(0);
        assert_eq!(breaker.state(), BreakerState::Open);

        let text = HealthSnapshot::encode(&old);
        assert!(!text.contains('\0'), "a variable of the environment");
        let (new, unchecked) = (plan(checked), plan(""));
        for plan in [&new, &unchecked] {
            HealthSnapshot::decode(&text).restore(plan);
            let breaker = plan.routes()[0].breaker.as_ref().unwrap();
            assert_eq!(breaker.state(), BreakerState::Open);
        }

        let causes = |plan: &Plan, at: usize| plan.upstreams()[0].targets[at].state.causes();
        assert!(causes(&new, 0).is_healthy());
        assert_eq!(causes(&new, 1), target.causes());
        let is_ejected = |plan: &Plan| plan.upstreams()[0].targets[1].state.outlier().is_ejected();
        assert!(is_ejected(&new) && !is_ejected(&unchecked));
        assert!(
            causes(&unchecked, 1).is_last_resort(),
            "no check is configured"
        );
    }

    #[test]
    fn a_text_of_another_version_is_ignored() {
        assert_eq!(
            HealthSnapshot::decode("proxyd-knowledge-2\u{1e}a\u{1f}1"),
            HealthSnapshot::default()
        );
        assert_eq!(HealthSnapshot::decode(""), HealthSnapshot::default());
    }
}
