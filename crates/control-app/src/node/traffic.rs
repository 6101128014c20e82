//! Requests, 5xx responses and latency of a project's nodes over a period, compared with a week
//! before.

pub(crate) mod summary;

use crate::app::{App, tenant};
use crate::call::Call;
use crate::error::Error;
use crate::node::traffic::summary::{
    NamedTraffic, Periods, Summary, TotalPeriods, TrafficFigures, TrafficPoint,
};
use control_domain::{
    Access, CountedRequests, RouteCounts, Tenant, TrafficPeriod, TrafficStep, TrafficWindow,
};
use control_store::ReplacedCounters;
use control_wire::{NodeId, ProjectId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of listed nodes: those with the most requests.
const MAX_NODES: usize = 50;
/// Maximum number of routes compared on a serving thread, which takes less than a millisecond.
const MAX_SMALL_ROUTES: usize = 32;
/// Maximum number of steps of each length deleted in a round of housekeeping.
const PURGED_STEPS: i64 = 1_000;

/// The traffic of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectTraffic {
    /// Period, divided into steps of equal length.
    pub window: TrafficWindow,
    /// Requests of all nodes.
    pub total: TrafficFigures,
    /// All steps of the window, oldest first.
    pub steps: Vec<TrafficPoint>,
    /// By route, most requests first. The empty name stands for all routes without counters of
    /// their own.
    pub routes: Vec<NamedTraffic>,
    /// By node, most requests first, at most 50.
    pub nodes: Vec<NodeTraffic>,
    /// By value of the requested label, most requests first, at most 1 000. Nodes without the label
    /// are left out.
    pub groups: Vec<NamedTraffic>,
}

/// Traffic of a project as a whole, without routes and nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficTotals {
    /// Period, divided into steps of equal length.
    pub window: TrafficWindow,
    /// Requests of all nodes.
    pub total: TrafficFigures,
    /// All steps of the window, oldest first.
    pub steps: Vec<TrafficPoint>,
}

/// Requests of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTraffic {
    /// Identifier of the node.
    pub id: NodeId,
    /// Current name of the node.
    pub name: String,
    /// Requests of the node in the period.
    pub figures: TrafficFigures,
}

impl App {
    /// Counts a node's requests since its previous heartbeat. The heartbeat is already written, so
    /// an error is only logged: the node must not repeat the heartbeat.
    pub(crate) async fn count_requests(
        &self,
        tenant: Tenant,
        node: NodeId,
        counters: Option<(ReplacedCounters, RouteCounts)>,
        now: Timestamp,
    ) {
        let (Some(project), Some((replaced, reported))) = (tenant.project, counters) else {
            return;
        };
        let is_large = MAX_SMALL_ROUTES < reported.routes.len();
        let compare = move || Ok::<_, Error>(replaced.requests_until(&reported)?);
        let counted = if is_large {
            self.parsers.run(tenant.org.0, compare).await.flatten()
        } else {
            compare()
        };
        match counted {
            Ok(counted) => {
                let gathered = &self.writes.traffic;
                gathered.count(project, node, &counted, now).await;
            }
            Err(error) => tracing::warn!(%node, %error, "requests were not counted"),
        }
    }

    /// Writes the finished steps of traffic; every replica calls it several times a minute.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database fails; the next call retries.
    pub async fn write_traffic(&self, now: Timestamp) -> Result<(), Error> {
        Ok(self.writes.traffic.write(&self.store, now).await?)
    }

    /// Deletes steps beyond their retention; returns the number of deleted rows.
    pub(crate) async fn purge_traffic(&self, now: Timestamp) -> Result<u64, Error> {
        let mut tx = self.store.begin().await?;
        let mut deleted = 0;
        for step in TrafficStep::ALL {
            if let Some(before) = step.cutoff(self.retention.traffic, now) {
                deleted += tx.purge_traffic(step, before, PURGED_STEPS).await?;
            }
        }
        tx.commit().await?;
        Ok(deleted)
    }

    /// Traffic of a project as a whole. Reads one row per step, however many nodes there are.
    pub async fn traffic_totals(
        &self,
        call: &Call,
        project: ProjectId,
        period: TrafficPeriod,
    ) -> Result<TrafficTotals, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let window = period.window(call.now);
        let earlier = window.week_before();
        let periods = TotalPeriods {
            window,
            earlier,
            steps: tx.project_traffic_totals(project, window).await?,
            earlier_steps: tx.project_traffic_totals(project, earlier).await?,
        };
        // Holds no connection while the rows are parsed.
        drop(tx);
        let parsed = self.parsers.run(tenant.org.0, move || periods.totals());
        let (total, steps) = parsed.await??;
        Ok(TrafficTotals {
            window,
            total,
            steps,
        })
    }

    /// Requests of these nodes in a period; a node without a report in it is left out.
    pub async fn node_requests(
        &self,
        call: &Call,
        project: ProjectId,
        period: TrafficPeriod,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<BTreeMap<NodeId, CountedRequests>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let window = period.window(call.now);
        let periods = Periods {
            window,
            earlier: window.week_before(),
            steps: tx.project_traffic(project, window).await?,
            earlier_steps: Vec::new(),
            values: BTreeMap::new(),
        };
        // Holds no connection while the rows are parsed.
        drop(tx);
        let parsed = self.parsers.run(tenant.org.0, move || periods.summary());
        let summary = parsed.await??;
        let found = summary.nodes.into_iter();
        let found = found.filter(|(id, _)| nodes.contains(id));
        Ok(found.map(|(id, figures)| (id, figures.counted)).collect())
    }

    /// Traffic of a project by route and node, and by the values of a label if one is given.
    pub async fn project_traffic(
        &self,
        call: &Call,
        project: ProjectId,
        period: TrafficPeriod,
        label: Option<&str>,
    ) -> Result<ProjectTraffic, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let window = period.window(call.now);
        let earlier = window.week_before();
        let periods = Periods {
            window,
            earlier,
            steps: tx.project_traffic(project, window).await?,
            earlier_steps: tx.project_traffic(project, earlier).await?,
            values: match label {
                Some(label) => tx.label_values(project, label).await?,
                None => BTreeMap::new(),
            },
        };
        // Holds no connection while the rows are parsed.
        drop(tx);
        let Summary {
            total,
            steps,
            routes,
            nodes: counted,
            groups,
        } = self
            .parsers
            .run(tenant.org.0, move || periods.summary())
            .await??;
        let mut tx = self.store.read().await?;
        let mut nodes = Vec::new();
        for (id, figures) in counted {
            // Nodes that were deleted since have no name, and are left out.
            if let Some(name) = tx.node_name(project, id).await? {
                nodes.push(NodeTraffic { id, name, figures });
            }
            if nodes.len() == MAX_NODES {
                break;
            }
        }
        Ok(ProjectTraffic {
            window,
            total,
            steps,
            routes,
            nodes,
            groups,
        })
    }
}
