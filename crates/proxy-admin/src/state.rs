//! State shared by the sockets of the admin interface.

use crate::plan_documents::PlanDocuments;
use arc_swap::ArcSwap;
use proxy_limits::MemoryLimit;
use proxy_plan::Plan;
use proxy_telemetry::{Lifecycle, LineRing, Registry};
use proxy_upstream::TargetChanges;
use std::sync::Arc;
use tokio::sync::Notify;

/// Build information of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildInfo {
    /// The program's name.
    pub name: &'static str,
    /// Semantic version.
    pub version: &'static str,
    /// Commit hash.
    pub commit: &'static str,
    /// Time of the build, RFC 3339.
    pub built_at: &'static str,
    /// Version of the compiler.
    pub rustc: &'static str,
}

/// Sources of the reported data.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Build information of the program.
    pub build: BuildInfo,
    /// Lifecycle of the process, such as draining.
    pub lifecycle: Arc<Lifecycle>,
    /// Metrics of the workers.
    pub registry: Arc<Registry>,
    /// Process-wide memory limit.
    pub memory: Arc<MemoryLimit>,
    /// Notified after a change of a target by the interface, so that all workers read the targets
    /// again.
    pub health_changes: Arc<Notify>,
    /// Counter of these changes. Workers compare it before they choose a target, in case the
    /// notification is still pending.
    pub target_changes: Arc<TargetChanges>,
    /// Recorded requests, one line of JSON each.
    pub recording: Arc<LineRing>,
}

/// State of the admin interface, shared by all its sockets.
#[derive(Debug)]
pub struct AdminState {
    pub(crate) sources: Sources,
    pub(crate) plan: ArcSwap<PlanDocuments>,
}

impl AdminState {
    /// The state of a process under `plan`.
    #[must_use]
    pub fn new(sources: Sources, plan: Arc<Plan>) -> Self {
        Self {
            sources,
            plan: ArcSwap::from_pointee(PlanDocuments::new(plan)),
        }
    }

    /// Replaces the plan, for the next request on.
    pub fn publish(&self, plan: Arc<Plan>) {
        self.plan.store(Arc::new(PlanDocuments::new(plan)));
    }
}
