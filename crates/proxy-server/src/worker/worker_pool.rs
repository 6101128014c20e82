//! The pool of workers: started, updated, and scaled down.

use crate::error::apply_error::ApplyError;
use crate::sockets::socket_assignment::{OwnedSockets, SocketAssignment};
use crate::worker::{self, Command, Common, Handle, PLAN_UPDATE_TIMEOUT, PlanUpdate, heartbeat};
use proxy_model::Model;
use proxy_pipeline::Draining;
use std::io;
use std::time::Duration;
use tokio::sync::oneshot;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerHealth {
    /// Number of silent workers.
    pub(crate) silent: usize,
    /// Number of a worker with an ended thread.
    pub(crate) died: Option<usize>,
}

/// Maximum time for workers to exit at an immediate stop.
const STOP_TIME: Duration = Duration::from_secs(1);

/// Maximum time for workers to close their listening sockets before the drain continues.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Interval of checking whether they have exited.
const STOP_INTERVAL: Duration = Duration::from_millis(1);

/// Every running worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerPool {
    /// Workers that accept connections.
    workers: Vec<Handle>,
    /// Workers that are leaving and still have connections.
    leaving: Vec<Handle>,
    /// Number of commands sent to a single worker.
    sent: usize,
}

impl WorkerPool {
    /// Number of workers that accept connections, or will.
    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Starts workers so that there are `count`. They serve after they are added.
    pub(crate) async fn spawn(&mut self, count: usize, common: &Common) -> io::Result<Vec<Handle>> {
        let now = heartbeat::now();
        self.join_finished();
        let missing = count.saturating_sub(self.workers.len());
        let taken = |number: &usize| {
            let mut all = self.workers.iter().chain(&self.leaving);
            all.any(|worker| worker.number == *number)
        };
        let mut spawned = Vec::with_capacity(missing);
        for number in (0..).filter(|number| !taken(number)).take(missing) {
            spawned.push(worker::start(number, common.clone(), now).await?);
        }
        Ok(spawned)
    }

