//! Risks of removed tests, which no longer find later mistakes.

use super::Risk;
use super::class::RiskClass;
use super::settings::same_agent;
use proxy_model::{ConfigTest, Model, Prohibition, Setting};
use std::fmt::Display;

/// The risks of tests without a successor of the same name or request, and of removed or changed
/// prohibitions.
pub(super) fn removed_test_risks(before: &Model, after: &Model) -> Vec<Risk> {
    let request = |test: &ConfigTest| (test.request.method.clone(), test.request.url.clone());
    let tests = before.tests.iter().filter(|old| {
        let is_same = |new: &ConfigTest| {
            let is_kept = new.name == old.name || request(new) == request(old);
            // If the successor is not live, the old live test counts as removed.
            is_kept && (old.live.is_none() || new.live.is_some())
        };
        !after.tests.iter().any(is_same)
    });
    let tests = tests.map(|test| (format!("test {}", test.name), "is gone, or no longer sent"));
    let prohibitions = before.prohibitions.iter().filter(|old| {
        let mut new = after.prohibitions.iter();
        !new.any(|new| covered(new) == covered(old) && is_same_guard([before, after], old, new))
    });
    let prohibitions = prohibitions.map(|one| {
        (
            format!("never {}", one.name),
            "is gone, or forbids other requests",
        )
    });
    let gone = tests.chain(prohibitions).map(|(subject, change)| Risk {
        class: RiskClass::TestsRemoved,
        subject,
        change: change.to_owned(),
    });
    gone.collect()
}

/// Returns true if both prohibitions name the same agent, even under different names, or neither
/// has one.
fn is_same_guard(models: [&Model; 2], old: &Prohibition, new: &Prohibition) -> bool {
    match (&old.without_agent, &new.without_agent) {
        (Some(old), Some(new)) => old == new || same_agent(models, old, new),
        (old, new) => old.is_none() && new.is_none(),
    }
}

/// The forbidden requests, comparable regardless of name, place and agent.
fn covered(prohibition: &Prohibition) -> impl PartialEq + use<> {
    let Prohibition {
        name: _,
        place: _,
        listener,
        hosts,
        paths,
        upstream,
        without_agent: _, // Compared as an agent.
    } = prohibition;
    (
        listener.clone(),
        hosts.iter().map(shown).collect::<Vec<_>>(),
        paths.iter().map(shown).collect::<Vec<_>>(),
        upstream.clone(),
    )
}

fn shown<T: Display>(setting: &Setting<T>) -> String {
    setting.value.to_string()
}
