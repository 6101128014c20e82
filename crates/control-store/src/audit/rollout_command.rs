//! Operators' commands on rollouts, read from the audit log.

use crate::error::StoreError;
use crate::row::{id, optional_text, text, time};
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::RolloutId;
use jiff::Timestamp;
use uuid::Uuid;

/// Prefix of the commands' actions.
const PREFIX: &str = "rollout.";
/// Newest commands; archived entries are missing.
const COMMANDS: &str = "SELECT at, actor_kind, actor_id, actor_name, action FROM audit
    WHERE action IN ('rollout.created', 'rollout.submit', 'rollout.start', 'rollout.approve', 'rollout.pause',
      'rollout.resume', 'rollout.roll_back', 'rollout.cancel')
      AND subject_id = $1 AND actor_kind <> 'system' ORDER BY seq DESC LIMIT 100";

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

impl Transaction {
    /// The newest 100 commands on a rollout, oldest first.
    pub async fn rollout_commands(
        &mut self,
        rollout: RolloutId,
    ) -> Result<Vec<CommandRecord>, StoreError> {
        let rows = sql(COMMANDS).bind(rollout).rows(self).await?;
        let oldest_first = rows.iter().rev().map(|row| {
            let action = text(row, "action")?;
            let event = action.strip_prefix(PREFIX).unwrap_or(&action).to_owned();
            Ok(CommandRecord {
                event,
                at: time(row, "at")?,
                actor_kind: text(row, "actor_kind")?,
                actor: id(row, "actor_id")?,
                actor_name: optional_text(row, "actor_name")?.unwrap_or_default(),
            })
        });
        oldest_first.collect()
    }
}