    /// The sockets that each worker has duplicates of: current workers, then `spawned`, then those
    /// that leave.
    pub(crate) fn owned_sockets<'s>(
        &'s self,
        spawned: &'s [Handle],
    ) -> impl Iterator<Item = &'s OwnedSockets> {
        let all = self.workers.iter().chain(spawned).chain(&self.leaving);
        all.map(|worker| &worker.owned_sockets)
    }

    /// Adds workers that [`Self::spawn`] has started.
    pub(crate) fn add(&mut self, spawned: Vec<Handle>) {
        self.workers.extend(spawned);
    }

    /// Waits until every worker that accepts connections has replied.
    ///
    /// # Errors
    /// [`ApplyError::Unresponsive`] if one does not reply within [`PLAN_UPDATE_TIMEOUT`], or has
    /// ended.
    pub(crate) async fn probe(&self) -> Result<(), ApplyError> {
        let mut answers = Vec::with_capacity(self.workers.len());
        for worker in &self.workers {
            let (answer, answered) = oneshot::channel();
            // Fails if the worker has ended, which drops the reply channel.
            drop(worker.commands.send(Command::Probe(answer)));
            answers.push(answered);
        }
        for answered in answers {
            match tokio::time::timeout(PLAN_UPDATE_TIMEOUT, answered).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(ApplyError::Unresponsive),
            }
        }
        Ok(())
    }

    /// Sends each worker its update, and waits until all have applied it, at most
    /// [`PLAN_UPDATE_TIMEOUT`]. Infallible: a late worker applies the update before any later work.
    pub(crate) async fn publish(&mut self, updates: Vec<PlanUpdate>) {
        let mut answers = Vec::with_capacity(updates.len());
        let all = self.workers.iter_mut().chain(&mut self.leaving);
        for (worker, update) in all.zip(updates) {
            let assignments = update.listeners.iter().map(|listener| &listener.assignment);
            let owned_sockets = assignments.flat_map(SocketAssignment::owned_sockets);
            worker.owned_sockets = owned_sockets.collect();
            let (done, answer) = oneshot::channel();
            let command = Command::Apply(Box::new(update), done);
            // Fails if the worker has ended; the dropped reply channel counts as a reply.
            drop(worker.commands.send(command));
            answers.push(answer);
        }
        let all = self.workers.iter().chain(&self.leaving);
        for (worker, answer) in all.zip(answers) {
            if tokio::time::timeout(PLAN_UPDATE_TIMEOUT, answer)
                .await
                .is_err()
            {
                tracing::error!(
                    worker = worker.number,
                    "a worker has not taken the new configuration over yet; it will when it answers"
                );
            }
        }
    }

    /// Retires the workers beyond the first `count`. Other workers already hold their sockets.
    pub(crate) fn scale_down(&mut self, count: usize) {
        let leaving = self.workers.split_off(count.min(self.workers.len()));
        for worker in leaving {
            tracing::info!(worker = worker.number, "a worker leaves");
            drop(worker.commands.send(Command::Drain(Draining::Gently)));
            self.leaving.push(worker);
        }
    }

    /// Makes every worker close its listening sockets, and waits for that, at most [`CLOSE_TIME`].
    pub(crate) async fn stop_accepting(&self) {
        let mut answers = Vec::with_capacity(self.workers.len());
        for worker in self.workers.iter().chain(&self.leaving) {
            let (done, closed) = oneshot::channel();
            // Fails if the worker has ended, which drops the reply channel.
            drop(worker.commands.send(Command::StopAccepting(done)));
            answers.push(closed);
        }
        let all = async {
            for closed in answers {
                closed.await.unwrap_or_default();
            }
        };
        if tokio::time::timeout(CLOSE_TIME, all).await.is_err() {
            tracing::warn!("a worker has not closed its listening sockets yet");
        }
    }

    pub(crate) fn send_all(&self, command: impl Fn() -> Command) {
        for worker in self.workers.iter().chain(&self.leaving) {
            // Fails if the worker has ended, which needs no command.
            drop(worker.commands.send(command()));
        }
    }

    /// Sends a command to one worker that accepts connections, each in turn.
    pub(crate) fn send_next(&mut self, command: Command) {
        let turn = self.sent.checked_rem(self.workers.len());
        self.sent = self.sent.wrapping_add(1);
        if let Some(worker) = turn.and_then(|turn| self.workers.get(turn)) {
            // Fails if the worker has ended, which closes the connection.
            drop(worker.commands.send(command));
        }
    }

    /// The state of the workers at `now`, by the monotonic clock.
    pub(crate) fn check(&mut self, now: Duration) -> WorkerHealth {
        let mut vitals = WorkerHealth::default();
        for worker in &mut self.workers {
            vitals.silent += usize::from(worker.monitor.is_silent(now));
            if worker.thread.is_finished() {
                vitals.died = Some(worker.number);
            }
        }
        vitals
    }

    /// Returns true if every worker has ended.
    pub(crate) fn is_over(&self) -> bool {
        let mut all = self.workers.iter().chain(&self.leaving);
        all.all(|worker| worker.thread.is_finished())
    }

    /// Ends every worker now. One that hangs is abandoned after [`STOP_TIME`] and ends with the
    /// process.
    pub(crate) async fn stop(self) {
        self.send_all(|| Command::Stop);
        let stopped = async {
            while !self.is_over() {
                tokio::time::sleep(STOP_INTERVAL).await;
            }
        };
        // Workers that have not ended are logged below.
        drop(tokio::time::timeout(STOP_TIME, stopped).await);
        for worker in self.workers.into_iter().chain(self.leaving) {
            if worker.thread.is_finished() {
                join(worker);
            } else {
                let worker = worker.number;
                tracing::error!(worker, "a worker hangs; the process ends without it");
            }
        }
    }

    fn join_finished(&mut self) {
        let left = |worker: &mut Handle| worker.thread.is_finished();
        self.leaving.extract_if(.., left).for_each(join);
    }
}

fn join(worker: Handle) {
    if worker.thread.join().is_err() {
        tracing::error!("a worker panicked");
    }
}

