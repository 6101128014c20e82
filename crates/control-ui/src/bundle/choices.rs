//! Bundles offered by forms.

use crate::request::failure::Failure;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::phrase::{count, short};
use control_domain::BundleState;
use control_wire::{BundleId, ProjectId};
use std::collections::BTreeSet;

/// Maximum number of newest bundles that a form lists, apart from those that nodes run.
const MAX_LISTED_BUNDLES: i64 = 50;

/// Bundles that a form offers, each with its label.
pub(super) struct Choices {
    all: Vec<(BundleId, String)>,
    /// Default choice: the bundle on most nodes, or else the newest.
    pub(super) usual: Option<BundleId>,
    /// Default second choice: the newest bundle that no node runs, or else `usual`.
    pub(super) next: Option<BundleId>,
}

impl Choices {
    /// Reads the bundles: those that nodes run, most nodes first; then the newest; then those
    /// chosen in the form.
    pub(super) async fn read(
        ui: &Ui,
        caller: &Caller,
        project: ProjectId,
        named: [&str; 2],
    ) -> Result<Self, Failure> {
        let (app, call) = (&ui.app, &caller.call);
        let newest = app.newest_bundles(call, project, None, MAX_LISTED_BUNDLES);
        let newest = newest.await?.into_iter().map(|found| found.value);
        let newest: Vec<(BundleId, String)> = newest
            .filter(|bundle| bundle.state != BundleState::Rejected)
            .map(|bundle| (bundle.id, bundle.name.to_string()))
            .collect();
        let active = app.count_nodes(call, project).await?.active;
        let running: BTreeSet<BundleId> = active.iter().map(|(id, _)| *id).collect();
        let names = app.bundle_names(call, project, &running).await?;
        let in_force = active.iter().filter_map(|(id, nodes)| {
            let name = names.get(id)?;
            Some((*id, format!("{name}, on {}", count(*nodes, "node"))))
        });
        let mut all: Vec<(BundleId, String)> = in_force.collect();
        let usual = all.first().map(|(id, _)| *id);
        let mut rest = newest.into_iter().filter(|(id, _)| !running.contains(id));
        let next = rest.next();
        let next_id = next.as_ref().map(|(id, _)| *id);
        // Names are not unique.
        let rest = next.into_iter().chain(rest);
        let rest: Vec<(BundleId, String)> = rest.collect();
        let named = named
            .iter()
            .filter_map(|text| text.parse::<BundleId>().ok());
        let named =
            named.filter(|id| !running.contains(id) && rest.iter().all(|(own, _)| own != id));
        let named = app.bundle_names(call, project, &named.collect()).await?;
        let rest = rest.into_iter().chain(named);
        all.extend(rest.map(|(id, name)| (id, format!("{name} (…{})", short(id)))));
        Ok(Self {
            usual: usual.or(next_id),
            next: next_id.or(usual),
            all,
        })
    }

    /// Values and labels of the select field.
    pub(super) fn options(&self) -> Vec<(String, String)> {
        let all = self.all.iter();
        let all = all.map(|(id, name)| (id.to_string(), name.clone()));
        all.collect()
    }

    /// Name of a bundle, without the label's annotations.
    pub(super) async fn name(
        &self,
        ui: &Ui,
        caller: &Caller,
        project: ProjectId,
        id: BundleId,
    ) -> Result<String, Failure> {
        let same = |own: &str| {
            let names = self.all.iter().map(|(_, name)| name);
            names.filter(|name| name.starts_with(own)).count()
        };
        let bundle = ui.app.bundle(&caller.call, project, id).await?.value;
        let name = bundle.name.to_string();
        Ok(if same(&name) < 2 {
            name
        } else {
            format!("{name} (…{})", short(id))
        })
    }
}
