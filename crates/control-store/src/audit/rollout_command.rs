//! Operators' commands on rollouts, read from the audit log.

use crate::error::StoreError;
use crate::row::{id, optional_text, text, time};
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::RolloutId;
use jiff::Timestamp;
use serde::Deserialize;
use sqlx::any::AnyRow;
use uuid::Uuid;

/// Prefix of the commands' actions.
const PREFIX: &str = "rollout.";

/// Query with the condition of the index.
macro_rules! select {
    ($columns:literal, $rest:literal) => {
        concat!(
            "SELECT at, action, ",
            $columns,
            " FROM audit
    WHERE action IN ('rollout.created', 'rollout.submit', 'rollout.start', 'rollout.approve', 'rollout.pause',
      'rollout.resume', 'rollout.roll_back', 'rollout.cancel')
      AND subject_id = $1 AND ",
            $rest,
            " ORDER BY seq DESC LIMIT 100"
        )
    };
}

/// Newest commands; archived entries are missing.
const COMMANDS: &str = select!("actor_kind, actor_id, actor_name", "actor_kind <> 'system'");
/// Newest automatic stops; archived entries are missing.
const STOPS: &str = select!(
    "value_after",
    "actor_kind = 'system' AND action IN ('rollout.pause', 'rollout.roll_back')"
);

/// A command of a user or an API key on a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// `created`, or the name of the event, such as `start`.
    pub event: String,
    /// The time of the request.
    pub at: Timestamp,
    /// The kind of actor, such as `api_key`.
    pub actor_kind: String,
    /// Identifier of the actor.
    pub actor: Uuid,
    /// The actor's name at that time, with the e-mail address.
    pub actor_name: String,
}

/// An automatic pause or rollback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRecord {
    /// The name of the event: `pause` or `roll_back`.
    pub event: String,
    /// The time of the step.
    pub at: Timestamp,
    /// The reason at that time; empty if it was not recorded.
    pub reason: String,
}

/// The part of a recorded rollout that a stop needs.
#[derive(Debug, Default, Deserialize)]
struct RecordedRollout {
    reason: Option<String>,
}

impl Transaction {
    /// The newest 100 commands on a rollout, oldest first.
    pub async fn rollout_commands(
        &mut self,
        rollout: RolloutId,
    ) -> Result<Vec<CommandRecord>, StoreError> {
        let rows = sql(COMMANDS).bind(rollout).rows(self).await?;
        let oldest_first = rows.iter().rev().map(|row| {
            Ok(CommandRecord {
                event: event(row)?,
                at: time(row, "at")?,
                actor_kind: text(row, "actor_kind")?,
                actor: id(row, "actor_id")?,
                actor_name: optional_text(row, "actor_name")?.unwrap_or_default(),
            })
        });
        oldest_first.collect()
    }

    /// The newest 100 automatic pauses and rollbacks of a rollout, oldest first.
    pub async fn rollout_stops(
        &mut self,
        rollout: RolloutId,
    ) -> Result<Vec<StopRecord>, StoreError> {
        let rows = sql(STOPS).bind(rollout).rows(self).await?;
        let oldest_first = rows.iter().rev().map(|row| {
            // A value that is too long is left out of the log.
            let after = optional_text(row, "value_after")?.unwrap_or_default();
            let recorded: RecordedRollout = serde_json::from_str(&after).unwrap_or_default();
            Ok(StopRecord {
                event: event(row)?,
                at: time(row, "at")?,
                reason: recorded.reason.unwrap_or_default(),
            })
        });
        oldest_first.collect()
    }
}

/// The name of an entry's event.
fn event(row: &AnyRow) -> Result<String, StoreError> {
    let action = text(row, "action")?;
    Ok(action.strip_prefix(PREFIX).unwrap_or(&action).to_owned())
}
