//! Queries for a project's pages that the REST interface does not offer.

use crate::app::{App, tenant};
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, Bundle, BundleState, Drift, Node, NodeStanding, Rollout};
use control_store::{BundleFilter, DriftFilter, Page, RolloutFilter, StandingCounts, Versioned};
use control_wire::{BundleId, DriftId, NodeId, ProjectId, RolloutId};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of labels offered for grouping.
const MAX_LABELS: i64 = 20;
/// Number of newest rollouts searched for a metrics condition.
const SEARCHED_ROLLOUTS: i64 = 20;

impl App {
    /// Counts a project's nodes by standing.
    pub async fn count_standings(
        &self,
        call: &Call,
        project: ProjectId,
    ) -> Result<StandingCounts, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let since = self.heartbeat_interval.online_since(call.now);
        Ok(tx.count_standings(project, since).await?)
    }

    /// Counts nodes by standing, for each value of a label.
    pub async fn count_standings_by_label(
        &self,
        call: &Call,
        project: ProjectId,
        label: &str,
    ) -> Result<BTreeMap<String, StandingCounts>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let since = self.heartbeat_interval.online_since(call.now);
        let counted = tx.count_standings_by_label(project, since, label);
        Ok(counted.await?)
    }

    /// Labels in use by a project's nodes, most frequent first; at most 20.
    pub async fn label_names(&self, call: &Call, project: ProjectId) -> Result<Vec<String>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        Ok(tx.label_names(project, MAX_LABELS).await?)
    }

    /// Nodes of a project with this standing.
    pub async fn nodes_standing(
        &self,
        call: &Call,
        project: ProjectId,
        standing: NodeStanding,
        page: Page,
    ) -> Result<Vec<Versioned<Node>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let since = self.heartbeat_interval.online_since(call.now);
        let found = tx.nodes_standing(project, since, standing, page);
        Ok(found.await?)
    }

    /// Nodes with `part` in their name, sorted by name.
    pub async fn nodes_named_like(
        &self,
        call: &Call,
        project: ProjectId,
        part: &str,
        limit: i64,
    ) -> Result<Vec<Versioned<Node>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        Ok(tx.nodes_named_like(project, part, limit).await?)
    }

    /// Rollouts of a project created before `before`, newest first.
    pub async fn newest_rollouts(
        &self,
        call: &Call,
        project: ProjectId,
        before: Option<RolloutId>,
        limit: i64,
    ) -> Result<Vec<Versioned<Rollout>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_ROLLOUTS, tenant)?;
        let page = Page::newest(before.map(|before| before.0), limit);
        Ok(tx
            .rollouts(project, &RolloutFilter::default(), page)
            .await?)
    }

    /// URL of the project's Prometheus server: taken from the newest rollout with a condition,
    /// among the last 20.
    pub async fn prometheus_url(
        &self,
        call: &Call,
        project: ProjectId,
    ) -> Result<Option<String>, Error> {
        let newest = self.newest_rollouts(call, project, None, SEARCHED_ROLLOUTS);
        let mut conditions = newest.await?.into_iter().map(|found| found.value.condition);
        Ok(conditions.find_map(|condition| Some(condition?.url)))
    }

    /// Bundles of a project created before `before`, newest first.
    pub async fn newest_bundles(
        &self,
        call: &Call,
        project: ProjectId,
        before: Option<BundleId>,
        limit: i64,
    ) -> Result<Vec<Versioned<Bundle>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_BUNDLES, tenant)?;
        let page = Page::newest(before.map(|before| before.0), limit);
        Ok(tx.bundles(project, &BundleFilter::default(), page).await?)
    }

    /// Signed bundles of a project, newest first.
    pub async fn newest_signed_bundles(
        &self,
        call: &Call,
        project: ProjectId,
        limit: i64,
    ) -> Result<Vec<Versioned<Bundle>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_BUNDLES, tenant)?;
        let filter = BundleFilter {
            state: Some(BundleState::Signed),
            ..BundleFilter::default()
        };
        let page = Page::newest(None, limit);
        Ok(tx.bundles(project, &filter, page).await?)
    }

    /// Drifts of a project opened before `before`, newest first.
    pub async fn newest_drifts(
        &self,
        call: &Call,
        project: ProjectId,
        before: Option<DriftId>,
        limit: i64,
    ) -> Result<Vec<Versioned<Drift>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let page = Page::newest(before.map(|before| before.0), limit);
        Ok(tx.drifts(project, &DriftFilter::default(), page).await?)
    }

    /// Names of these bundles; identifiers outside the project are left out.
    pub async fn bundle_names(
        &self,
        call: &Call,
        project: ProjectId,
        bundles: &BTreeSet<BundleId>,
    ) -> Result<BTreeMap<BundleId, String>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_BUNDLES, tenant)?;
        let mut names = BTreeMap::new();
        for id in bundles {
            let found = tx.bundle(*id).await?.map(|found| found.value);
            let found = found.filter(|bundle| bundle.tenant == tenant);
            names.extend(found.map(|bundle| (*id, bundle.name.to_string())));
        }
        Ok(names)
    }

    /// Names of these nodes; identifiers outside the project are left out.
    pub async fn node_names(
        &self,
        call: &Call,
        project: ProjectId,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<BTreeMap<NodeId, String>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let mut names = BTreeMap::new();
        for id in nodes {
            let found = tx.node(*id).await?.map(|found| found.value);
            let found = found.filter(|node| node.tenant == tenant);
            names.extend(found.map(|node| (*id, node.name.to_string())));
        }
        Ok(names)
    }
}
