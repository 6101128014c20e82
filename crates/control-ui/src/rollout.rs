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
use control_domain::Rollout;

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
