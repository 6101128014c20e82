//! State of the running process.

use super::pending_reload::PendingReload;
use crate::admin::Admin;
use crate::config::delivery::{Delivery, Inbox, Stop};
use crate::config::options::Source;
use crate::observe::events::Events;
use crate::reload::server::Server;
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::handover::{Candidate, Program};
use proxy_model::ControlPlane;
use proxy_telemetry::{Lifecycle, Registry, Windows};
use std::sync::Arc;

pub(super) struct Process {
    pub(super) config: Source,
    pub(super) disk: DiskThread,
    pub(super) program: Option<Program>,
    pub(super) events: Option<Events>,
    pub(super) server: Server,
    pub(super) admin: Option<Admin>,
    pub(super) registry: Arc<Registry>,
    pub(super) lifecycle: Arc<Lifecycle>,
    pub(super) upgrade: Option<Candidate>,
    /// The reload that waits for files or names.
    pub(super) reload: Option<PendingReload>,
    /// A reload requested during an upgrade or another reload, which runs after it.
    pub(super) reload_pending: bool,
    /// An upgrade requested during a reload, which begins after it.
    pub(super) upgrade_pending: bool,
    /// The active bundle; `None` for the node's own configuration.
    pub(super) bundle: Option<Delivery>,
    pub(super) inbox: Inbox,
    /// Drop ends the client of the control plane.
    pub(super) follower: Option<Stop>,
    /// The block at the start of the client, which keeps it across reloads.
    pub(super) control_plane: Option<ControlPlane>,
}

impl Process {
    /// Writes a line about each kind of event that was repeated.
    pub(super) fn flush_repeated_events(&self) {
        if let Some(events) = &self.events {
            events.sum_up(Windows::Ended);
        }
    }
}
