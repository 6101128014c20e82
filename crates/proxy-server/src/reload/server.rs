//! The control thread's state of the running proxy: workers, sockets, and the active plan.

mod apply;
mod drain;
mod maintenance;
mod opening;
mod shared_state;
pub(crate) mod start;
pub(crate) mod task_results;
mod transaction;

use crate::http3::RelayReceiver;
use crate::observe::limit_uses::LimitUses;
use crate::observe::logs::OpenLogs;
use crate::observe::memory_watch::MemoryWatch;
use crate::observe::otlp::Exporters;
use crate::reload::former_plans::FormerPlans;
use crate::reload::limit_registry::LimitRegistry;
use crate::reload::plan_gauges::PlanGauges;
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::targets::dns::NameTable;
use crate::targets::key_sets::KeySetTasks;
use crate::targets::pools::ConnectionLimits;
use crate::targets::probes::Prober;
use crate::targets::reconnection::Reconnections;
use crate::targets::target_health::TargetHealth;
use crate::tls::{AcmeTasks, CertificateManager};
use crate::worker::worker_pool::WorkerPool;
use crate::worker::{Command, Common, HandedConnection};
use proxy_model::{BindAddress, LogLevel};
use proxy_pipeline::{Shared, Time};
use proxy_plan::{Plan, TargetRegistry};
use proxy_telemetry::{EventFields, LineRing};
use std::sync::Arc;

pub(crate) use opening::{Opened, Opening};

/// The running proxy. Its background tasks end with it.
#[derive(Debug)]
pub(crate) struct Server {
    common: Common,
    disk: DiskThread,
    workers: WorkerPool,
    targets: TargetRegistry,
    names: NameTable,
    listeners: ListenerSet,
    limits: ConnectionLimits,
    route_limits: LimitRegistry,
    memory: MemoryWatch,
    logs: OpenLogs,
    /// The recorded heads.
    recording: Arc<LineRing>,
    certificates: CertificateManager,
    /// `None` in a rehearsal: challenges are answered by the serving listeners.
    acme: Option<AcmeTasks>,
    inherited: InheritedSockets,
    /// Receives datagrams that a process that takes over forwards.
    relay: Option<RelayReceiver>,
    health: TargetHealth,
    gauges: PlanGauges,
    prober: Prober,
    reconnections: Reconnections,
    key_sets: KeySetTasks,
    exporters: Exporters,
    plan: Arc<Plan>,
    former_plans: FormerPlans,
}

impl Server {
    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.common.shared
    }

    /// The inherited sockets that no setting has claimed.
    pub(crate) fn inherited(&mut self) -> &mut InheritedSockets {
        &mut self.inherited
    }

    /// The bound address of each listener of the active plan, in the plan's order.
    pub(crate) fn bound(&self) -> impl Iterator<Item = &BindAddress> {
        self.listeners.bound()
    }

    pub(crate) fn recording(&self) -> &Arc<LineRing> {
        &self.recording
    }

    fn replace_plan(&mut self, plan: Arc<Plan>) {
        let former = std::mem::replace(&mut self.plan, plan);
        self.former_plans.push(former);
    }

    /// Shows the limits of the active plan in statistics and metrics.
    fn show_limits(&self) {
        self.common.registry.set_limits(Arc::new(LimitUses {
            limits: self.plan.model().limits.clone(),
            shared: Arc::clone(&self.common.shared),
            routes: self.route_limits.connections(),
            idle: self.limits.idle(),
        }));
    }

    /// The clock of all state that workers share, in nanoseconds.
    fn process_ns(&self) -> u64 {
        Time::shared_ns(&self.common.shared.clock)
    }

    /// Hands a connection over to a worker, each worker in turn.
    pub(crate) fn accept(&mut self, connection: HandedConnection) {
        self.workers.send_next(Command::Accept(connection));
    }

    /// Writes an event to the configured error log.
    pub(crate) fn log_event(&mut self, level: LogLevel, message: &str, fields: &EventFields) {
        self.logs.log_event(level, message, fields);
    }

    /// Reopens log files that were moved away.
    pub(crate) fn reopen_logs(&self) {
        self.logs.reopen();
    }
}
