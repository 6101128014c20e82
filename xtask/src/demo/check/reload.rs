//! Reloads while clients are at it.

use super::{super::block_on, ensure};
use crate::clock::Stopwatch;
use crate::demo::load::{Load, Running};
use crate::demo::stage::{DEADLINE, Stage, ask, rest};
use crate::demo::websocket::Client;
use crate::task_error::TaskError;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// The value of the header that the quickstart sets, and what it becomes.
const BEFORE: &str = "first";
const AFTER: &str = "second";
/// Requests that must have been answered before a reload, and again after it.
const AROUND: u64 = 1_000;
const LOAD_CLIENTS: usize = 32;
const LOAD_REST: Duration = Duration::from_millis(50);

pub(super) fn good(stage: &mut Stage) -> Result<String, TaskError> {
    block_on(under_load(stage))?
}

pub(super) fn bad(stage: &mut Stage) -> Result<String, TaskError> {
    block_on(refused(stage))?
}

/// A few hundred requests a second that must not notice anything.
pub(super) fn load(stage: &Stage) -> Running {
    let load = Load {
        to: stage.at.web,
        path: "/one",
        clients: LOAD_CLIENTS,
        rest: LOAD_REST,
    };
    load.start()
}

/// Waits until this many more requests were answered.
pub(super) async fn flow(running: &Running, more: u64) -> Result<(), TaskError> {
    let until = running.answered() + more;
    let watch = Stopwatch::start();
    while running.answered() < until {
        ensure(watch.elapsed() < DEADLINE, || {
            format!(
                "the load stands still after {} requests",
                running.answered()
            )
        })?;
        rest().await;
    }
    Ok(())
}

async fn under_load(stage: &mut Stage) -> Result<String, TaskError> {
    let mut socket = Client::connect(stage.at.web, "/one/ws").await?;
    socket.echoes("before").await?;
    let running = load(stage);
    flow(&running, AROUND).await?;
    header_becomes(stage, BEFORE).await?;

    let config = stage.config()?;
    stage.configure(&config.replace(&quoted(BEFORE), &quoted(AFTER)))?;
    stage.proxy.signal(Signal::HUP)?;
    header_becomes(stage, AFTER).await?;
    flow(&running, AROUND).await?;
    socket.echoes("after").await?;

    let outcome = running.stop().await;
    ensure(outcome.failures.is_empty() && outcome.refused == 0, || {
        format!("{outcome:?}")
    })?;
    let status = stage.status().await?;
    let count = status.get("config_reload_count").and_then(Value::as_u64);
    ensure(count == Some(1), || format!("/status: {status}"))?;
    Ok(format!(
        "{} requests answered, none failed; a WebSocket lived through it",
        outcome.answered
    ))
}

async fn refused(stage: &mut Stage) -> Result<String, TaskError> {
    let result = "last_config_reload_result";
    let before = stage.status().await?.get(result).cloned();
    let config = stage.config()?;
    let misspelt = config.replace("load-balancing", "load-balacing");
    stage.configure(&misspelt.replace(&quoted(AFTER), &quoted(BEFORE)))?;
    stage.proxy.signal(Signal::HUP)?;

    let watch = Stopwatch::start();
    let verdict = loop {
        let now = stage.status().await?.get(result).cloned();
        if now != before {
            break now.unwrap_or_default();
        }
        ensure(watch.elapsed() < DEADLINE, || {
            format!("{result} stays {before:?}")
        })?;
        rest().await;
    };
    stage.configure(&config)?;
    header_becomes(stage, AFTER).await?;
    Ok(format!("the old one serves on, {result} is {verdict}"))
}

/// Waits until the upstream receives the header with this value.
async fn header_becomes(stage: &Stage, value: &str) -> Result<(), TaskError> {
    let wanted = format!("x-quickstart: {value}\n");
    let watch = Stopwatch::start();
    loop {
        let answer = ask(stage.web("/one")).await?;
        if answer.status == 200 && answer.body.contains(&wanted) {
            return Ok(());
        }
        ensure(watch.elapsed() < DEADLINE, || {
            format!("no {wanted:?} in {answer:?}")
        })?;
        rest().await;
    }
}

fn quoted(value: &str) -> String {
    format!("\"{value}\"")
}
