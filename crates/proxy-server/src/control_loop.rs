//! The control loop of the process: start, signals, reloads, upgrades, exit.

pub(crate) mod configuration;
mod exit;
mod pending_reload;
mod process;
mod registry;
mod rehearsal;
mod reload;
mod start;
mod upgrade;

use crate::admin::Admin;
use crate::config::delivery::Pending;
use crate::config::options::Options;
use crate::error::start_error::StartError;
use crate::reload::limit_registry::SETTLE_INTERVAL;
use crate::reload::server::task_results::TaskResults;
use crate::runtime::disk_thread::DiskThread;
use crate::runtime::signals::{Event, Signals};
use crate::runtime::systemd;
use crate::sockets::handover::Predecessor;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::worker::heartbeat::CHECK_INTERVAL;
use exit::End;
use process::Process;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior};

pub(crate) use registry::{new_lifecycle, new_registry};

/// Interval of summarizing repeated events.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(1);

/// Serves until a signal ends the process, then drains. `inherited` holds the sockets of the
/// service manager.
pub(crate) async fn run(options: &Options, inherited: InheritedSockets) -> Result<(), StartError> {
    let disk = DiskThread::start()?;
    // Boxed: it is large.
    let outcome = Box::pin(serve_until_end(options, &disk, inherited)).await;
    // All sockets are closed: the thread has to remove their files.
    disk.settle().await;
    outcome
}

async fn serve_until_end(
    options: &Options,
    disk: &DiskThread,
    inherited: InheritedSockets,
) -> Result<(), StartError> {
    // First: until then, SIGUSR1 and SIGHUP of a rotation or a reload would end the process.
    let mut signals = Signals::listen()?;
    let (predecessor, passed) = match Predecessor::find().map_err(StartError::TakeOver)? {
        Some((predecessor, passed)) => (Some(predecessor), passed),
        None => (None, Vec::new()),
    };
    let starting = Process::start(options, disk.clone(), inherited.and(passed), predecessor);
    let mut process = tokio::select! {
        biased;
        // A slow disk or name server must not delay signals.
        _ = signals.end() => return Ok(()),
        started = starting => started?,
    };
    systemd::notify(NotifyState::Ready);
    let end = process.serve(&mut signals).await;
    let outcome = process.finish(end, &mut signals).await;
    process.server.stop().await;
    outcome
}

/// A timer that does not repeat the ticks that a delay missed.
fn timer(period: Duration) -> Interval {
    let mut timer = tokio::time::interval(period);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    timer
}

impl Process {
    async fn serve(&mut self, signals: &mut Signals) -> End {
        let shared = Arc::clone(self.server.shared());
        let admin_lost = self.admin.as_ref().map(Admin::lost).unwrap_or_default();
        let mut summary_timer = timer(SUMMARY_INTERVAL);
        let mut settle_timer = timer(SETTLE_INTERVAL);
        let mut worker_timer = timer(CHECK_INTERVAL);
        let mut memory_timer = timer(self.server.memory_interval());
        loop {
            tokio::select! {
                event = signals.next() => if let Some(end) = self.handle(event) {
                    return end;
                },
                // The set of sockets must not change while they are handed over.
                pending = self.inbox.next(), if self.upgrade.is_none() && self.reload.is_none() => {
                    let Pending { delivery, is_rehearsed, answer } = pending;
                    self.begin_reload(delivery, is_rehearsed, Some(answer));
                },
                prepared = pending_reload::prepared(&mut self.reload) => tokio::select! {
                    biased;
                    event = signals.end() => return End::from(event),
                    () = self.end_reload(prepared) => {}
                },
                successor = upgrade::end(&mut self.upgrade) => if self.end_upgrade(successor).await {
                    return End::HandedOver;
                },
                results = self.server.next_results() => self.adopt(results),
                _ = summary_timer.tick() => self.flush_repeated_events(),
                _ = settle_timer.tick() => self.server.settle_rate_limits(),
                () = admin_lost.notified() => return End::AdminLost,
                () = shared.health_changes.notified() => self.server.refresh(),
                _ = memory_timer.tick() => {
                    self.server.check_memory();
                    memory_timer.reset_after(self.server.memory_interval());
                }
                _ = worker_timer.tick() => if let Some(worker) = self.maintain_workers() {
                    return End::WorkerLost(worker);
                },
            }
        }
    }

    /// Applies the results of background tasks.
    fn adopt(&mut self, results: TaskResults) {
        if self.server.adopt(results)
            && let Some(admin) = &self.admin
        {
            admin.report(self.server.plan());
        }
    }

    /// Runs the periodic upkeep of workers; returns the number of a worker that has died.
    fn maintain_workers(&mut self) -> Option<usize> {
        self.server.end_ejections();
        self.server.count_evictions();
        self.server.free_former_plans();
        self.server.check_workers()
    }

    /// Handles a signal; returns the kind of exit that it requests.
    fn handle(&mut self, event: Event) -> Option<End> {
        match event {
            Event::Reload => self.reload(),
            Event::ReopenLogs => self.server.reopen_logs(),
            Event::Upgrade => self.begin_upgrade(),
            Event::Drain | Event::Quit => return Some(End::from(event)),
        }
        None
    }
}
