//! Rollouts and their batches.

pub(crate) mod node;
pub(crate) mod reach;
pub(crate) mod recall;
pub(crate) mod revert;
pub(crate) mod sample;

use crate::error::StoreError;
use crate::node::to_json;
use crate::row::{
    id, json, named, number, optional_id, optional_json, optional_number, optional_text,
    optional_time, time, truth, versioned,
};
use crate::statement::list::ListQuery;
use crate::statement::{Record, Statement, sql};
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::{
    Batch, BatchCounts, BatchSize, BatchState, Gate, OnFailure, Rollout, RolloutState, Strategy,
    Tenant,
};
use control_wire::{BundleId, ProjectId, RolloutId};
use sqlx::any::AnyRow;

/// Maximum number of rollouts per page of the scheduler.
const MAX_ROLLOUTS_TO_ADVANCE: i64 = 1_000;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT r.id AS id, r.org_id AS org_id, r.project_id AS project_id,
               r.bundle_id AS bundle_id, r.state AS state, r.batch_count AS batch_count,
               r.batch_percent AS batch_percent, r.max_unavailable AS max_unavailable,
               r.deadline_secs AS deadline_secs, r.soak_secs AS soak_secs,
               r.gate_min_requests AS gate_min_requests,
               r.gate_error_permille AS gate_error_permille,
               r.gate_p99_percent AS gate_p99_percent, r.gate_p99_slack_ms AS gate_p99_slack_ms,
               r.gate_cpu_percent AS gate_cpu_percent, r.gate_new_failures AS gate_new_failures,
               r.gate_mix_permille AS gate_mix_permille,
               r.gate_latency_percent AS gate_latency_percent,
               r.needs_approval AS needs_approval, r.on_failure AS on_failure,
               r.metric_condition AS metric_condition, r.route_names AS route_names, r.labels AS labels, r.nodes AS nodes, r.batch_size AS batch_size,
               r.batch AS batch, r.reason AS reason, r.not_before AS not_before,
               r.created_by AS created_by, r.submitted_by AS submitted_by,
               r.submitted_person AS submitted_person,
               r.created_at AS created_at, r.started_at AS started_at,
               r.reverting_since AS reverting_since, r.ended_at AS ended_at,
               r.version AS version, b.state AS batch_state, b.opened_at AS opened_at,
               b.switched_at AS switched_at, b.ended_at AS batch_ended_at
             FROM rollouts r
             LEFT JOIN rollout_batches b ON b.rollout_id = r.id AND b.number = r.batch ",
            $rest
        )
    };
}

/// Filter of a project's rollouts; absent fields admit all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolloutFilter {
    /// Only those in this state.
    pub state: Option<RolloutState>,
    /// Limits the list to one bundle.
    pub bundle: Option<BundleId>,
}

/// A batch as stored at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBatch {
    /// The batch, without its nodes.
    pub batch: Batch,
    /// Number of nodes; `None` until the batch has ended.
    pub nodes: Option<i64>,
    /// Number of nodes that ran the bundle; `None` until the batch has ended.
    pub ready: Option<i64>,
    /// The gate's figures as JSON; `None` without a gate.
    pub figures: Option<String>,
}

