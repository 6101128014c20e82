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

    /// Hands each worker its adoption and waits until all have carried it out.
    pub(crate) async fn publish(&mut self, adoptions: Vec<Adoption>) -> Result<(), ApplyFault> {
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
        let serving = self.workers.len();
        for (place, answer) in answers.into_iter().enumerate() {
            match tokio::time::timeout(ADOPTION_TIME, answer).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) if place >= serving => {}
                Ok(Err(_)) | Err(_) => return Err(ApplyFault::Stuck),
            }
        }
        Ok(())
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
