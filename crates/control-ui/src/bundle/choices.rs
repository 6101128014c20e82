//! Bundles to choose from, for forms with one or two of them.

use crate::request::failure::Failure;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::phrase::{count, short};
use control_domain::BundleState;
use control_wire::{BundleId, ProjectId};
use std::collections::BTreeSet;

/// Newest bundles that a form lists, besides those that nodes run.
const MAX_LISTED_BUNDLES: i64 = 50;

/// Bundles to choose from, each with its name as a form shows it.
pub(super) struct Choices {
    all: Vec<(BundleId, String)>,
    /// The one on most nodes, else the newest.
    pub(super) usual: Option<BundleId>,
    /// The newest one that no node runs, else `usual`.
    pub(super) next: Option<BundleId>,
}

impl Choices {
    /// The bundles that nodes run, in the order of their numbers of nodes, then the newest of the rest, then those that
    /// the form has chosen.
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
        // Several bundles may have one name.
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

    /// Values and texts of a form's choice.
    pub(super) fn options(&self) -> Vec<(String, String)> {
        let all = self.all.iter();
        let all = all.map(|(id, name)| (id.to_string(), name.clone()));
        all.collect()
    }

    /// The name of a bundle without the form's annotations.
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
