//! Tasks without which a worker cannot serve: a panic in one ends the worker.

use std::future::pending;
use std::panic::resume_unwind;
use tokio::task::JoinSet;

/// The accept loops of a worker, and the tasks of its queue and its pool. A panic in any other task
/// ends one connection; after a panic in these the worker would run on without accepting. The tasks
/// of the control thread belong to a [`TaskScope`](crate::runtime::task_scope::TaskScope).
#[derive(Debug, Default)]
pub(crate) struct EssentialTasks(JoinSet<()>);

impl EssentialTasks {
    /// Runs `task` on the thread of this worker.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.0.spawn_local(task);
    }

    /// Panics when one of the tasks has, so that the thread ends. Never ready.
    pub(crate) async fn watch(&mut self) {
        while let Some(ended) = self.0.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                resume_unwind(error.into_panic());
            }
        }
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::{Builder, LocalOptions};

    /// Returns true if a worker that runs `task` ends by a panic.
    fn ends_a_worker(task: impl Future<Output = ()> + 'static) -> bool {
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.build_local(LocalOptions::default()).unwrap();
        let run = runtime.block_on(async {
            let mut tasks = EssentialTasks::default();
            tasks.spawn(task);
            let watching = async move {
                for _ in 0..3 {
                    tokio::select! {
                        biased;
                        () = tasks.watch() => {}
                        () = tokio::task::yield_now() => {}
                    }
                }
            };
            tokio::task::spawn_local(watching).await
        });
        run.is_err_and(|error| error.is_panic())
    }

    #[test]
    fn a_panic_in_an_accept_loop_ends_its_worker() {
        assert!(ends_a_worker(async { resume_unwind(Box::new("a defect")) }));
    }

    #[test]
    fn an_accept_loop_that_is_stopped_ends_no_worker() {
        assert!(!ends_a_worker(async {}));
        assert!(!ends_a_worker(pending()));
    }
}
