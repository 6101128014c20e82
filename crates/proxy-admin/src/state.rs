//! What the admin interface tells about.

use crate::plan_documents::PlanDocuments;
use arc_swap::ArcSwap;
use proxy_limits::ConcurrencyLimit;
use proxy_plan::Plan;
use proxy_telemetry::{Lifecycle, Registry};
use std::sync::Arc;

/// What was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildInfo {
    /// The program's name.
    pub name: &'static str,
    /// Semantic version.
    pub version: &'static str,
    /// The commit it was built from.
    pub commit: &'static str,
    /// When it was built, RFC 3339.
    pub built_at: &'static str,
    /// The compiler.
    pub rustc: &'static str,
}

/// Where the numbers come from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// What was built.
    pub build: BuildInfo,
    /// The process's life.
    pub lifecycle: Arc<Lifecycle>,
    /// What workers count.
    pub registry: Arc<Registry>,
    /// Requests in flight over all workers.
    pub in_flight: ConcurrencyLimit,
    /// Client connections over all workers.
    pub connections: ConcurrencyLimit,
}

/// What the admin interface tells about; one for all its sockets.
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
            plan: ArcSwap::from_pointee(PlanDocuments::of(plan)),
        }
    }

    /// Tells about `plan` from the next request on.
    pub fn publish(&self, plan: Arc<Plan>) {
        self.plan.store(Arc::new(PlanDocuments::of(plan)));
    }
}
