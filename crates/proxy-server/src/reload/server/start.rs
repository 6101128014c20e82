//! The start of a server: every listener opens and the workers run, or nothing does.

use super::Server;
use super::opening::{arrange, open_logs};
use super::shared_state;
use super::transaction::Preparation;
use crate::config::delivery::PrivateKeys;
use crate::error::apply_error::ApplyError;
use crate::http3::Http3Shared;
use crate::observe::memory_watch::MemoryWatch;
use crate::observe::otlp::{Exporters, open_collector};
use crate::reload::former_plans::FormerPlans;
use crate::reload::limit_registry::LimitRegistry;
use crate::reload::plan_gauges::PlanGauges;
use crate::runtime::disk_thread::DiskThread;
use crate::runtime::system_clock::now;
use crate::sockets::handover::HealthSnapshot;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::targets::dns::NameTable;
use crate::targets::key_sets::KeySetTasks;
use crate::targets::pools::ConnectionLimits;
use crate::targets::probes::Prober;
use crate::targets::reconnection::Reconnections;
use crate::targets::target_health::TargetHealth;
use crate::tls::{AcmeTasks, CertificateManager, LoadedTls};
use crate::worker::Common;
use crate::worker::worker_pool::WorkerPool;
use proxy_model::Model;
use proxy_pipeline::{ChallengeTokens, IdSource, Shared, Time, random_key};
use proxy_plan::{Plan, TargetRegistry};
use proxy_telemetry::{Lifecycle, LineRing, Registry};
use proxy_upstream::StickyKey;
use std::sync::Arc;
use tokio::sync::Notify;

/// Serving clients, or a bundle's live tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Serving,
    /// The server runs a bundle's live tests, and serves no client.
    Rehearsal,
}

/// The inputs of [`Server::start`].
pub(crate) struct ServerParts<'k> {
    pub(crate) model: Arc<Model>,
    /// Private keys that are held in memory.
    pub(crate) keys: &'k PrivateKeys,
    pub(crate) purpose: Purpose,
    pub(crate) registry: Arc<Registry>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) disk: DiskThread,
    pub(crate) inherited: InheritedSockets,
    /// The set to which every listener is added.
    pub(crate) listeners: ListenerSet,
    /// Empty unless this process replaces another one.
    pub(crate) snapshot: HealthSnapshot,
    /// Challenges that the listeners answer.
    pub(crate) challenges: ChallengeTokens,
}

impl Server {
    /// Opens every listener and starts the workers, all or nothing. `relieve_predecessor` runs
    /// between the last step that can fail and the first accept.
    pub(crate) async fn start(
        mut parts: ServerParts<'_>,
        relieve_predecessor: impl AsyncFnOnce(),
    ) -> Result<Self, ApplyError> {
        let certificates = CertificateManager::new();
        let loaded_tls = load_tls(&certificates, &parts).await?;
        let sticky_key = StickyKey(random_key().map_err(ApplyError::Random)?);
        let (targets, limits) = (TargetRegistry::new(sticky_key), ConnectionLimits::default());
        let names = NameTable::new(&parts.model, Arc::clone(&parts.registry));
        let answers = names.first_look_ups().run(&parts.model).await;
        let looked_up = names.prepare(&parts.model, answers, now());
        let recording = Arc::<LineRing>::default();
        let logs = open_logs(&parts.disk, &parts.model, &parts.registry, &recording).await?;
        let (listeners, inherited) = (parts.listeners, &mut parts.inherited);
        let arranged = arrange(&parts.disk, listeners.clone(), &parts.model, inherited).await?;
        let named = targets.begin();
        let mut named = named.with_resolution(looked_up.resolution.clone());
        let plan = Arc::new(Plan::compile(1, parts.model, &mut named));
        parts.snapshot.restore(&plan);
        let health_changes = Arc::<Notify>::default();
        let prober = Prober::new(Arc::clone(&health_changes));
        let ids = IdSource::from_system().map_err(ApplyError::Thread)?;
        let mut shared = shared_state::new(&plan, ids.key_seed(), health_changes, parts.lifecycle);
        shared.challenges = parts.challenges;
        let route_limits = LimitRegistry::new(ids.key_seed());
        let acme = acme_tasks(parts.purpose, &shared, &certificates, &parts.registry);
        let common = Common {
            shared: Arc::new(shared),
            registry: parts.registry,
            http3: Http3Shared::new(parts.inherited.take_relays()).map_err(ApplyError::Random)?,
        };
        let prepared = Preparation {
            limits: limits.prepare(&plan),
            route_limits: route_limits.prepare(&plan, Time::shared_ns(&common.shared.clock)),
            plan: Arc::clone(&plan),
            targets: named,
            names: looked_up,
            loaded_tls,
            logs: None,
            collector: open_collector(&parts.disk, plan.model()).await?,
        };
        let mut server = Self {
            key_sets: KeySetTasks::new(&common.registry, &common.shared.lifecycle),
            memory: MemoryWatch::new(Arc::clone(&common.shared.memory), &common.registry),
            exporters: Exporters::new(parts.purpose == Purpose::Serving, &common.shared, &ids),
            common,
            disk: parts.disk,
            workers: WorkerPool::default(),
            targets,
            names,
            listeners,
            limits,
            route_limits,
            logs,
            recording,
            certificates,
            acme,
            inherited: parts.inherited,
            relay: None,
            health: TargetHealth::default(),
            gauges: PlanGauges::default(),
            prober,
            reconnections: Reconnections::default(),
            plan,
            former_plans: FormerPlans::default(),
        };
        let transaction = server.open(prepared, arranged).await?;
        relieve_predecessor().await;
        server.commit(transaction).await;
        Ok(server)
    }
}

/// Loads certificates, keys and roots.
async fn load_tls(
    certificates: &CertificateManager,
    parts: &ServerParts<'_>,
) -> Result<LoadedTls, ApplyError> {
    let loading = certificates.begin_load();
    let loaded = loading.run(&parts.model, parts.keys, now()).await;
    loaded.map_err(ApplyError::Tls)
}

/// The tasks that obtain certificates; `None` in a rehearsal.
fn acme_tasks(
    purpose: Purpose,
    shared: &Shared,
    certificates: &CertificateManager,
    registry: &Arc<Registry>,
) -> Option<AcmeTasks> {
    let tasks = AcmeTasks::new(
        shared.challenges.clone(),
        certificates.challenges().clone(),
        Arc::clone(registry),
        Arc::clone(&shared.lifecycle),
    );
    (purpose == Purpose::Serving).then_some(tasks)
}
