//! The start of the process.

use super::configuration::{Load, load, load_for_first_start};
use super::process::Process;
use super::registry::{new_lifecycle, new_registry};
use super::reload::{load_on_disk_thread, prepare_admin, warn};
use super::upgrade;
use crate::admin::{Admin, AdminSockets};
use crate::config::delivery::{Deliveries, Follow, Follower, PrivateKeys};
use crate::config::options::Options;
use crate::error::start_error::{StartError, into_start_error};
use crate::listen::OnDrop;
use crate::reload::server::Server;
use crate::reload::server::start::{Purpose, ServerParts};
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::handover::Predecessor;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use proxy_model::ControlPlane;
use proxy_pipeline::ChallengeTokens;
use proxy_telemetry::{Lifecycle, Registry};
use std::mem;
use std::sync::Arc;

impl Process {
    /// Loads the configuration, and starts to serve it.
    pub(super) async fn start(
        options: &Options,
        disk: DiskThread,
        mut inherited: InheritedSockets,
        mut predecessor: Option<Predecessor>,
    ) -> Result<Self, StartError> {
        let Options {
            config,
            build,
            program,
            events,
            follow,
        } = options;
        let load = loading(predecessor.as_ref());
        let loaded = load_on_disk_thread(&disk, config, load).await?;
        warn(&loaded);
        let registry = new_registry();
        if let Some(events) = events {
            events.count_into(&registry);
        }
        let lifecycle = new_lifecycle(build.version, build.commit, &registry);
        let model = Arc::new(loaded.model);
        let challenges = ChallengeTokens::default();
        let (deliveries, inbox) = Deliveries::new(Arc::clone(&registry), challenges.clone());
        let follower = follower(&disk, follow.zip(model.control_plane.clone()), deliveries).await?;
        // Before serving begins, because no step may fail after a client is accepted.
        let (open, bound) = (AdminSockets::default(), Vec::new());
        let listeners = prepare_admin(&disk, open, bound, &model, &mut inherited).await?;
        let snapshot = predecessor.as_mut().map(|it| mem::take(&mut it.snapshot));
        let keys = PrivateKeys::default();
        let started = Server::start(
            ServerParts {
                model: Arc::clone(&model),
                keys: &keys,
                purpose: Purpose::Serving,
                registry: Arc::clone(&registry),
                lifecycle: Arc::clone(&lifecycle),
                disk: disk.clone(),
                inherited,
                listeners: ListenerSet::default(),
                snapshot: snapshot.unwrap_or_default(),
                challenges,
            },
            async || relieve(predecessor, &registry).await,
        );
        let server = started
            .await
            .map_err(|fault| into_start_error(fault, &model))?;
        let admin = Admin::open(listeners, &server, *build, &registry, &lifecycle);
        announce(&server, follower.is_none().then_some(&*lifecycle));
        let mut process = Self {
            config: config.clone(),
            disk,
            program: program.clone(),
            events: events.clone(),
            server,
            admin: Some(admin),
            registry,
            lifecycle,
            upgrade: None,
            reload: None,
            reload_pending: false,
            upgrade_pending: false,
            bundle: None,
            inbox,
            follower: None,
            control_plane: model.control_plane.clone(),
        };
        // Sockets of a predecessor that the bundle requires must not be closed before.
        process.follow(follower).await;
        process.server.finish_handover();
        if let Some(admin) = &process.admin {
            admin.set_files_on_drop(OnDrop::Remove);
        }
        process.lifecycle.serves(process.server.plan().generation());
        Ok(process)
    }

    /// Applies the client's bundle, and starts the client.
    async fn follow(&mut self, follower: Option<Follower>) {
        let Some(Follower { first, start }) = follower else {
            return;
        };
        let outcome = match first {
            None => None,
            Some(delivery) => Some(self.deliver(delivery).await),
        };
        self.follower = Some(start(outcome));
    }
}

/// Ends the predecessor's serving, if there is one, and counts the upgrade.
async fn relieve(predecessor: Option<Predecessor>, registry: &Registry) {
    if let Some(predecessor) = predecessor {
        predecessor.relieve().await;
        upgrade::count(registry, "success");
    }
}

/// Prepares the client of the control plane on the disk thread, which may block.
async fn follower(
    disk: &DiskThread,
    follow: Option<(Follow, ControlPlane)>,
    deliveries: Deliveries,
) -> Result<Option<Follower>, StartError> {
    let Some((follow, settings)) = follow else {
        return Ok(None);
    };
    let prepared = disk.run(move || follow(&settings, deliveries)).await?;
    Ok(Some(prepared))
}

/// Reports the sockets. A serving process must be ready before that: a reader may send requests at
/// once.
fn announce(server: &Server, serving: Option<&Lifecycle>) {
    if let Some(lifecycle) = serving {
        lifecycle.serves(server.plan().generation());
    }
    for bound in server.bound() {
        tracing::info!(address = %bound, "listening");
    }
}

/// The way to load the configuration at the start of a process.
fn loading(predecessor: Option<&Predecessor>) -> Load {
    match predecessor {
        Some(_) => load,
        None => load_for_first_start,
    }
}
