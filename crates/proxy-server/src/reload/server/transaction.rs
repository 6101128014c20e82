//! A plan during its activation.

use crate::observe::logs::OpenLogs;
use crate::reload::limit_registry::RouteLimitTransaction;
use crate::sockets::listener_set::ListenerSet;
use crate::sockets::socket_assignment::SocketAssignment;
use crate::targets::dns::NameTransaction;
use crate::targets::pools::LimitTransaction;
use crate::tls::LoadedTls;
use crate::worker::Handle;
use proxy_otlp::Collector;
use proxy_plan::{Plan, TargetTransaction};
use std::sync::Arc;

/// A compiled plan with its files loaded. Active state is unchanged.
pub(super) struct Preparation {
    pub(super) plan: Arc<Plan>,
    pub(super) targets: TargetTransaction,
    pub(super) names: NameTransaction,
    pub(super) limits: LimitTransaction,
    pub(super) route_limits: RouteLimitTransaction,
    pub(super) loaded_tls: LoadedTls,
    /// `None` if the open logs remain in use.
    pub(super) logs: Option<OpenLogs>,
    /// `None` if nothing is exported.
    pub(super) collector: Option<Collector>,
}

/// A plan with all its system resources: the remaining steps are infallible. If it is dropped
/// instead of committed, nothing changes.
pub(super) struct Transaction {
    pub(super) prepared: Preparation,
    /// Number of workers.
    pub(super) count: usize,
    pub(super) listeners: ListenerSet,
    /// New workers, started and idle.
    pub(super) spawned: Vec<Handle>,
    /// Sockets of each worker: the current ones, the new ones, those that leave.
    pub(super) assignments: Vec<Vec<SocketAssignment>>,
}
