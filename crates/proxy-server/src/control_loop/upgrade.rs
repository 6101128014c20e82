//! The upgrade: steps of both processes, in order.

use super::process::Process;
use crate::admin::Admin;
use crate::observe::events::ANSWER;
use crate::runtime::systemd;
use crate::sockets::handover::{self, Candidate, HealthSnapshot, Passed, Successor, UpgradeError};
use proxy_telemetry::{Registry, names};
use rustix::process::{Pid, Signal, kill_process};
use sd_notify::NotifyState;

impl Process {
    /// Starts the successor process.
    pub(super) fn begin_upgrade(&mut self) {
        if self.upgrade.is_some() {
            tracing::info!("an upgrade is under way already");
            return;
        }
        if self.reload.is_some() {
            // The set of sockets must not change while they are handed over.
            tracing::info!("the upgrade waits for the reload");
            self.upgrade_pending = true;
            return;
        }
        let sockets = match &self.program {
            Some(_) => self.sockets(),
            None => Err(UpgradeError::NoProgram),
        };
        let begun = sockets.and_then(|sockets| {
            let program = self.program.as_ref().ok_or(UpgradeError::NoProgram)?;
            let snapshot = HealthSnapshot::encode(self.server.plan());
            handover::begin(program, sockets, &snapshot)
        });
        match begun {
            Ok(candidate) => self.upgrade = Some(candidate),
            Err(fault) => self.fail_upgrade(&fault),
        }
    }

    /// Duplicates of all listening sockets.
    fn sockets(&mut self) -> Result<Vec<Passed>, UpgradeError> {
        let relays = self.server.open_relays().map_err(UpgradeError::Pass)?;
        let relays = relays
            .into_iter()
            .map(|(label, socket)| Ok(Passed { label, socket }));
        let served = self.server.sockets();
        let admin = self.admin.iter().flat_map(Admin::sockets);
        let copies = served.chain(admin).map(|(label, socket)| {
            let socket = socket.try_clone()?;
            Ok(Passed { label, socket })
        });
        let all = relays.chain(copies);
        all.collect::<Result<_, _>>().map_err(UpgradeError::Pass)
    }

    /// Ends an upgrade. Returns whether the successor has taken over.
    pub(super) async fn end_upgrade(&mut self, found: Result<Successor, UpgradeError>) -> bool {
        self.upgrade = None;
        let id = found.as_ref().map_or(0, Successor::id);
        let confirmed = match found {
            Ok(successor) => {
                systemd::notify(NotifyState::MainPid(id));
                successor.confirm().await
            }
            Err(fault) => Err(fault),
        };
        let reload_pending = std::mem::take(&mut self.reload_pending);
        match confirmed {
            Ok(()) => {
                tracing::info!(id, "handed over");
                if reload_pending {
                    pass_reload(id);
                }
                return true;
            }
            Err(fault) => self.fail_upgrade(&fault),
        }
        if reload_pending {
            self.reload();
        }
        false
    }

    fn fail_upgrade(&self, fault: &UpgradeError) {
        count(&self.registry, "failure");
        tracing::error!(target: ANSWER, reason = %fault, "not handed over; this process serves on");
    }
}

pub(super) fn count(registry: &Registry, result: &'static str) {
    registry.counter(&names::UPGRADES_TOTAL, [result]).add(1);
}

/// The result of the current upgrade; pending if there is none.
pub(super) async fn end(upgrade: &mut Option<Candidate>) -> Result<Successor, UpgradeError> {
    match upgrade {
        Some(candidate) => match candidate.await {
            Ok(found) => found,
            Err(error) => Err(UpgradeError::Pass(error.into())),
        },
        None => std::future::pending().await,
    }
}

/// Makes the successor reload its configuration, which it may have read before it changed.
fn pass_reload(id: u32) {
    let process = i32::try_from(id).ok().and_then(Pid::from_raw);
    let signalled = process.map(|process| kill_process(process, Signal::HUP));
    if let Some(Err(error)) = signalled {
        tracing::warn!(%error, "cannot pass the reload on");
    }
}
