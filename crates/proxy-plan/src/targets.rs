//! The targets of the active plan, kept across plans while unchanged.

mod former;
mod key_set;

pub use key_set::{KeySetIdentity, KeySetPlan, KeySetTimes};

use crate::agent_state::{AgentIdentity, AgentState};
use crate::expansion::{ExpandedPlace, ExpandedTarget};
use crate::registry::{StateRegistry, StateTransaction};
use crate::resolution::Resolution;
use former::FormerTargets;
use proxy_auth::RemoteKeys;
use proxy_cache::{CacheStore, StoreLimits};
use proxy_health::{BreakerSettings, CircuitBreaker, HealthCause};
use proxy_limits::RetryBudget;
use proxy_model::{KeyPin, RemoteKeySet, Setting, Upstream, UpstreamTls};
use proxy_upstream::{StickyKey, TargetId, TargetState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids and states of all targets of the active plan.
#[derive(Debug)]
pub struct TargetRegistry {
    targets: StateRegistry<AddressIdentity, RegisteredTarget>,
    former: Arc<FormerTargets<AddressIdentity>>,
    breakers: StateRegistry<BreakerIdentity, CircuitBreaker>,
    agents: StateRegistry<AgentIdentity, AgentState>,
    /// Retry budgets, by the name of the upstream.
    budgets: StateRegistry<String, RetryBudget>,
    key_sets: StateRegistry<KeySetIdentity, RemoteKeys>,
    /// The store of responses, by its bounds: with other bounds it begins empty.
    caches: StateRegistry<StoreLimits, CacheStore>,
    /// The epoch of the next new target. Shared with transactions, so that no epoch is used twice
    /// even if a transaction is dropped.
    next_epoch: Arc<AtomicU64>,
    sticky_key: StickyKey,
}

/// The targets of the next plan. Active state is unchanged until [`TargetRegistry::commit`].
#[derive(Debug)]
pub struct TargetTransaction {
    targets: StateTransaction<AddressIdentity, RegisteredTarget>,
    former: Arc<FormerTargets<AddressIdentity>>,
    breakers: StateTransaction<BreakerIdentity, CircuitBreaker>,
    agents: StateTransaction<AgentIdentity, AgentState>,
    budgets: StateTransaction<String, RetryBudget>,
    key_sets: StateTransaction<KeySetIdentity, RemoteKeys>,
    caches: StateTransaction<StoreLimits, CacheStore>,
    /// Indexed by slot; true if a target of the active plan or of this transaction uses it.
    taken: Vec<bool>,
    /// All slots before this one are in use.
    first_free: usize,
    next_epoch: Arc<AtomicU64>,
    sticky_key: StickyKey,
    resolution: Resolution,
}

/// The identity of a configured target: its upstream, its address, and the settings its state
/// depends on; one for all addresses of a DNS name. A target that a reload removes and a later one
/// adds again has the same identity and a new ID, and its former state while that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetIdentity {
    upstream: String,
    address: String,
    settings: String,
}

/// A target as configured, and one of its addresses, if resolved.
type AddressIdentity = (Arc<TargetIdentity>, Option<SocketAddr>);

/// Identity of a breaker across plans: its route, the upstream, and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BreakerIdentity {
    route: String,
    upstream: String,
    settings: BreakerSettings,
}

#[derive(Debug)]
pub(crate) struct RegisteredTarget {
    pub(crate) id: TargetId,
    pub(crate) state: Arc<TargetState>,
}

impl Default for TargetRegistry {
    /// A registry with an all-zero sticky key, so cookies can be forged: for plans that serve no
    /// traffic.
    fn default() -> Self {
        Self::new(StickyKey([0; 16]))
    }
}

