//! A reload as one transaction: all steps that can fail precede the first change.

use super::Server;
use super::opening::{Opened, Opening};
use super::shared_state;
use super::transaction::{Preparation, Transaction};
use crate::error::apply_error::ApplyError;
use crate::observe::memory_watch;
use crate::reload::plan_gauges::PlanGauges;
use crate::runtime::system_clock::now;
use crate::sockets::listener_set::ListenerSet;
use crate::sockets::socket_assignment::SocketAssignment;
use crate::targets::connectors;
use crate::targets::target_health::TargetHealth;
use crate::tls::LoadedTls;
use crate::worker::worker_pool::worker_count;
use crate::worker::{ListenerUpdate, PlanUpdate};
use proxy_model::Model;
use proxy_pipeline::RouteLimits;
use proxy_plan::Plan;
use std::sync::Arc;

impl Server {
    /// Begins a reload. The returned step may wait, and does not access the server.
    pub(crate) fn opening(&self) -> Opening {
        Opening {
            disk: self.disk.clone(),
            certificates: self.certificates.begin_load(),
            names: self.names.first_look_ups(),
            logs: self.logs.settings(),
            listeners: self.listeners.clone(),
            registry: Arc::clone(&self.common.registry),
            recording: Arc::clone(&self.recording),
        }
    }

    /// Applies `opened` completely or not at all: all steps that can fail precede the first change.
    /// No other reload may have been applied since `opened` was begun.
    pub(crate) async fn apply(&mut self, opened: Opened) -> Result<(), ApplyError> {
        let Opened {
            model,
            loaded_tls,
            names,
            logs,
            listeners,
            collector,
        } = opened;
        let generation = self.plan.generation() + 1;
        let names = self.names.prepare(&model, names, now());
        let targets = self.targets.begin();
        let mut targets = targets.with_resolution(names.resolution.clone());
        let plan = Arc::new(Plan::compile(generation, model, &mut targets));
        let prepared = Preparation {
            limits: self.limits.prepare(&plan),
            route_limits: self.route_limits.prepare(&plan, self.process_ns()),
            plan,
            targets,
            names,
            loaded_tls,
            logs,
            collector,
        };
        let transaction = self.open(prepared, listeners).await?;
        let before = self.listeners.clone();
        self.commit(transaction).await;
        self.listeners.set_backlogs(&before);
        Ok(())
    }

    /// Performs the remaining steps that can fail: starts workers, probes all workers, and listens.
    pub(super) async fn open(
        &mut self,
        prepared: Preparation,
        listeners: ListenerSet,
    ) -> Result<Transaction, ApplyError> {
        let count = worker_count(prepared.plan.model());
        let spawned = self.workers.spawn(count, &self.common).await;
        let spawned = spawned.map_err(ApplyError::Thread)?;
        self.workers.probe().await?;
        let owned_sockets = self.workers.owned_sockets(&spawned);
        let assignments = listeners
            .assignments(count, owned_sockets)
            .map_err(ApplyError::Thread)?;
        listeners.listen()?;
        Ok(Transaction {
            prepared,
            count,
            listeners,
            spawned,
            assignments,
        })
    }

    /// Activates `transaction`. Infallible.
    pub(super) async fn commit(&mut self, transaction: Transaction) {
        let Transaction {
            prepared,
            count,
            listeners,
            spawned,
            assignments,
        } = transaction;
        let Preparation {
            plan,
            targets,
            names,
            limits,
            route_limits,
            loaded_tls,
            logs,
            collector,
        } = prepared;
        self.listeners = listeners;
        let fresh_logs = logs.is_some();
        match logs {
            Some(logs) => self.logs = logs,
            None => self.logs.reopen(),
        }
        self.recording.resize(recorded_bytes(plan.model()));
        shared_state::set_limits(&self.common.shared, &plan);
        let change = self.memory.apply(&plan.model().limits);
        memory_watch::log_change(change, &mut self.logs);
        self.targets.commit(targets);
        self.names.commit(names);
        TargetHealth::end_overrides(&plan);
        self.limits.commit(limits, &plan);
        let route_states = Arc::clone(&route_limits.routes);
        let registry = Arc::clone(&self.common.registry);
        self.route_limits.commit(route_limits, &plan, &registry);
        let new_workers = spawned.len();
        self.workers.add(spawned);
        let serving = self.workers.len();
        let new = serving.saturating_sub(new_workers)..serving;
        let gets_logs = |worker| fresh_logs || new.contains(&worker);
        let plan_updates =
            self.plan_updates(&plan, assignments, &loaded_tls, &route_states, gets_logs);
        self.certificates.apply(loaded_tls, &self.common.registry);
        self.health = TargetHealth::new(&plan, &self.common.registry, &self.health);
        self.prober.apply(&plan, self.certificates.loaded());
        self.key_sets.apply(&plan, self.certificates.loaded());
        self.exporters.apply(plan.model(), collector);
        self.gauges = PlanGauges::new(&plan, &self.common.registry);
        self.replace_plan(plan);
        self.show_limits();
        self.workers.publish(plan_updates).await;
        self.workers.scale_down(count);
        // The listeners answer challenges now.
        if let Some(acme) = &mut self.acme {
            acme.apply(self.plan.model());
        }
    }

    /// The update of each worker to `plan`. `gets_logs` returns true for a worker that gets new
    /// ends of the logs.
    fn plan_updates(
        &mut self,
        plan: &Arc<Plan>,
        assignments: Vec<Vec<SocketAssignment>>,
        loaded_tls: &LoadedTls,
        limits: &Arc<[RouteLimits]>,
        gets_logs: impl Fn(usize) -> bool,
    ) -> Vec<PlanUpdate> {
        let pools = self.limits.pool_settings(plan);
        let connectors = connectors::for_plan(plan, loaded_tls, &self.limits);
        let plan_updates = assignments
            .into_iter()
            .enumerate()
            .map(|(worker, assignments)| {
                let listeners = assignments.into_iter().zip(&loaded_tls.listeners);
                let listeners = listeners.map(|(assignment, tls)| ListenerUpdate {
                    assignment,
                    tls: tls.clone(),
                });
                PlanUpdate {
                    plan: Arc::clone(plan),
                    connectors: connectors.clone(),
                    limits: Arc::clone(limits),
                    pools: pools.clone(),
                    listeners: listeners.collect(),
                    logs: gets_logs(worker).then(|| self.logs.worker()),
                }
            });
        plan_updates.collect()
    }
}

/// Memory for recorded heads; 0 if none are recorded.
fn recorded_bytes(model: &Model) -> usize {
    let recording = model.observability.recording.as_ref();
    let kept = recording.map_or(0, |recording| *recording.keep_bytes);
    usize::try_from(kept).unwrap_or(usize::MAX)
}
