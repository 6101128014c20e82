//! A session: what a browser proves a user with.

use crate::access::Role;
use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::user::User;
use control_wire::{OrgId, SessionId, UserId};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// A session ends this long after its last request.
const IDLE: SignedDuration = SignedDuration::from_hours(12);
/// A session ends this long after its start.
const ABSOLUTE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The last request is written down with this precision, which saves a write per request.
const SEEN_PRECISION: SignedDuration = SignedDuration::from_mins(5);

/// A session, without its secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The identifier.
    pub id: SessionId,
    /// The user.
    pub user: UserId,
    /// When it began.
    pub created_at: Timestamp,
    /// The last request, up to 5 minutes too early.
    pub seen_at: Timestamp,
    /// When it was ended.
    pub revoked_at: Option<Timestamp>,
}

impl Session {
    /// A session that begins now.
    pub fn start(id: SessionId, user: UserId, now: Timestamp) -> Self {
        Self {
            id,
            user,
            created_at: now,
            seen_at: now,
            revoked_at: None,
        }
    }

    /// The actor that the session stands for.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] if it was revoked or its time has passed.
    pub fn accept(
        &self,
        user: &User,
        roles: BTreeMap<OrgId, Role>,
        now: Timestamp,
    ) -> Result<Actor, Refusal> {
        if self.revoked_at.is_some() || self.expires_at() <= now || user.id != self.user {
            return Err(Refusal::Ended);
        }
        Ok(Actor::User {
            id: self.user,
            session: self.id,
            instance_admin: user.instance_admin,
            roles,
        })
    }

    /// When it ends unless there is another request.
    pub fn expires_at(&self) -> Timestamp {
        (self.seen_at + IDLE).min(self.created_at + ABSOLUTE)
    }

    /// Whether the last request is to be written down again.
    pub fn is_seen_late(&self, now: Timestamp) -> bool {
        SEEN_PRECISION <= now.duration_since(self.seen_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Email, Name};
    use uuid::Uuid;

    #[test]
    fn a_session_ends_when_idle_when_old_and_when_revoked() {
        let start = Timestamp::UNIX_EPOCH;
        let user = User {
            id: UserId(Uuid::from_u128(1)),
            email: Email::stored("a@b".to_owned()),
            name: Name::stored("A".to_owned()),
            password: None,
            instance_admin: false,
            created_at: start,
        };
        let session = Session::start(SessionId(Uuid::from_u128(2)), user.id, start);
        let accepted = |session: &Session, hours| {
            let now = start + SignedDuration::from_hours(hours);
            session.accept(&user, BTreeMap::new(), now).is_ok()
        };
        assert!(accepted(&session, 11));
        assert!(!accepted(&session, 12));
        let busy = Session {
            seen_at: start + SignedDuration::from_hours(167),
            ..session
        };
        assert!(accepted(&busy, 167));
        assert!(!accepted(&busy, 168));
        let revoked = Session {
            revoked_at: Some(start),
            ..session
        };
        assert!(!accepted(&revoked, 1));
    }
}