impl TargetRegistry {
    /// A registry without targets; `sticky_key` makes the sticky cookies of upstreams without a
    /// secret.
    #[must_use]
    pub fn new(sticky_key: StickyKey) -> Self {
        Self {
            targets: StateRegistry::default(),
            former: Arc::default(),
            breakers: StateRegistry::default(),
            agents: StateRegistry::default(),
            budgets: StateRegistry::default(),
            key_sets: StateRegistry::default(),
            caches: StateRegistry::default(),
            next_epoch: Arc::default(),
            sticky_key,
        }
    }

    /// Begins the transaction of a reload.
    #[must_use]
    pub fn begin(&self) -> TargetTransaction {
        let mut taken = Vec::new();
        for target in self.targets.states() {
            take(&mut taken, target.id.slot);
        }
        TargetTransaction {
            targets: self.targets.begin(),
            former: Arc::clone(&self.former),
            breakers: self.breakers.begin(),
            agents: self.agents.begin(),
            budgets: self.budgets.begin(),
            key_sets: self.key_sets.begin(),
            caches: self.caches.begin(),
            taken,
            first_free: 0,
            next_epoch: Arc::clone(&self.next_epoch),
            sticky_key: self.sticky_key,
            resolution: Resolution::default(),
        }
    }

    /// Activates the targets of `transaction`. Slots of removed targets may be reused from now on.
    pub fn commit(&mut self, transaction: TargetTransaction) {
        self.commit_targets(transaction.targets);
        self.breakers.commit(transaction.breakers);
        self.agents.commit(transaction.agents);
        self.budgets.commit(transaction.budgets);
        self.key_sets.commit(transaction.key_sets);
        self.caches.commit(transaction.caches);
    }

    /// Activates the targets of `transaction`, made by resolving the active plan's names again;
    /// breakers and budgets are kept.
    pub fn commit_addresses(&mut self, transaction: TargetTransaction) {
        self.commit_targets(transaction.targets);
    }

    /// Activates `targets`, and stores the states of removed ones.
    fn commit_targets(&mut self, targets: StateTransaction<AddressIdentity, RegisteredTarget>) {
        let removed = self.targets.entries();
        let removed = removed.filter(|(identity, _)| !targets.contains(identity));
        // A target without an address has received no request.
        let removed = removed.filter(|((_, address), _)| address.is_some());
        let removed: Vec<_> = removed
            .map(|(identity, target)| (identity.clone(), Arc::clone(&target.state)))
            .collect();
        let is_active = |identity: &AddressIdentity| targets.contains(identity);
        let former = Arc::make_mut(&mut self.former);
        former.replace(is_active, removed);
        self.targets.commit(targets);
    }
}

impl TargetTransaction {
    /// The transaction, for plans with the addresses in `resolution`.
    #[must_use]
    pub fn with_resolution(self, resolution: Resolution) -> Self {
        Self { resolution, ..self }
    }

    pub(crate) fn resolution(&self) -> &Resolution {
        &self.resolution
    }

    /// The breaker of a route for an upstream: kept, or new and closed.
    pub(crate) fn breaker(
        &mut self,
        route: &str,
        upstream: &str,
        settings: BreakerSettings,
    ) -> CircuitBreaker {
        let identity = BreakerIdentity {
            route: route.to_owned(),
            upstream: upstream.to_owned(),
            settings,
        };
        let breaker = self
            .breakers
            .enter(identity, || CircuitBreaker::new(settings));
        CircuitBreaker::clone(&breaker)
    }

    /// The state of an agent: kept, or new.
    pub(crate) fn agent(&mut self, identity: AgentIdentity) -> Arc<AgentState> {
        let state = AgentState::new(&identity);
        self.agents.enter(identity, || state)
    }

    pub(crate) fn retry_budget(&mut self, upstream: &str) -> Arc<RetryBudget> {
        self.budgets
            .enter(upstream.to_owned(), RetryBudget::default)
    }

