//! Pages of rollouts.

mod batch_cards;
pub(crate) mod command;
mod course;
pub(crate) mod detail;
mod figures;
pub(crate) mod list;
pub(crate) mod plan;
pub(crate) mod words;

use crate::request::failure::Failure;
use crate::request::visit::Caller;
use crate::ui::Ui;
use control_domain::{Rollout, RolloutState};
use control_wire::{BundleId, ProjectId, RolloutId};
use std::collections::BTreeMap;

/// Number of rollouts searched for the last one of a bundle.
const SEARCHED_ROLLOUTS: i64 = 50;

/// The name of the rollout's bundle.
pub(crate) async fn bundle_name(
    ui: &Ui,
    caller: &Caller,
    rollout: &Rollout,
) -> Result<String, Failure> {
    let project = rollout.tenant.project.ok_or_else(Failure::not_found)?;
    let bundles = [rollout.bundle].into();
    let mut names = ui.app.bundle_names(&caller.call, project, &bundles).await?;
    let name = names.remove(&rollout.bundle);
    Ok(name.unwrap_or_else(|| "an unknown bundle".to_owned()))
}

/// Bundles whose last rollout was rolled back, with it, among the newest rollouts of a project.
pub(crate) async fn rolled_back(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
) -> Result<BTreeMap<BundleId, RolloutId>, Failure> {
    let newest = ui
        .app
        .newest_rollouts(&caller.call, project, None, SEARCHED_ROLLOUTS)
        .await?;
    let mut last = BTreeMap::new();
    for rollout in newest.into_iter().map(|found| found.value) {
        last.entry(rollout.bundle).or_insert(rollout);
    }
    let ended = last.into_iter();
    let ended = ended.filter(|(_, rollout)| rollout.state == RolloutState::RolledBack);
    Ok(ended
        .map(|(bundle, rollout)| (bundle, rollout.id))
        .collect())
}
