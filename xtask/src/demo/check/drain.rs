//! The end of proxyd while clients are at it.

use super::{ensure, reload};
use crate::clock::Stopwatch;
use crate::demo::block_on;
use crate::demo::curl::Answer;
use crate::demo::stage::{DEADLINE, Stage, ask, rest};
use crate::task_error::TaskError;
use rustix::process::Signal;
use std::io;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Requests in flight when the signal comes, and how long their upstream takes.
const SLOW: u64 = 8;
const SLOW_PATH: &str = "/two/slow?ms=3000";
/// Requests that the load must have had answered before the signal.
const BEFORE: u64 = 500;

pub(super) fn drain(stage: &mut Stage) -> Result<String, TaskError> {
    block_on(under_load(stage))?
}

async fn under_load(stage: &mut Stage) -> Result<String, TaskError> {
    let running = reload::load(stage);
    reload::flow(&running, BEFORE).await?;
    let slow = in_flight(stage).await?;

    stage.proxy.signal(Signal::TERM)?;
    refuses_readiness(stage).await?;
    for answer in slow.join_all().await {
        let answer = answer?;
        ensure(answer.status == 200, || {
            format!("a slow request: {answer:?}")
        })?;
    }
    let Ok(status) = timeout(DEADLINE, stage.proxy.ended()).await else {
        return Err(TaskError::Failed("proxyd did not end".to_owned()));
    };
    let status = status?;
    ensure(status.success(), || format!("proxyd ended with {status}"))?;

    let outcome = running.stop().await;
    ensure(outcome.failures.is_empty(), || format!("{outcome:?}"))?;
    let after = TcpStream::connect(stage.at.web).await;
    let refused = after.is_err_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused);
    ensure(refused, || "something still listens".to_owned())?;
    Ok(format!(
        "{} requests answered, none failed; {SLOW} slow ones finished; then refused",
        outcome.answered
    ))
}

/// Sends the slow requests and waits until the upstream has them all.
async fn in_flight(stage: &Stage) -> Result<JoinSet<Result<Answer, TaskError>>, TaskError> {
    let mut slow = JoinSet::new();
    for _ in 0..SLOW {
        slow.spawn(ask(stage.web(SLOW_PATH)));
    }
    let watch = Stopwatch::start();
    while stage.two.slow_begun() < SLOW {
        ensure(watch.elapsed() < DEADLINE, || {
            format!("only {} slow requests arrived", stage.two.slow_begun())
        })?;
        rest().await;
    }
    Ok(slow)
}

/// A balancer in front must learn of the drain while connections are still served.
async fn refuses_readiness(stage: &Stage) -> Result<(), TaskError> {
    let watch = Stopwatch::start();
    while ask(stage.admin("/ready")).await?.status != 503 {
        ensure(watch.elapsed() < DEADLINE, || {
            "/ready still says yes during the drain".to_owned()
        })?;
        rest().await;
    }
    Ok(())
}
