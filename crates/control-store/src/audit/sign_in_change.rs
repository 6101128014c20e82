//! Changes that another user made to how a user signs in.

use crate::error::StoreError;
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::UserId;
use jiff::Timestamp;

/// Changes by an API key that is deleted, or without a known creator, count as changes by `$3`.
const CHANGE: &str = "SELECT a.seq AS seq FROM audit a
    WHERE a.action IN ('password.reset_link_created', 'totp.reset', 'sso.created', 'sso.changed')
      AND a.at >= $2
      AND (a.subject_id = $1 OR a.subject_id IN (
            SELECT i.org_id FROM identities i WHERE i.user_id = $1
            UNION ALL
            SELECT u.org_id FROM audit u
            WHERE u.action = 'identity.unlinked' AND u.subject_id = $1 AND u.at >= $2))
      AND (a.actor_id = $3 OR a.actor_kind = 'api_key' AND NOT EXISTS (
            SELECT k.id FROM api_keys k WHERE k.id = a.actor_id AND k.made_by <> $3))
    LIMIT 1";

impl Transaction {
    /// Returns true if `by`, at `since` or later, created a password reset for `user`, removed its
    /// second factor, or changed the single sign-on of an organization in which `user` has an
    /// identity. An identity that was unlinked since then counts too: a sign-in by it could have removed it.
    pub async fn has_changed_sign_in(
        &mut self,
        user: UserId,
        by: UserId,
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let found = sql(CHANGE).bind(user).bind(since).bind(by);
        Ok(found.row(self).await?.is_some())
    }
}
