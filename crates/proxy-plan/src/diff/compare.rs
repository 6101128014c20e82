//! The comparison of two plans.

use super::draining::drained;
use super::parts::part_changes;
use super::plan_diff::PlanDiff;
use super::risk::Compared;
use super::risk::changes::risks;
use super::risk::requests::successors;
use super::search::{DiffLimit, DiffSearch};
use super::setting_change::setting_changes;
use crate::plan::Plan;
use std::collections::{BTreeSet, HashSet};

impl PlanDiff {
    /// Compares `after` with `before`. All targets count as healthy; nothing is sent.
    #[must_use]
    pub fn compare(before: &Plan, after: &Plan) -> Self {
        compare(before, after)
    }
}

fn compare(before: &Plan, after: &Plan) -> PlanDiff {
    let (old, new) = (&**before.model(), &**after.model());
    let mut search = DiffSearch::new(before, after);
    search.run();
    let regions = search.regions();
    let sampled_regexes: Vec<String> = search.regexes.iter().cloned().collect();
    let limits: Vec<DiffLimit> = search.limits.iter().copied().collect();
    let unreachable = unreachable(before, after, &search);
    let mut settings = setting_changes(old, new);
    let parts = part_changes(old, new);
    let names = |plan: &Plan| -> BTreeSet<String> {
        let listeners = plan.model().listeners.iter();
        listeners.map(|listener| listener.name.clone()).collect()
    };
    let kept = names(before).intersection(&names(after)).cloned().collect();
    let drained = drained(&kept, &settings, &parts);
    let compared = Compared {
        before: old,
        after: new,
        regions: &regions,
        unreachable: &unreachable,
        settings: &settings,
        parts: &parts,
        is_sampled: !sampled_regexes.is_empty(),
        limits: &limits,
    };
    let (successors, risks) = (successors(&compared), risks(&compared));
    settings.retain(|setting| !setting.is_implied);
    PlanDiff {
        regions,
        successors,
        unreachable,
        parts,
        settings,
        drained,
        risks,
        sampled_regexes,
        limits,
    }
}

/// Ids of the routes of `after` that no request reaches, if one did in `before` or the route is
/// new. Empty if the comparison reached a limit, since not every request was tried.
fn unreachable(before: &Plan, after: &Plan, search: &DiffSearch<'_>) -> Vec<String> {
    if !search.limits.is_empty() {
        return Vec::new();
    }
    let [answered_before, answered_after] = &search.answered;
    let is_known = |id: &str| before.routes().iter().any(|route| *route.id == *id);
    let lost = after.routes().iter().map(|route| route.id.to_string());
    let lost = lost.filter(|id| !answered_after.contains(id));
    let lost = lost.filter(|id| answered_before.contains(id) || !is_known(id));
    let candidates: HashSet<String> = lost.collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    // Requests with equal competing rules were not tried.
    let mut search = DiffSearch::new(before, after);
    search.wanted = Some(candidates.clone());
    search.run();
    let [_, answered] = &search.answered;
    if !search.limits.is_empty() {
        return Vec::new();
    }
    let lost = candidates.into_iter().filter(|id| !answered.contains(id));
    let mut lost: Vec<String> = lost.collect();
    lost.sort();
    lost
}