/// Number of workers: one per core if the configuration sets none.
pub(crate) fn worker_count(model: &Model) -> usize {
    match *model.system.worker_threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::heartbeat::{Heartbeat, HeartbeatMonitor};
    use proxy_telemetry::{Registry, RegistrySettings};
    use std::thread;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap()
    }

    fn worker(
        heartbeat: &Heartbeat,
        commands: UnboundedSender<Command>,
        thread: thread::JoinHandle<()>,
    ) -> Handle {
        let registry = Registry::new(RegistrySettings {
            reasons: &[],
            max_series: 10,
        });
        Handle {
            number: 0,
            owned_sockets: OwnedSockets::new(),
            monitor: HeartbeatMonitor::new(0, heartbeat.clone(), &registry, Duration::ZERO),
            commands,
            thread,
        }
    }

    #[test]
    fn a_reload_is_refused_before_anything_is_published_when_a_worker_has_ended() {
        let (commands, inbox) = unbounded_channel();
        drop(inbox);
        let ended = worker(&Heartbeat::default(), commands, thread::spawn(|| ()));
        let mut workers = WorkerPool::default();
        workers.add(vec![ended]);

        let probed = runtime().block_on(workers.probe());
        assert!(matches!(probed, Err(ApplyError::Unresponsive)));
    }

    #[test]
    fn workers_that_answer_hold_no_reload_up() {
        let (commands, mut inbox) = unbounded_channel();
        let thread = thread::spawn(move || {
            if let Some(Command::Probe(answer)) = inbox.blocking_recv() {
                answer.send(()).unwrap_or_default();
            }
        });
        let mut workers = WorkerPool::default();
        workers.add(vec![worker(&Heartbeat::default(), commands, thread)]);

        assert!(runtime().block_on(workers.probe()).is_ok());
    }

    #[test]
    fn commands_for_one_worker_go_to_each_in_turn() {
        let mut workers = WorkerPool::default();
        workers.send_next(Command::Refresh);
        let inboxes = [(); 2].map(|()| {
            let (commands, inbox) = unbounded_channel();
            let thread = thread::spawn(|| ());
            workers.add(vec![worker(&Heartbeat::default(), commands, thread)]);
            inbox
        });

        for sent in 1..=4 {
            workers.send_next(Command::Refresh);
            assert_eq!(inboxes[0].len() + inboxes[1].len(), sent);
        }
        assert_eq!(inboxes.map(|inbox| inbox.len()), [2, 2]);
    }

    #[test]
    fn a_worker_that_died_or_hangs_is_noticed() {
        let (commands, mut inbox) = unbounded_channel();
        let runs =
            thread::spawn(
                move || {
                    while !matches!(inbox.blocking_recv(), Some(Command::Stop) | None) {}
                },
            );
        let heartbeat = Heartbeat::default();
        let mut workers = WorkerPool::default();
        workers.add(vec![worker(&heartbeat, commands.clone(), runs)]);
        let second = Duration::from_secs(1);
        assert_eq!(workers.check(second), WorkerHealth::default());
        assert_eq!(workers.check(4 * second).silent, 1);
        heartbeat.beat();
        assert_eq!(workers.check(5 * second), WorkerHealth::default());

        let died = thread::spawn(|| std::panic::resume_unwind(Box::new("a defect")));
        while !died.is_finished() {
            thread::yield_now();
        }
        let died = worker(&Heartbeat::default(), commands, died);
        workers.add(vec![Handle { number: 1, ..died }]);
        assert_eq!(workers.check(5 * second).died, Some(1));
        runtime().block_on(workers.stop());
    }

    #[test]
    fn a_worker_that_hangs_does_not_keep_the_process_from_ending() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let hangs = thread::spawn(move || ended.recv().unwrap_or_default());
        let mut workers = WorkerPool::default();
        let (commands, _inbox) = unbounded_channel();
        workers.add(vec![worker(&Heartbeat::default(), commands, hangs)]);

        runtime().block_on(workers.stop());
        drop(end);
    }
}