    /// The key set of an issuer, kept from the active plan or new and without keys. `None` if the
    /// issuer has no upstream; every valid model has one.
    pub(crate) fn key_set(
        &mut self,
        remote: &RemoteKeySet,
        upstreams: &[Upstream],
    ) -> Option<KeySetPlan> {
        let position = remote.upstream.position();
        let upstream = upstreams.get(position)?;
        let tls = format!("{:?}", tls_settings(upstream));
        let identity = KeySetIdentity::new(remote, upstream, &tls);
        Some(KeySetPlan {
            state: self.key_sets.enter(identity.clone(), RemoteKeys::default),
            identity,
            upstream: position,
        })
    }

    /// The store of responses: the active plan's if its bounds are the same, else an empty one.
    pub(crate) fn cache(&mut self, limits: StoreLimits) -> Arc<CacheStore> {
        self.caches.enter(limits, || CacheStore::new(limits))
    }

    pub(crate) fn sticky_key(&self) -> StickyKey {
        self.sticky_key
    }

    /// The state of `target`, new or kept, with the identity of all addresses of its name.
    pub(crate) fn enter(
        &mut self,
        upstream: &Upstream,
        target: &ExpandedTarget<'_>,
    ) -> (Arc<TargetIdentity>, Arc<RegisteredTarget>) {
        let identity = Arc::new(TargetIdentity {
            upstream: upstream.name.clone(),
            address: target.target.address.to_string(),
            settings: format!(
                "{:?} {:?} {:?}",
                upstream.protocol.value,
                upstream.send_proxy.map(|version| version.value),
                tls_settings(upstream)
            ),
        });
        let Self {
            targets,
            former,
            breakers: _,
            agents: _,
            budgets: _,
            key_sets: _,
            caches: _,
            taken,
            first_free,
            next_epoch,
            sticky_key: _,
            resolution: _,
        } = self;
        let address_key = (Arc::clone(&identity), target.place.address());
        let known = former.get(&address_key);
        let registered = targets.enter(address_key, || RegisteredTarget {
            id: TargetId {
                slot: take_free(taken, first_free),
                epoch: next_epoch.fetch_add(1, Ordering::Relaxed),
            },
            state: known.unwrap_or_else(|| Arc::new(first_state(&target.place))),
        });
        (identity, registered)
    }
}

fn take(taken: &mut Vec<bool>, slot: u32) {
    let slot = slot as usize;
    taken.resize(taken.len().max(slot + 1), false);
    if let Some(place) = taken.get_mut(slot) {
        *place = true;
    }
}

/// Takes the lowest free slot.
fn take_free(taken: &mut Vec<bool>, first_free: &mut usize) -> u32 {
    let rest = taken.iter().skip(*first_free);
    *first_free += rest.take_while(|taken| **taken).count();
    let slot = u32::try_from(*first_free).unwrap_or(u32::MAX);
    take(taken, slot);
    slot
}

/// The TLS settings that a target's identity includes, so that no connection continues under
/// changed ones.
fn tls_settings(upstream: &Upstream) -> Option<impl std::fmt::Debug> {
    let UpstreamTls {
        place: _,
        sni,
        ca_file,
        cert_file,
        key_file,
        verify,
        pins,
    } = upstream.tls.as_ref()?;
    let file = |setting: &Option<Setting<PathBuf>>| setting.as_ref().map(|it| it.value.clone());
    let sni = sni.as_ref().map(|sni| sni.value.clone());
    let files = (file(ca_file), file(cert_file), file(key_file));
    let pins: Vec<KeyPin> = pins.iter().map(|pin| pin.value).collect();
    Some((sni, files, verify.value, pins))
}

fn first_state(place: &ExpandedPlace) -> TargetState {
    match place {
        ExpandedPlace::At(address) => TargetState::at(*address),
        ExpandedPlace::Unknown => TargetState::default(),
        ExpandedPlace::Failed(error, since) => {
            let state = TargetState::default();
            state.fail(HealthCause::Dns, error, *since);
            state
        }
    }
}
