//! The parts of a battery: a configuration with its upstreams and clients, and the bundles that edit it.

use super::clients::Ask;
use proxy_testkit::Upstream;

/// A configuration that runs on all nodes, with clients that know its answers.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    /// The configuration without its tests. Names between `@` are placeholders of addresses and certificates of the run.
    pub(super) config: &'static str,
    /// Expectations that an operator would have of decisions.
    pub(super) pure_tests: &'static str,
    pub(super) live_tests: &'static str,
    /// The upstreams by the names of their placeholders.
    pub(super) upstreams: fn() -> Vec<(&'static str, Upstream)>,
    /// The requests of the clients.
    pub(super) asks: &'static [Ask],
}

/// A bundle, as an edit of the configuration that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) scene: &'static Scene,
    pub(super) name: &'static str,
    /// Texts and their replacements, each of which occurs.
    pub(super) edits: &'static [(&'static str, &'static str)],
    pub(super) condition: Condition,
}

/// A special condition of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Nothing,
    /// The ports of the listeners change.
    LosesListener,
    /// The load of the clients grows and falls during the rollout.
    LoadChanges,
    /// The load of the clients doubles at the start of the rollout.
    LoadDoubles,
}

/// A case of `scene` under no special condition.
pub(super) const fn case_of(
    scene: &'static Scene,
    name: &'static str,
    edits: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        scene,
        name,
        edits,
        condition: Condition::Nothing,
    }
}

/// The case under `condition`.
pub(super) const fn special(case: Case, condition: Condition) -> Case {
    Case { condition, ..case }
}
