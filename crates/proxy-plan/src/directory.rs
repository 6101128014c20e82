//! What is known of targets, kept from plan to plan while a target stays the same.

use proxy_model::{Host, Setting, Target, Upstream, UpstreamTls};
use proxy_upstream::TargetState;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The states of all targets that any plan in force knows, each with a slot of its own.
///
/// A slot is a small number by which workers find a target's connections without hashing its name; it
/// is used again once the target is gone.
#[derive(Debug, Default)]
pub struct Directory {
    known: HashMap<Identity, Known>,
    slots: u32,
    free: Vec<u32>,
    version: u64,
}

/// What makes a target the same target: where it is, and the settings its state depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    upstream: String,
    address: String,
    settings: String,
}

#[derive(Debug)]
struct Known {
    slot: u32,
    state: Arc<TargetState>,
    // The last plan that named it.
    version: u64,
}

impl Directory {
    /// Slots given out so far, free ones included.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    pub(crate) fn begin(&mut self) {
        self.version += 1;
    }

    /// The slot and state of `target`, new or as it was.
    pub(crate) fn enter(
        &mut self,
        upstream: &Upstream,
        target: &Target,
    ) -> (u32, Arc<TargetState>) {
        let identity = Identity {
            upstream: upstream.name.clone(),
            address: target.address.to_string(),
            settings: format!("{:?} {:?}", upstream.protocol.value, secrets(upstream)),
        };
        let version = self.version;
        if let Some(known) = self.known.get_mut(&identity) {
            known.version = version;
            return (known.slot, Arc::clone(&known.state));
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        let state = Arc::new(first_state(target));
        let known = Known {
            slot,
            state: Arc::clone(&state),
            version,
        };
        self.known.insert(identity, known);
        (slot, state)
    }

    /// Forgets the targets that neither this plan nor the one before named.
    ///
    /// One plan longer than needed: requests under the old plan may still use a slot.
    pub(crate) fn finish(&mut self) {
        let (oldest, free) = (self.version.saturating_sub(1), &mut self.free);
        self.known.retain(|_, known| {
            let kept = oldest <= known.version;
            if !kept {
                free.push(known.slot);
            }
            kept
        });
    }
}

/// What makes one TLS connection unlike another: none goes on under other settings.
fn secrets(upstream: &Upstream) -> Option<impl std::fmt::Debug> {
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
