//! Requests, 5xx and latency of a project's nodes over an hour, a day or a week, compared with the week before.

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

/// Nodes that are listed: those with the most requests.
const MAX_NODES: usize = 50;
/// Routes with counters that are compared in less than a millisecond.
const MAX_SMALL_ROUTES: usize = 32;
/// Steps that one round of housekeeping deletes, of each length.
const PURGED_STEPS: i64 = 1_000;

/// The traffic of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectTraffic {
    /// The steps that are counted.
    pub window: TrafficWindow,
    /// All requests.
    pub total: TrafficFigures,
    /// Every step of the window, in order.
    pub steps: Vec<TrafficPoint>,
    /// By route, most requests first; the empty name has all routes that are not counted apart.
    pub routes: Vec<NamedTraffic>,
    /// By node, most requests first, at most 50.
    pub nodes: Vec<NodeTraffic>,
    /// By value of the label that was named, most requests first, at most 1 000. Nodes without it are left out.
    pub groups: Vec<NamedTraffic>,
}

/// The traffic of a project without its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficTotals {
    /// The steps that are counted.
    pub window: TrafficWindow,
    /// All requests.
    pub total: TrafficFigures,
    /// Every step of the window, in order.
    pub steps: Vec<TrafficPoint>,
}

/// Requests of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTraffic {
    /// Identifier of the node.
    pub id: NodeId,
    /// Name of the node now.
    pub name: String,
    /// Requests of the node in the period.
    pub figures: TrafficFigures,
}

impl App {
    /// Counts the requests that a node reported, from the counters that its heartbeat replaced. The heartbeat is written:
    /// an error must not make the node repeat it.
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

    /// Writes the steps of traffic that are over; to be called by every replica, several times a minute.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not take them; the next call tries again.
    pub async fn write_traffic(&self, now: Timestamp) -> Result<(), Error> {
        Ok(self.writes.traffic.write(&self.store, now).await?)
    }

    /// Deletes steps past their time. Returns the number of deleted rows.
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

    /// The traffic of all nodes of a project together. It reads a row for each step, and nothing for each node.
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
        // No connection is held meanwhile.
        drop(tx);
        let parsed = self.parsers.run(tenant.org.0, move || periods.totals());
        let (total, steps) = parsed.await??;
        Ok(TrafficTotals {
            window,
            total,
            steps,
        })
    }

    /// The requests of these nodes of a project in a period; a node without a report in it is left out.
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
        // No connection is held meanwhile.
        drop(tx);
        let parsed = self.parsers.run(tenant.org.0, move || periods.summary());
        let summary = parsed.await??;
        let found = summary.nodes.into_iter();
        let found = found.filter(|(id, _)| nodes.contains(id));
        Ok(found.map(|(id, figures)| (id, figures.counted)).collect())
    }

    /// The traffic of a project's nodes, from their heartbeats; with a label, by its values too.
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
        // No connection is held meanwhile.
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
            // Nodes that were deleted since have no name.
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
