//! The exit of the process.

use super::process::Process;
use crate::error::start_error::StartError;
use crate::listen::OnDrop;
use crate::runtime::signals::{Event, Signals};
use crate::runtime::systemd;
use crate::sockets::handover::Candidate;
use sd_notify::NotifyState;
use std::ops::ControlFlow;
use std::time::Duration;

/// Interval of checking whether the workers have ended.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Grace period for requests in flight after a worker or the admin interface has died.
const LAST_GRACE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopEnd {
    Gracefully,
    HandedOver,
    Now,
    /// The worker with this number has died.
    WorkerLost(usize),
    /// The task that accepts connections of the admin interface has panicked.
    AdminLost,
}

/// The exit that `event` requests; `event` must be one that ends the process.
impl From<Event> for LoopEnd {
    fn from(event: Event) -> Self {
        match event {
            Event::Quit => Self::Now,
            Event::Drain | Event::Reload | Event::ReopenLogs | Event::Upgrade => Self::Gracefully,
        }
    }
}

impl Process {
    /// Exits as `end` requires. The error is the loss that caused the exit.
    pub(super) async fn finish(
        &mut self,
        end: LoopEnd,
        signals: &mut Signals,
    ) -> Result<(), StartError> {
        let lost = match end {
            LoopEnd::Gracefully => {
                self.drain(signals).await;
                return Ok(());
            }
            LoopEnd::HandedOver => {
                self.leave(signals).await;
                return Ok(());
            }
            LoopEnd::Now => return Ok(()),
            LoopEnd::WorkerLost(worker) => StartError::WorkerLost(worker),
            LoopEnd::AdminLost => StartError::AdminLost,
        };
        tracing::error!("{lost}; the process ends");
        self.drain_briefly(signals).await;
        Err(lost)
    }

    /// Stops accepting, and waits until requests in flight finish or the grace period ends.
    async fn drain(&mut self, signals: &mut Signals) {
        tracing::info!("draining");
        self.follower = None;
        self.reload = None;
        self.upgrade.take().inspect(Candidate::abort);
        systemd::notify(NotifyState::Stopping);
        self.end(signals).await;
    }

    /// Like [`drain`](Self::drain), for a few seconds: the process does not listen in that time, so
    /// its restart must not be delayed for long.
    async fn drain_briefly(&mut self, signals: &mut Signals) {
        drop(tokio::time::timeout(LAST_GRACE, self.drain(signals)).await);
    }

    /// After a handover: waits until requests in flight finish, without a limit.
    async fn leave(&mut self, signals: &mut Signals) {
        // The successor follows the control plane with the same identity.
        self.follower = None;
        if let Some(admin) = self.admin.take() {
            admin.set_files_on_drop(OnDrop::Keep);
        }
        self.server.hand_over();
        while !self.server.is_over() {
            tokio::select! {
                event = signals.next() => match event {
                    Event::Drain => return self.end(signals).await,
                    Event::Quit => return,
                    Event::ReopenLogs => self.server.reopen_logs(),
                    Event::Reload | Event::Upgrade => {
                        tracing::info!("handed over already: another process is in charge");
                    }
                },
                () = tokio::time::sleep(DRAIN_CHECK_INTERVAL) => self.flush_repeated_events(),
            }
        }
    }

    async fn end(&mut self, signals: &mut Signals) {
        self.server.drain().await;
        let time = *self.server.plan().model().system.graceful_shutdown_timeout;
        let deadline = tokio::time::sleep(time);
        tokio::pin!(deadline);
        while !self.server.is_over() {
            tokio::select! {
                () = &mut deadline => {
                    tracing::warn!("the time to drain is over; connections are cut");
                    return;
                }
                event = signals.next() => {
                    if self.handle_while_draining(event).is_break() {
                        return;
                    }
                }
                () = tokio::time::sleep(DRAIN_CHECK_INTERVAL) => self.flush_repeated_events(),
            }
        }
    }

    /// Handles a signal during the drain; breaks if the process is to exit at once.
    fn handle_while_draining(&self, event: Event) -> ControlFlow<()> {
        match event {
            Event::Quit => return ControlFlow::Break(()),
            Event::ReopenLogs => self.server.reopen_logs(),
            Event::Reload | Event::Upgrade => {
                tracing::warn!("draining: this process neither reloads nor hands over");
            }
            Event::Drain => tracing::info!("draining already; SIGQUIT cuts it short"),
        }
        ControlFlow::Continue(())
    }
}
