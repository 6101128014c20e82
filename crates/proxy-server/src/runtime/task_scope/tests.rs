//! Start, restart and end of the tasks of a scope.

use super::*;
use std::future::pending;
use std::io::{self, Write};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tracing_subscriber::fmt::MakeWriter;

/// Steps of the tasks of a test, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Began(&'static str),
    Told(&'static str, u32),
    Ended(&'static str),
}

/// Sends [`Step::Ended`] when its task is dropped.
struct EndOfTask(&'static str, UnboundedSender<Step>);

impl Drop for EndOfTask {
    fn drop(&mut self) {
        drop(self.1.send(Step::Ended(self.0)));
    }
}

struct Observed {
    scope: TaskScope<&'static str, u32>,
    sender: UnboundedSender<Step>,
    steps: UnboundedReceiver<Step>,
}

fn observed() -> Observed {
    let (sender, steps) = unbounded_channel();
    Observed {
        scope: TaskScope::new(|| SystemTime::UNIX_EPOCH),
        sender,
        steps,
    }
}

impl Observed {
    /// Tasks that report their steps until they are ended.
    fn prepare(&self, tasks: &[(&'static str, u32)]) -> TaskTransaction<&'static str, u32> {
        let mut transaction = self.scope.begin();
        for (key, settings) in tasks.iter().copied() {
            let sender = self.sender.clone();
            let work = |mut context: TaskContext<u32>| async move {
                let _end = EndOfTask(key, sender.clone());
                drop(sender.send(Step::Began(key)));
                while context.settings.changed().await.is_ok() {
                    let reported = *context.settings.borrow_and_update();
                    drop(sender.send(Step::Told(key, reported)));
                }
            };
            transaction.add(key, key.to_owned(), settings, work);
        }
        transaction
    }

    fn commit(&mut self, tasks: &[(&'static str, u32)]) -> Vec<u32> {
        let transaction = self.prepare(tasks);
        self.scope.commit(transaction)
    }

    async fn next(&mut self) -> Step {
        let step = timeout(Duration::from_mins(1), self.steps.recv()).await;
        step.expect("a step in time").expect("a step")
    }

    /// Asserts that no further step follows. The clock is paused: an hour passes once all tasks are
    /// idle.
    async fn assert_quiet(&mut self) {
        let more = timeout(Duration::from_hours(1), self.steps.recv()).await;
        assert!(more.is_err(), "{more:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_begins_with_the_commit_and_not_before() {
    let mut observed = observed();
    let transaction = observed.prepare(&[("a", 1)]);
    observed.assert_quiet().await;

    observed.scope.commit(transaction);

    assert_eq!(observed.next().await, Step::Began("a"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_reload_starts_no_task_and_ends_none() {
    let mut observed = observed();
    observed.commit(&[("a", 1)]);
    assert_eq!(observed.next().await, Step::Began("a"));

    drop(observed.prepare(&[("a", 2), ("b", 2)]));

    observed.assert_quiet().await;
    assert_eq!(observed.scope.keys().collect::<Vec<_>>(), [&"a"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_replaced_generation_ends() {
    let mut observed = observed();
    observed.commit(&[("a", 1)]);
    assert_eq!(observed.next().await, Step::Began("a"));

    let ended = observed.commit(&[("b", 2)]);

    assert_eq!(ended, [1]);
    let steps = [observed.next().await, observed.next().await];
    assert!(steps.contains(&Step::Ended("a")), "{steps:?}");
    assert!(steps.contains(&Step::Began("b")), "{steps:?}");
    observed.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_with_the_same_identity_continues_and_receives_changed_settings_only() {
    let mut observed = observed();
    observed.commit(&[("a", 1)]);
    assert_eq!(observed.next().await, Step::Began("a"));

    assert!(observed.commit(&[("a", 1)]).is_empty());
    observed.assert_quiet().await;
    assert!(observed.commit(&[("a", 2)]).is_empty());

    assert_eq!(observed.next().await, Step::Told("a", 2));
    observed.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_scope_ends_every_task() {
    let mut observed = observed();
    observed.commit(&[("a", 1), ("b", 1)]);
    observed.next().await;
    observed.next().await;

    observed.scope = TaskScope::new(|| SystemTime::UNIX_EPOCH);

    let ended = [observed.next().await, observed.next().await];
    assert!(ended.contains(&Step::Ended("a")), "{ended:?}");
    assert!(ended.contains(&Step::Ended("b")), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_has_the_clock_of_its_scope_and_timers_that_a_test_moves() {
    let (sender, mut read) = unbounded_channel();
    let noon = SystemTime::UNIX_EPOCH + Duration::from_hours(12);
    let mut scope: TaskScope<(), ()> =
        TaskScope::new(|| SystemTime::UNIX_EPOCH + Duration::from_hours(12));
    let mut transaction = scope.begin();
    let name = "clock".to_owned();
    transaction.add((), name, (), |context: TaskContext<()>| async move {
        sleep(Duration::from_hours(24)).await;
        sender.send((context.now)()).unwrap_or_default();
    });

    scope.commit(transaction);

    assert_eq!(read.recv().await, Some(noon));
}

/// Lines of the log, as the subscriber of one thread writes them.
#[derive(Clone)]
struct LogLines(UnboundedSender<String>);

impl Write for LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        drop(self.0.send(String::from_utf8_lossy(line).into_owned()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for LogLines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_logged_by_its_name_and_starts_again_with_the_next_commit() {
    let (sender, mut lines) = unbounded_channel();
    let (begins, mut begun) = unbounded_channel();
    let subscriber = tracing_subscriber::fmt().with_writer(LogLines(sender));
    let _logging = tracing::subscriber::set_default(subscriber.finish());
    let mut scope: TaskScope<(), ()> = TaskScope::new(|| SystemTime::UNIX_EPOCH);
    let with_task = |scope: &TaskScope<(), ()>, panics: bool| {
        let mut transaction = scope.begin();
        let begins = begins.clone();
        let work = move |_: TaskContext<()>| async move {
            if panics {
                std::panic::resume_unwind(Box::new("a defect"));
            }
            begins.send(()).unwrap_or_default();
            pending::<()>().await;
        };
        transaction.add((), "watch of one".to_owned(), (), work);
        transaction
    };

    let transaction = with_task(&scope, true);
    scope.commit(transaction);
    let reported = lines.recv().await.unwrap_or_default();
    let transaction = with_task(&scope, false);
    scope.commit(transaction);
    assert_eq!(begun.recv().await, Some(()), "the new task runs");

    assert!(
        reported.contains("a background task panicked"),
        "{reported}"
    );
    assert!(reported.contains("watch of one"), "{reported}");
    assert!(lines.try_recv().is_err());
}
