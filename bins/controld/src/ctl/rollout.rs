//! `ctl rollout status`: shows a rollout, or follows it to its end with `--wait`.

use crate::ctl::client::Call;
use crate::ctl::error::CtlError;
use crate::ctl::grammar::path_id;
use crate::ctl::lookup::{Lookup, text};
use crate::ctl::output::{Output, print};
use clap::ArgMatches;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::sleep;

const INTERVAL: Duration = Duration::from_secs(1);
/// Width of the progress bar, in characters.
const BAR_CHARS: i64 = 20;

/// Settings for showing a rollout.
pub(crate) struct Follow {
    /// Path of the rollout.
    pub(crate) path: String,
    /// Maximum time to follow the rollout; `None` shows it once.
    pub(crate) timeout: Option<Duration>,
    pub(crate) output: Output,
}

pub(crate) async fn status(
    lookup: &Lookup<'_>,
    matches: &ArgMatches,
    output: Output,
) -> Result<(), CtlError> {
    let given = |name: &str| matches.get_one::<String>(&path_id(name)).cloned();
    let project = lookup
        .scope_id("project", given("project").as_deref())
        .await?;
    let id = given("rollout").unwrap_or_default();
    let follow = Follow {
        path: format!("/api/v1/projects/{project}/rollouts/{id}"),
        timeout: timeout(matches),
        output,
    };
    follow.run(lookup).await
}

/// Returns the time to wait; `None` without `--wait`.
pub(crate) fn timeout(matches: &ArgMatches) -> Option<Duration> {
    let seconds = matches.get_one::<u64>("timeout").copied();
    let timeout = Duration::from_secs(seconds.unwrap_or_default());
    matches.get_flag("wait").then_some(timeout)
}

impl Follow {
    /// Prints each change until the rollout stops. Fails unless it is completed.
    pub(crate) async fn run(self, lookup: &Lookup<'_>) -> Result<(), CtlError> {
        let Self {
            path,
            timeout,
            output,
        } = self;
        let timer = sleep(timeout.unwrap_or_default());
        tokio::pin!(timer);
        let mut last_line = String::new();
        loop {
            let found = lookup.client.json(&Call::get(path.clone())).await?;
            let ends = timeout.is_none() || has_stopped(text(&found, "state"));
            let line = line(&found);
            if output == Output::Table && line != last_line {
                print(&line)?;
                last_line = line;
            }
            if ends {
                if output != Output::Table {
                    print(&output.resource(&found))?;
                }
                return outcome(&found, timeout.is_some());
            }
            if timer.is_elapsed() {
                let (id, state) = (text(&found, "id"), text(&found, "state"));
                let seconds = timeout.unwrap_or_default().as_secs();
                let cause = format!("still {state} after {seconds} s");
                return Err(CtlError::failed(format!("rollout {id}"), cause));
            }
            tokio::select! {
                () = sleep(INTERVAL) => {}
                () = &mut timer => {}
            }
        }
    }
}

fn has_stopped(state: &str) -> bool {
    matches!(state, "completed" | "paused" | "rolled_back" | "cancelled")
}

fn outcome(found: &Value, wait: bool) -> Result<(), CtlError> {
    let state = text(found, "state");
    if !wait || state == "completed" {
        return Ok(());
    }
    let what = format!("rollout {}", text(found, "id"));
    let reason = text(found, "reason");
    Err(CtlError::failed(what, format!("{state}: {reason}")))
}