impl Transaction {
    /// Inserts a new rollout.
    pub async fn insert_rollout(&mut self, rollout: &Rollout) -> Result<(), StoreError> {
        let Rollout {
            id,
            tenant: Tenant { org, project },
            bundle,
            state,
            strategy,
            condition,
            route_names: _, // Of the start.
            labels,
            nodes,
            batch_size,
            batch: _,
            reason: _,
            not_before,
            created_by,
            submitted_by: _,
            submitted_person: _,
            created_at,
            started_at: _,
            reverting_since: _,
            ended_at: _,
        } = rollout;
        let Strategy {
            batch,
            max_unavailable,
            deadline_secs,
            soak_secs,
            gate,
            needs_approval,
            on_failure,
        } = *strategy;
        let (batch_count, batch_percent) = match batch {
            BatchSize::Count(count) => (Some(count), None),
            BatchSize::Percent(percent) => (None, Some(percent)),
        };
        let insert = "INSERT INTO rollouts (id, org_id, project_id, bundle_id, state, batch_count,
                        batch_percent, max_unavailable, deadline_secs, soak_secs, needs_approval,
                        on_failure, labels, nodes, batch_size, not_before, created_by, created_at,
                        gate_min_requests, gate_error_permille, gate_p99_percent,
                        gate_p99_slack_ms, gate_cpu_percent, gate_new_failures,
                        gate_mix_permille, gate_latency_percent, metric_condition, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
                        $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, 1)";
        let insert = sql(insert)
            .bind(*id)
            .bind(*org)
            .bind(*project)
            .bind(*bundle);
        let insert = insert
            .bind(state.name())
            .bind(batch_count)
            .bind(batch_percent);
        let insert = insert
            .bind(max_unavailable)
            .bind(deadline_secs)
            .bind(soak_secs)
            .bind(needs_approval)
            .bind(on_failure.name())
            .bind(to_json(labels)?);
        let insert = insert.bind(*nodes).bind(*batch_size).bind(*not_before);
        let insert = insert.bind(*created_by).bind(*created_at);
        let limits = gate_columns(gate).into_iter();
        let insert = limits.fold(insert, Statement::bind);
        let condition = condition.as_ref().map(to_json).transpose()?;
        let insert = insert.bind(condition);
        insert.run(self).await?;
        Ok(())
    }

    /// The rollout, if it exists.
    pub async fn rollout(
        &mut self,
        rollout: RolloutId,
    ) -> Result<Option<Versioned<Rollout>>, StoreError> {
        let one = sql(select!("WHERE r.id = $1"));
        one.bind(rollout).one(self).await
    }

    /// The rollouts of a project, optionally in one state only.
    pub async fn rollouts(
        &mut self,
        project: ProjectId,
        filter: &RolloutFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Rollout>>, StoreError> {
        let RolloutFilter { state, bundle } = filter;
        let list = ListQuery::new(select!("WHERE r.project_id = ?"), project)
            .and("r.state = ?", state.map(RolloutState::name))
            .and("r.bundle_id = ?", *bundle);
        list.page(self, "r.id", page).await
    }

    /// Up to 1 000 rollouts after `after` that the scheduler may advance. Includes a paused one if
    /// its bundle was revoked.
    pub async fn rollouts_to_advance(
        &mut self,
        after: Option<RolloutId>,
    ) -> Result<Vec<RolloutId>, StoreError> {
        let statement = "SELECT r.id AS id FROM rollouts r
                      WHERE r.id > $1 AND r.state IN ('running', 'paused', 'failed', 'rolling_back')
                        AND (r.state <> 'paused' OR EXISTS (
                          SELECT 1 FROM bundles b WHERE b.id = r.bundle_id AND b.state = 'revoked'))
                      ORDER BY r.id LIMIT $2";
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let query = sql(statement).bind(after).bind(MAX_ROLLOUTS_TO_ADVANCE);
        let rows = query.rows(self).await?;
        rows.iter().map(|row| id(row, "id")).collect()
    }

    /// Updates the rollout and its current batch if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_rollout(
        &mut self,
        rollout: &Rollout,
        version: i64,
    ) -> Result<i64, StoreError> {
        let update = "UPDATE rollouts SET state = $1, batch = $2, reason = $3, submitted_by = $4,
                        started_at = $5, reverting_since = $6, ended_at = $7, nodes = $8,
                        batch_size = $9, submitted_person = $10, needs_approval = $11,
                        route_names = $12, version = version + 1
                      WHERE id = $13 AND version = $14";
        let update = sql(update)
            .bind(rollout.state.name())
            .bind(rollout.batch.as_ref().map(|batch| batch.number))
            .bind(rollout.reason.clone())
            .bind(rollout.submitted_by);
        let update = update
            .bind(rollout.started_at)
            .bind(rollout.reverting_since)
            .bind(rollout.ended_at);
        let update = update.bind(rollout.nodes).bind(rollout.batch_size);
        let update = update
            .bind(rollout.submitted_person)
            .bind(rollout.strategy.needs_approval);
        let names = &rollout.route_names;
        let names = (!names.is_empty()).then(|| to_json(names)).transpose()?;
        let update = update.bind(names);
        let version = update.bind(rollout.id).write(self, version).await?;
        if let Some(batch) = &rollout.batch {
            self.write_batch(rollout.id, batch).await?;
        }
        Ok(version)
    }

    /// Stores the figures of a batch at its end.
    pub async fn keep_figures(
        &mut self,
        rollout: RolloutId,
        batch: i64,
        counts: BatchCounts,
        figures: Option<String>,
    ) -> Result<(), StoreError> {
        let update = "UPDATE rollout_batches SET nodes = $3, ready = $4, figures = $5
                      WHERE rollout_id = $1 AND number = $2";
        let update = sql(update).bind(rollout).bind(batch);
        let update = update.bind(counts.nodes).bind(counts.ready);
        update.bind(figures).run(self).await?;
        Ok(())
    }

    /// Batches opened so far, at most 500.
    pub async fn rollout_batches(
        &mut self,
        rollout: RolloutId,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        let list = "SELECT number AS batch, state AS batch_state, opened_at, switched_at,
                      ended_at AS batch_ended_at, nodes, ready, figures
                    FROM rollout_batches WHERE rollout_id = $1 ORDER BY number";
        let rows = sql(list).bind(rollout).rows(self).await?;
        let stored = |row| {
            Ok(StoredBatch {
                batch: batch(row)?.ok_or(StoreError::Corrupt("batch"))?,
                nodes: optional_number(row, "nodes")?,
                ready: optional_number(row, "ready")?,
                figures: optional_text(row, "figures")?,
            })
        };
        rows.iter().map(stored).collect()
    }

    /// Returns true if a rollout that has not ended deploys the bundle.
    pub async fn bundle_moves(&mut self, bundle: BundleId) -> Result<bool, StoreError> {
        let first = "SELECT id FROM rollouts WHERE bundle_id = $1
                     AND state IN ('running', 'paused', 'failed', 'rolling_back') LIMIT 1";
        Ok(sql(first).bind(bundle).row(self).await?.is_some())
    }

    async fn write_batch(&mut self, rollout: RolloutId, batch: &Batch) -> Result<(), StoreError> {
        let Batch {
            number,
            state,
            opened_at,
            switched_at,
            ended_at,
        } = batch;
        // A batch that is tried again has no figures of an end.
        let upsert = "INSERT INTO rollout_batches (rollout_id, number, state, opened_at,
                        switched_at, ended_at) VALUES ($1, $2, $3, $4, $5, $6)
                      ON CONFLICT (rollout_id, number) DO UPDATE SET
                        state = excluded.state, opened_at = excluded.opened_at,
                        switched_at = excluded.switched_at, ended_at = excluded.ended_at,
                        nodes = CASE WHEN excluded.ended_at IS NULL THEN NULL
                          ELSE rollout_batches.nodes END,
                        ready = CASE WHEN excluded.ended_at IS NULL THEN NULL
                          ELSE rollout_batches.ready END,
                        figures = CASE WHEN excluded.ended_at IS NULL THEN NULL
                          ELSE rollout_batches.figures END";
        let upsert = sql(upsert).bind(rollout).bind(*number).bind(state.name());
        let upsert = upsert.bind(*opened_at).bind(*switched_at).bind(*ended_at);
        upsert.run(self).await?;
        Ok(())
    }
}

