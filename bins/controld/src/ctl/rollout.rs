//! `ctl rollout status`: shows a rollout, or follows it to its end with `--wait`.

use crate::ctl::client::Call;
use crate::ctl::error::CtlError;
use crate::ctl::grammar::path_id;
use crate::ctl::lookup::{Lookup, text};
use crate::ctl::output::escape::inline;
use crate::ctl::output::{Output, print, report};
use clap::ArgMatches;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::sleep;

/// Interval of requests for the state; doubled after each failure, up to [`MAX_INTERVAL`].
const INTERVAL: Duration = Duration::from_secs(1);
const MAX_INTERVAL: Duration = Duration::from_secs(30);
/// Minimum of a timeout: the state is requested at least once.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
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
    follow.run(lookup).await.map(drop)
}

/// Returns the time to wait; `None` without `--wait`.
pub(crate) fn timeout(matches: &ArgMatches) -> Option<Duration> {
    let seconds = matches.get_one::<u64>("timeout").copied();
    let timeout = Duration::from_secs(seconds.unwrap_or_default());
    matches.get_flag("wait").then_some(timeout)
}

/// The last answers of the control plane about a rollout.
#[derive(Default)]
struct Seen {
    rollout: Option<Value>,
    line: String,
    /// Failure of the last request; `None` after an answer.
    error: Option<CtlError>,
}

impl Follow {
    /// Prints each change until the rollout stops, and returns it. Fails unless it is completed;
    /// without a timeout, any state is shown and returned.
    ///
    /// # Errors
    ///
    /// [`CtlError`] for another end, at the end of the time, or if the control plane refuses the
    /// request. An outage is waited out.
    pub(crate) async fn run(self, lookup: &Lookup<'_>) -> Result<Value, CtlError> {
        let call = Call::get(self.path.clone());
        let mut seen = Seen::default();
        let Some(timeout) = self.timeout else {
            seen.update(lookup.client.json(&call).await?, self.output)?;
            seen.finish(self.output)?;
            return Ok(seen.rollout.unwrap_or_default());
        };
        let timer = sleep(timeout.max(MIN_TIMEOUT));
        tokio::pin!(timer);
        let mut interval = INTERVAL;
        loop {
            let answer = tokio::select! {
                biased;
                answer = lookup.client.json(&call) => answer,
                () = &mut timer => return Err(self.late(seen, timeout)),
            };
            match answer {
                Ok(found) => {
                    interval = INTERVAL;
                    if seen.update(found, self.output)? {
                        seen.finish(self.output)?;
                        let last = seen.rollout.unwrap_or_default();
                        return outcome(&last).map(|()| last);
                    }
                }
                Err(error) if error.is_transient() => {
                    interval = (interval * 2).min(MAX_INTERVAL);
                    seen.fail(error);
                }
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = sleep(interval) => {}
                () = &mut timer => return Err(self.late(seen, timeout)),
            }
        }
    }

    /// Describes the state at the end of the time.
    fn late(&self, seen: Seen, timeout: Duration) -> CtlError {
        let id = self.path.rsplit('/').next().unwrap_or_default();
        if let Err(error) = seen.finish(self.output) {
            return error;
        }
        let seconds = timeout.as_secs();
        let state = seen.rollout.as_ref().map(|rollout| text(rollout, "state"));
        let mut cause = match state {
            Some(state) => format!("still {} after {seconds} s", inline(state)),
            None => format!("its state is unknown after {seconds} s"),
        };
        if let Some(error) = seen.error {
            write!(cause, "; the last request failed: {error}").unwrap_or_default();
        }
        CtlError::failed(format!("rollout {id}"), cause)
    }
}

impl Seen {
    /// Prints a changed line; returns true if the rollout has stopped.
    fn update(&mut self, rollout: Value, output: Output) -> Result<bool, CtlError> {
        let line = line(&rollout);
        if output == Output::Table && line != self.line {
            print(&line)?;
            self.line = line;
        }
        let has_stopped = has_stopped(text(&rollout, "state"));
        self.rollout = Some(rollout);
        self.error = None;
        Ok(has_stopped)
    }

    /// Reports the first failure of an outage.
    fn fail(&mut self, error: CtlError) {
        if self.error.is_none() {
            report(&format!("trying again: {error}"));
        }
        self.error = Some(error);
    }

    /// Prints the last state, unless its changes were printed.
    fn finish(&self, output: Output) -> Result<(), CtlError> {
        match &self.rollout {
            Some(rollout) if output != Output::Table => print(&output.resource(rollout)),
            _ => Ok(()),
        }
    }
}

fn has_stopped(state: &str) -> bool {
    matches!(state, "completed" | "paused" | "rolled_back" | "cancelled")
}

/// Returns true if the rollout no longer brings its bundle to nodes, and is not completed.
pub(crate) fn has_failed(state: &str) -> bool {
    matches!(
        state,
        "paused" | "failed" | "rolling_back" | "rolled_back" | "cancelled"
    )
}

/// Returns an error with the state and its reason, unless the rollout is completed.
pub(crate) fn outcome(found: &Value) -> Result<(), CtlError> {
    let value = |name: &str| inline(text(found, name));
    let state = value("state");
    if state == "completed" {
        return Ok(());
    }
    let (what, reason) = (format!("rollout {}", value("id")), value("reason"));
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
    let value = |name: &str| inline(text(found, name));
    let mut line = format!(
        "{:<17} batch {}/{} [{full}{rest}] {ready}/{nodes} nodes",
        value("state"),
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
            write!(line, "\n  gate:   {}", inline(verdict)).unwrap_or_default();
        }
    }
    if let Some(reason) = found.pointer("/progress/waits_for").and_then(Value::as_str) {
        write!(line, "\n  waits for {}", inline(reason)).unwrap_or_default();
    }
    if text(found, "state") == "awaiting_approval" {
        let id = value("id");
        write!(
            line,
            "\n  waits for the approval of another person: `controld ctl rollout approve {id}`"
        )
        .unwrap_or_default();
    }
    let held_until = value("held_until");
    if !held_until.is_empty() {
        write!(
            line,
            "\n  the next batch waits: the project's policy allows no change until {held_until}"
        )
        .unwrap_or_default();
    }
    let reason = value("reason");
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
        assert!(outcome(&found).is_err());
        assert!(outcome(&json!({"state": "completed"})).is_ok());
    }

    #[test]
    fn a_reason_of_a_node_imitates_no_line() {
        let hostile = "node a:\ncompleted         batch 1/1\u{2028}\u{61c}";
        let found = json!({
            "id": "r", "state": "running", "reason": hostile, "nodes": 1, "batches": [],
            "held_until": hostile,
            "progress": {"waits_for": hostile, "figures": {"batch": {}, "rest": {}, "verdict": hostile}},
        });
        let text = line(&found);
        assert_eq!(text.lines().count(), 7, "{text}");
        assert!(!text.contains(['\u{2028}', '\u{61c}']), "{text}");
        let error = outcome(&found).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
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
