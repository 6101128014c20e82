//! Request counts of projects, in steps of time.
//!
//! Replicas gather the counts of heartbeats and add them when a step is over, so that a heartbeat
//! writes only its node's row.

use crate::error::StoreError;
use crate::row::traffic::step::StepColumns;
use crate::row::{id, number, text, time};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::{CountedRequests, StepTraffic, TrafficStep, TrafficWindow};
use control_wire::{NodeId, ProjectId};
use jiff::Timestamp;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

/// A stored step, unpacked after the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedStep {
    /// Start of the step.
    pub at: Timestamp,
    columns: StepColumns,
}

/// Stored request counts of a step, without nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedTotal {
    /// Start of the step.
    pub at: Timestamp,
    routes: String,
}

impl PackedTotal {
    /// Total requests of the step.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the row is damaged.
    pub fn requests(&self) -> Result<CountedRequests, StoreError> {
        StepColumns::total(&self.routes)
    }
}

impl PackedStep {
    /// Unpacks the requests of the step.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the row is damaged.
    pub fn traffic(&self) -> Result<StepTraffic, StoreError> {
        self.columns.traffic()
    }
}

impl Transaction {
    /// Adds requests at the time `at` to the steps of every length. Ignores a deleted project.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if a row cannot be read.
    pub async fn add_traffic(
        &mut self,
        project: ProjectId,
        at: Timestamp,
        traffic: &StepTraffic,
    ) -> Result<(), StoreError> {
        for step in TrafficStep::ALL {
            let begin = step.begin(at);
            let empty = StepColumns::new(&StepTraffic::default())?;
            let insert = "INSERT INTO project_traffic (project_id, step_secs, at, bytes, routes, nodes)
                          SELECT id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT), $5, $6
                          FROM projects WHERE id = $1
                          ON CONFLICT (project_id, step_secs, at) DO NOTHING";
            let insert = sql(insert).bind(project).bind(step.secs()).bind(begin);
            let insert = insert.bind(empty.bytes()).bind(empty.routes);
            insert.bind(empty.nodes).run(self).await?;
            let select = if self.is_sqlite() {
                "SELECT at, routes, nodes FROM project_traffic
                 WHERE project_id = $1 AND step_secs = $2 AND at = $3"
            } else {
                "SELECT at, routes, nodes FROM project_traffic
                 WHERE project_id = $1 AND step_secs = $2 AND at = $3 FOR UPDATE"
            };
            let select = sql(select).bind(project).bind(step.secs()).bind(begin);
            let Some(row) = select.row(self).await? else {
                return Ok(());
            };
            let mut sum = packed_step(&row)?.traffic()?;
            sum.add(traffic);
            sum.routes.bound();
            let columns = StepColumns::new(&sum)?;
            let update = "UPDATE project_traffic SET bytes = $4, routes = $5, nodes = $6
                          WHERE project_id = $1 AND step_secs = $2 AND at = $3";
            let update = sql(update).bind(project).bind(step.secs()).bind(begin);
            let update = update.bind(columns.bytes()).bind(columns.routes);
            update.bind(columns.nodes).run(self).await?;
        }
        Ok(())
    }

    /// Steps of a project with requests, oldest first.
    pub async fn project_traffic(
        &mut self,
        project: ProjectId,
        window: TrafficWindow,
    ) -> Result<Vec<PackedStep>, StoreError> {
        let TrafficWindow { step, from, to } = window;
        let select = "SELECT at, routes, nodes FROM project_traffic
                      WHERE project_id = $1 AND step_secs = $2 AND at >= $3 AND at < $4
                      ORDER BY at";
        let select = sql(select).bind(project).bind(step.secs());
        let rows = select.bind(from).bind(to).rows(self).await?;
        rows.iter().map(packed_step).collect()
    }

    /// Steps of a project with requests, oldest first, without nodes: one row per step, however
    /// many nodes there are.
    pub async fn project_traffic_totals(
        &mut self,
        project: ProjectId,
        window: TrafficWindow,
    ) -> Result<Vec<PackedTotal>, StoreError> {
        let TrafficWindow { step, from, to } = window;
        let select = "SELECT at, routes FROM project_traffic
                      WHERE project_id = $1 AND step_secs = $2 AND at >= $3 AND at < $4
                      ORDER BY at";
        let select = sql(select).bind(project).bind(step.secs());
        let rows = select.bind(from).bind(to).rows(self).await?;
        let totals = rows.iter().map(|row| {
            Ok(PackedTotal {
                at: time(row, "at")?,
                routes: text(row, "routes")?,
            })
        });
        totals.collect()
    }

    /// Values of a label on a project's nodes.
    pub async fn label_values(
        &mut self,
        project: ProjectId,
        label: &str,
    ) -> Result<BTreeMap<NodeId, String>, StoreError> {
        let select = "SELECT node_id, value FROM node_labels WHERE project_id = $1 AND name = $2";
        let rows = sql(select).bind(project).bind(label).rows(self).await?;
        rows.iter()
            .map(|row| Ok((id(row, "node_id")?, text(row, "value")?)))
            .collect()
    }

    /// Name of a node in the project; `None` if the node was deleted.
    pub async fn node_name(
        &mut self,
        project: ProjectId,
        node: NodeId,
    ) -> Result<Option<String>, StoreError> {
        let select = sql("SELECT name FROM nodes WHERE id = $1 AND project_id = $2");
        let row = select.bind(node).bind(project).row(self).await?;
        row.map(|row| text(&row, "name")).transpose()
    }

    /// Deletes about `limit` steps of one length that begin before `before`; steps of the same time
    /// are deleted together. Returns the number of deleted rows.
    pub async fn purge_traffic(
        &mut self,
        step: TrafficStep,
        before: Timestamp,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let last = "SELECT at FROM project_traffic WHERE step_secs = $1 AND at < $2
                    ORDER BY at LIMIT 1 OFFSET $3";
        let select = sql(last).bind(step.secs()).bind(before);
        let row = select.bind(limit - 1).row(self).await?;
        let last = row.map_or(Ok(before), |row| time(&row, "at"))?;
        let delete = "DELETE FROM project_traffic
                      WHERE step_secs = $1 AND at < $2 AND at <= $3";
        let delete = sql(delete).bind(step.secs()).bind(before);
        delete.bind(last).run(self).await
    }

    /// Stored bytes of all steps.
    pub async fn traffic_bytes(&mut self) -> Result<i64, StoreError> {
        let sum = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS used FROM project_traffic";
        let row = sql(sum).row(self).await?;
        number(&row.ok_or(StoreError::Corrupt("used"))?, "used")
    }
}

fn packed_step(row: &AnyRow) -> Result<PackedStep, StoreError> {
    Ok(PackedStep {
        at: time(row, "at")?,
        columns: StepColumns {
            routes: text(row, "routes")?,
            nodes: text(row, "nodes")?,
        },
    })
}