impl Record for Rollout {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let rollout = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            bundle: id(row, "bundle_id")?,
            state: named(row, "state", RolloutState::from_name)?,
            strategy: strategy(row)?,
            condition: optional_json(row, "metric_condition")?,
            route_names: optional_json(row, "route_names")?.unwrap_or_default(),
            labels: json(row, "labels")?,
            nodes: number(row, "nodes")?,
            batch_size: number(row, "batch_size")?,
            batch: batch(row)?,
            reason: optional_text(row, "reason")?,
            not_before: optional_time(row, "not_before")?,
            created_by: id(row, "created_by")?,
            submitted_by: optional_id(row, "submitted_by")?,
            submitted_person: optional_id(row, "submitted_person")?,
            created_at: time(row, "created_at")?,
            started_at: optional_time(row, "started_at")?,
            reverting_since: optional_time(row, "reverting_since")?,
            ended_at: optional_time(row, "ended_at")?,
        };
        versioned(rollout, row)
    }
}

fn strategy(row: &AnyRow) -> Result<Strategy, StoreError> {
    let count = optional_number(row, "batch_count")?.map(BatchSize::Count);
    let percent = optional_number(row, "batch_percent")?.map(BatchSize::Percent);
    let batch = count.or(percent);
    Ok(Strategy {
        batch: batch.ok_or(StoreError::Corrupt("batch_count"))?,
        max_unavailable: number(row, "max_unavailable")?,
        deadline_secs: number(row, "deadline_secs")?,
        soak_secs: number(row, "soak_secs")?,
        gate: gate(row)?,
        needs_approval: truth(row, "needs_approval")?,
        on_failure: named(row, "on_failure", OnFailure::from_name)?,
    })
}

/// The gate's limits, in the order of the columns.
fn gate_columns(gate: Option<Gate>) -> [Option<i64>; 8] {
    let Some(gate) = gate else {
        return [None; 8];
    };
    let Gate {
        min_requests,
        max_error_increase_permille,
        max_p99_percent,
        p99_slack_ms,
        max_latency_increase_percent,
        max_cpu_increase_percent,
        max_new_failures,
        max_mix_shift_permille,
    } = gate;
    [
        min_requests,
        max_error_increase_permille,
        max_p99_percent,
        p99_slack_ms,
        max_cpu_increase_percent,
        max_new_failures,
        max_mix_shift_permille,
        max_latency_increase_percent,
    ]
    .map(Some)
}

fn gate(row: &AnyRow) -> Result<Option<Gate>, StoreError> {
    let Some(min_requests) = optional_number(row, "gate_min_requests")? else {
        return Ok(None);
    };
    Ok(Some(Gate {
        min_requests,
        max_error_increase_permille: number(row, "gate_error_permille")?,
        max_p99_percent: number(row, "gate_p99_percent")?,
        p99_slack_ms: number(row, "gate_p99_slack_ms")?,
        max_cpu_increase_percent: number(row, "gate_cpu_percent")?,
        max_new_failures: number(row, "gate_new_failures")?,
        max_mix_shift_permille: number(row, "gate_mix_permille")?,
        max_latency_increase_percent: number(row, "gate_latency_percent")?,
    }))
}

fn batch(row: &AnyRow) -> Result<Option<Batch>, StoreError> {
    let Some(number) = optional_number(row, "batch")? else {
        return Ok(None);
    };
    Ok(Some(Batch {
        number,
        state: named(row, "batch_state", BatchState::from_name)?,
        opened_at: time(row, "opened_at")?,
        switched_at: optional_time(row, "switched_at")?,
        ended_at: optional_time(row, "batch_ended_at")?,
    }))
}
