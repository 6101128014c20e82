//! The targets of the active plan, kept from plan to plan while they stay the same.

use crate::registry::{StateRegistry, StateTransaction};
use proxy_model::{Host, Setting, Target, Upstream, UpstreamTls};
use proxy_upstream::{TargetId, TargetState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids and states of all targets of the active plan.
#[derive(Debug, Default)]
pub struct TargetRegistry {
    targets: StateRegistry<Arc<TargetIdentity>, RegisteredTarget>,
    /// The epoch of the next new target. Shared with transactions, so that no epoch is used twice
    /// even if a transaction is dropped.
    next_epoch: Arc<AtomicU64>,
}

/// The targets of the next plan. Nothing active changes before [`TargetRegistry::commit`].
#[derive(Debug)]
pub struct TargetTransaction {
    targets: StateTransaction<Arc<TargetIdentity>, RegisteredTarget>,
    /// By slot: whether a target of the active plan or of this transaction uses it.
    taken: Vec<bool>,
    /// All slots before this one are in use.
    first_free: usize,
    next_epoch: Arc<AtomicU64>,
    /// Targets from this epoch on are new.
    first_epoch: u64,
}

/// The identity of a target: its upstream, its address, and the settings its state depends on. A
/// target that a reload removes and a later one adds again has the same identity and another id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetIdentity {
    upstream: String,
    address: String,
    settings: String,
}

#[derive(Debug)]
pub(crate) struct RegisteredTarget {
    pub(crate) id: TargetId,
    pub(crate) identity: Arc<TargetIdentity>,
    pub(crate) state: Arc<TargetState>,
}

impl TargetRegistry {
    /// Begins the transaction of a reload.
    #[must_use]
    pub fn begin(&self) -> TargetTransaction {
        let mut taken = Vec::new();
        for target in self.targets.states() {
            take(&mut taken, target.id.slot);
        }
        TargetTransaction {
            targets: self.targets.begin(),
            taken,
            first_free: 0,
            next_epoch: Arc::clone(&self.next_epoch),
            first_epoch: self.next_epoch.load(Ordering::Relaxed),
        }
    }

    /// Activates the targets of `transaction`. Slots of removed targets may be reused from now on.
    pub fn commit(&mut self, transaction: TargetTransaction) {
        self.targets.commit(transaction.targets);
    }
}

impl TargetTransaction {
    /// Whether the active plan does not have this target.
    #[must_use]
    pub fn is_new(&self, target: TargetId) -> bool {
        self.first_epoch <= target.epoch
    }

    /// The state of `target`, new or kept.
    pub(crate) fn enter(&mut self, upstream: &Upstream, target: &Target) -> Arc<RegisteredTarget> {
        let identity = Arc::new(TargetIdentity {
            upstream: upstream.name.clone(),
            address: target.address.to_string(),
            settings: format!("{:?} {:?}", upstream.protocol.value, tls_settings(upstream)),
        });
        let Self {
            targets,
            taken,
            first_free,
            next_epoch,
            first_epoch: _,
        } = self;
        targets.enter(Arc::clone(&identity), || RegisteredTarget {
            identity,
            id: TargetId {
                slot: take_free(taken, first_free),
                epoch: next_epoch.fetch_add(1, Ordering::Relaxed),
            },
            state: Arc::new(first_state(target)),
        })
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
    } = upstream.tls.as_ref()?;
    let file = |setting: &Option<Setting<PathBuf>>| setting.as_ref().map(|it| it.value.clone());
    let sni = sni.as_ref().map(|sni| sni.value.clone());
    Some((sni, file(ca_file), file(cert_file), file(key_file)))
}

fn first_state(target: &Target) -> TargetState {
    let address = &target.address.value;
    match &address.host {
        Host::Ip(ip) => TargetState::at(vec![SocketAddr::new(*ip, address.port)]),
        Host::Name(_) => TargetState::default(),
    }
}