/// Formats state, batch, progress bar, nodes and both sides of the gate on one line.
fn line(found: &Value) -> String {
    let number = |pointer: &str| found.pointer(pointer).and_then(Value::as_i64);
    let batches = found.get("batches").and_then(Value::as_array);
    let passed = batches.into_iter().flatten();
    let passed = passed.filter(|batch| text(batch, "state") == "passed");
    let passed = passed.filter_map(|batch| batch.get("ready")?.as_i64());
    let ready: i64 = passed.sum::<i64>() + number("/progress/ready").unwrap_or_default();
    let nodes = number("/nodes").unwrap_or_default();
    let full = (ready * BAR_CHARS / nodes.max(1)).clamp(0, BAR_CHARS);
    let (full, rest) = (repeated('#', full), repeated('-', BAR_CHARS - full));
    let mut line = format!(
        "{:<17} batch {}/{} [{full}{rest}] {ready}/{nodes} nodes",
        text(found, "state"),
        number("/batch").unwrap_or_default(),
        number("/batch_total").unwrap_or_default(),
    );
    if let Some(offline) = number("/progress/offline").filter(|offline| *offline > 0) {
        write!(line, ", {offline} offline").unwrap_or_default();
    }
    if let Some(figures) = gate_figures(found) {
        write!(
            line,
            "\n  batch:  {}\n  others: {}",
            side(figures, "batch"),
            side(figures, "rest")
        )
        .unwrap_or_default();
        if let Some(verdict) = figures.get("verdict").and_then(Value::as_str) {
            write!(line, "\n  gate:   {verdict}").unwrap_or_default();
        }
    }
    if let Some(reason) = found.pointer("/progress/waits_for").and_then(Value::as_str) {
        write!(line, "\n  waits for {reason}").unwrap_or_default();
    }
    if text(found, "state") == "awaiting_approval" {
        let id = text(found, "id");
        write!(
            line,
            "\n  waits for the approval of another person: `controld ctl rollout approve {id}`"
        )
        .unwrap_or_default();
    }
    let held_until = text(found, "held_until");
    if !held_until.is_empty() {
        write!(
            line,
            "\n  the next batch waits: the project's policy allows no change until {held_until}"
        )
        .unwrap_or_default();
    }
    let reason = text(found, "reason");
    if !reason.is_empty() {
        write!(line, "\n  {reason}").unwrap_or_default();
    }
    line.push('\n');
    line
}

/// Returns the gate's figures of the current batch, or of the last finished one.
fn gate_figures(found: &Value) -> Option<&Value> {
    let batches = found.get("batches").and_then(Value::as_array);
    let last = batches.and_then(|all| all.last());
    let open = found.pointer("/progress/figures");
    let ended = last.and_then(|batch| batch.get("figures"));
    open.or(ended).filter(|figures| figures.is_object())
}

fn side(figures: &Value, name: &str) -> String {
    let field = |field: &str| {
        let value = figures.get(name).and_then(|side| side.get(field));
        match value {
            Some(Value::Number(number)) => number.as_i64().map_or_else(
                || format!("{:.0}", number.as_f64().unwrap_or_default()),
                |whole| whole.to_string(),
            ),
            _ => "-".to_owned(),
        }
    };
    format!(
        "{} nodes, {} requests, {} of 1000 with 5xx, p99 {} ms, {} % CPU",
        field("nodes"),
        field("requests"),
        field("error_permille"),
        field("p99_ms"),
        field("cpu_percent"),
    )
}

fn repeated(sign: char, count: i64) -> String {
    let count = usize::try_from(count).unwrap_or_default();
    std::iter::repeat_n(sign, count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_has_the_progress_the_gate_and_the_reason() {
        let side = |p99: i64| {
            json!({"nodes": 2, "requests": 900, "error_permille": 3, "p99_ms": p99,
                "cpu_percent": 12.6})
        };
        let found = json!({
            "id": "r", "state": "rolling_back", "reason": "too slow", "nodes": 8, "batch": 2,
            "batch_total": 4, "progress": null,
            "batches": [
                {"state": "passed", "ready": 2, "figures": null},
                {"state": "failed", "ready": 2, "figures": {"batch": side(40), "rest": side(4)}},
            ],
        });
        let text = line(&found);
        assert_eq!(
            text,
            "rolling_back      batch 2/4 [#####---------------] 2/8 nodes\n  \
             batch:  2 nodes, 900 requests, 3 of 1000 with 5xx, p99 40 ms, 13 % CPU\n  \
             others: 2 nodes, 900 requests, 3 of 1000 with 5xx, p99 4 ms, 13 % CPU\n  too slow\n"
        );
        assert!(outcome(&found, true).is_err());
        assert!(outcome(&found, false).is_ok());
    }

    #[test]
    fn a_rollout_without_approval_says_how_it_is_given() {
        let found = json!({"id": "r", "state": "awaiting_approval", "nodes": 1, "batches": []});
        assert!(line(&found).contains("`controld ctl rollout approve r`"));
        let held = json!({
            "id": "r", "state": "running", "nodes": 1, "batches": [],
            "held_until": "2026-11-30T08:00:00Z",
            "progress": {"waits_for": "the switch of 1 of 2 nodes"},
        });
        assert!(line(&held).contains("\n  waits for the switch of 1 of 2 nodes"));
        let reported = "the project's policy allows no change until 2026-11-30T08:00:00Z";
        assert!(line(&held).contains(reported));
    }
}
