//! The workers that there are: hired, told what to do, and let go when there are to be fewer.

use crate::doors::Held;
use crate::server::ApplyFault;
use crate::worker::{self, ADOPTION_TIME, Adoption, Command, Common, Handle};
use proxy_pipeline::Draining;
use std::io;
use tokio::sync::oneshot;

/// Every worker that runs.
#[derive(Debug, Default)]
pub(crate) struct Staff {
    /// Those that take connections.
    workers: Vec<Handle>,
    /// Those that were let go and still have connections.
    leaving: Vec<Handle>,
}

impl Staff {
    /// Workers that take connections, or will.
    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// New workers, so that there are `count`. They serve when they are hired.
    pub(crate) async fn recruits(
        &mut self,
        count: usize,
        common: &Common,
    ) -> io::Result<Vec<Handle>> {
        self.forget_those_who_left();
        let missing = count.saturating_sub(self.workers.len());
        let taken = |number: &usize| {
            let mut all = self.workers.iter().chain(&self.leaving);
            all.any(|worker| worker.number == *number)
        };
        let mut recruits = Vec::with_capacity(missing);
        for number in (0..).filter(|number| !taken(number)).take(missing) {
            recruits.push(worker::start(number, common.clone()).await?);
        }
        Ok(recruits)
    }

    /// Of which sockets each worker has copies: those that take connections, then `recruits`, then
    /// those that leave.
    pub(crate) fn held<'s>(&'s self, recruits: &'s [Handle]) -> impl Iterator<Item = &'s Held> {
        let all = self.workers.iter().chain(recruits).chain(&self.leaving);
        all.map(|worker| &worker.held)
    }

    /// Takes `recruits` in.
    pub(crate) fn hire(&mut self, recruits: Vec<Handle>) {
        self.workers.extend(recruits);
    }

    /// Waits until every worker that takes connections has answered.
    ///
    /// # Errors
    /// [`ApplyFault::Stuck`] when one does not in [`ADOPTION_TIME`], or has ended.
    pub(crate) async fn probe(&self) -> Result<(), ApplyFault> {
        let mut answers = Vec::with_capacity(self.workers.len());
        for worker in &self.workers {
            let (answer, answered) = oneshot::channel();
            // One that has ended drops it.
            drop(worker.commands.send(Command::Probe(answer)));
            answers.push(answered);
        }
        for answered in answers {
            match tokio::time::timeout(ADOPTION_TIME, answered).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(ApplyFault::Stuck),
            }
        }
        Ok(())
    }

    /// Hands each worker its adoption, and waits until all have carried it out or [`ADOPTION_TIME`] is
    /// over. It cannot fail: a worker that is late carries it out before anything else that it does.
    pub(crate) async fn publish(&mut self, adoptions: Vec<Adoption>) {
        let mut answers = Vec::with_capacity(adoptions.len());
        let all = self.workers.iter_mut().chain(&mut self.leaving);
        for (worker, adoption) in all.zip(adoptions) {
            let shares = adoption.doors.iter().map(|entrance| &entrance.share);
            let held = shares.flat_map(|share| {
                let serves = share.serves.iter();
                serves.map(|place| (share.id, *place))
            });
            worker.held = held.collect();
            let (done, answer) = oneshot::channel();
            let command = Command::Adopt(Box::new(adoption), done);
            // One that has left drops it, which is an answer, too.
            drop(worker.commands.send(command));
            answers.push(answer);
        }
        let all = self.workers.iter().chain(&self.leaving);
        for (worker, answer) in all.zip(answers) {
            if tokio::time::timeout(ADOPTION_TIME, answer).await.is_err() {
                tracing::error!(
                    worker = worker.number,
                    "a worker has not taken the new configuration over yet; it will when it answers"
                );
            }
        }
    }

    /// Lets the workers behind the first `count` go. Others have their sockets already.
    pub(crate) fn retire(&mut self, count: usize) {
        let leaving = self.workers.split_off(count.min(self.workers.len()));
        for worker in leaving {
            tracing::info!(worker = worker.number, "a worker leaves");
            drop(worker.commands.send(Command::Drain(Draining::Gently)));
            self.leaving.push(worker);
        }
    }

    /// Tells everybody.
    pub(crate) fn tell(&self, command: impl Fn() -> Command) {
        for worker in self.workers.iter().chain(&self.leaving) {
            // A worker that has left needs to be told nothing.
            drop(worker.commands.send(command()));
        }
    }

    /// Whether every worker has left.
    pub(crate) fn is_over(&self) -> bool {
        let mut all = self.workers.iter().chain(&self.leaving);
        all.all(|worker| worker.thread.is_finished())
    }

    /// Ends everybody now.
    pub(crate) fn stop(self) {
        self.tell(|| Command::Stop);
        self.workers.into_iter().chain(self.leaving).for_each(join);
    }

    fn forget_those_who_left(&mut self) {
        let left = |worker: &mut Handle| worker.thread.is_finished();
        self.leaving.extract_if(.., left).for_each(join);
    }
}

fn join(worker: Handle) {
    if worker.thread.join().is_err() {
        tracing::error!("a worker panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap()
    }

    #[test]
    fn a_reload_is_refused_before_anything_is_published_when_a_worker_has_ended() {
        let (commands, inbox) = unbounded_channel();
        drop(inbox);
        let ended = Handle {
            number: 0,
            held: Held::new(),
            commands,
            thread: std::thread::spawn(|| ()),
        };
        let staff = Staff {
            workers: vec![ended],
            leaving: Vec::new(),
        };

        let probed = runtime().block_on(staff.probe());
        assert!(matches!(probed, Err(ApplyFault::Stuck)));
    }

    #[test]
    fn workers_that_answer_hold_no_reload_up() {
        let (commands, mut inbox) = unbounded_channel();
        let thread = std::thread::spawn(move || {
            if let Some(Command::Probe(answer)) = inbox.blocking_recv() {
                answer.send(()).unwrap_or_default();
            }
        });
        let worker = Handle {
            number: 0,
            held: Held::new(),
            commands,
            thread,
        };
        let staff = Staff {
            workers: vec![worker],
            leaving: Vec::new(),
        };

        assert!(runtime().block_on(staff.probe()).is_ok());
    }
}
