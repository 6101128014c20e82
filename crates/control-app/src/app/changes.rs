//! Wakes live pages when something changes in the organizations of their user.

use control_domain::Actor;
use control_wire::OrgId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Numbers of the newest audit entries that this process knows.
///
/// They signal only when to read. Changes are read from the database, so a message that is lost, or
/// sent by another replica, costs a second of delay and no result.
#[derive(Debug, Default)]
pub struct Changes(watch::Sender<Heads>);

#[derive(Debug, Default)]
struct Heads {
    /// Number of the newest entry of any organization.
    newest: i64,
    /// Number of the newest entry of each organization that changed since this process started.
    by_org: BTreeMap<OrgId, i64>,
    /// Entries of all replicas are known up to this number; `None` before the first read.
    relayed: Option<i64>,
    is_closed: bool,
}

/// Scope of the changes that wake a live page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeScope {
    /// Changes of all organizations, and of the installation.
    All,
    /// Changes of these organizations.
    Orgs(BTreeSet<OrgId>),
}

/// Reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Something changed: read again.
    Changed,
    /// No change within the timeout.
    TimedOut,
    /// The program stops: respond at once.
    Closed,
}

/// A subscription of one live page.
#[derive(Debug)]
pub struct Waiter {
    heads: watch::Receiver<Heads>,
    scope: ChangeScope,
    /// Number of the newest entry at the last wake-up.
    seen: i64,
}

impl From<&Actor> for ChangeScope {
    /// The organizations in which the actor may read.
    fn from(actor: &Actor) -> Self {
        match actor {
            Actor::System
            | Actor::User {
                instance_admin: true,
                ..
            } => Self::All,
            Actor::User { roles, locked, .. } => Self::Orgs(
                roles
                    .keys()
                    .copied()
                    .filter(|org| !locked.contains(org))
                    .collect(),
            ),
            Actor::SetUp { .. }
            | Actor::Invitee { .. }
            | Actor::ApiKey { .. }
            | Actor::Enrolment { .. }
            | Actor::Node { .. } => Self::Orgs(actor.orgs().into_iter().collect()),
        }
    }
}

impl Heads {
    fn newest_in(&self, scope: &ChangeScope) -> i64 {
        match scope {
            ChangeScope::All => self.newest,
            ChangeScope::Orgs(orgs) => {
                let known = orgs.iter().filter_map(|org| self.by_org.get(org));
                known.copied().max().unwrap_or_default()
            }
        }
    }

    /// Updates the numbers; returns true if one of them increased.
    fn advance(&mut self, head: i64, orgs: impl IntoIterator<Item = (OrgId, i64)>) -> bool {
        let mut is_newer = self.newest < head;
        self.newest = self.newest.max(head);
        for (org, seq) in orgs {
            let known = self.by_org.entry(org).or_default();
            is_newer |= *known < seq;
            *known = seq.max(*known);
        }
        is_newer
    }
}

impl Changes {
    /// Subscribes to every change in `scope` from now on, including those before the first wait.
    pub fn subscribe(&self, scope: ChangeScope) -> Waiter {
        let heads = self.0.subscribe();
        let seen = heads.borrow().newest;
        Waiter { heads, scope, seen }
    }

    /// Announces this process's entries up to number `head`, in these organizations.
    pub(crate) fn publish(&self, head: i64, orgs: impl IntoIterator<Item = OrgId>) {
        let orgs = orgs.into_iter().map(|org| (org, head));
        self.0.send_if_modified(|heads| heads.advance(head, orgs));
    }

    /// Entries of all replicas are known up to this number; `None` before the first read.
    pub(crate) fn relayed(&self) -> Option<i64> {
        self.0.borrow().relayed
    }

    /// Announces the entries of all replicas up to number `head`, with the newest of each organization.
    pub(crate) fn relay(&self, head: i64, orgs: impl IntoIterator<Item = (OrgId, i64)>) {
        self.0.send_if_modified(|heads| {
            heads.relayed = Some(head);
            heads.advance(head, orgs)
        });
    }

    /// Ends current and later waits, when the program stops.
    pub fn close(&self) {
        self.0.send_modify(|heads| heads.is_closed = true);
    }
}

impl Waiter {
    /// Waits for the next change in the scope, at most `limit`.
    pub async fn wait(&mut self, limit: Duration) -> Wake {
        let (scope, seen) = (&self.scope, self.seen);
        let is_newer = |heads: &Heads| heads.is_closed || seen < heads.newest_in(scope);
        match timeout(limit, self.heads.wait_for(is_newer)).await {
            Err(_) => Wake::TimedOut,
            Ok(Err(_)) => Wake::Closed,
            Ok(Ok(heads)) if heads.is_closed => Wake::Closed,
            Ok(Ok(heads)) => {
                self.seen = heads.newest;
                Wake::Changed
            }
        }
    }

    /// Replaces the scope of later waits: roles may change while a page is open.
    pub fn change_scope(&mut self, scope: ChangeScope) {
        self.scope = scope;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const WAIT_LIMIT: Duration = Duration::from_mins(1);
    const OWN: OrgId = OrgId(Uuid::from_u128(1));
    const OTHER: OrgId = OrgId(Uuid::from_u128(2));

    fn own() -> ChangeScope {
        ChangeScope::Orgs(BTreeSet::from([OWN]))
    }

    #[tokio::test]
    async fn a_change_before_the_wait_is_not_missed() {
        let changes = Changes::default();
        let mut waiter = changes.subscribe(own());
        changes.publish(1, [OWN]);
        assert_eq!(waiter.wait(WAIT_LIMIT).await, Wake::Changed);
        changes.publish(1, [OWN]);
        assert_eq!(waiter.wait(Duration::ZERO).await, Wake::TimedOut);
        changes.close();
        changes.publish(2, [OWN]);
        assert_eq!(waiter.wait(WAIT_LIMIT).await, Wake::Closed);
    }

    #[tokio::test]
    async fn a_change_wakes_its_organization_and_the_installation_only() {
        let changes = Changes::default();
        let mut waiter = changes.subscribe(own());
        let mut all = changes.subscribe(ChangeScope::All);
        changes.publish(1, [OTHER]);
        changes.publish(2, []);
        assert_eq!(waiter.wait(Duration::ZERO).await, Wake::TimedOut);
        assert_eq!(all.wait(WAIT_LIMIT).await, Wake::Changed);
        // An entry of another replica that was committed before those of this one.
        assert_eq!(changes.relayed(), None);
        changes.relay(4, [(OWN, 3), (OTHER, 1)]);
        assert_eq!(changes.relayed(), Some(4));
        assert_eq!(waiter.wait(WAIT_LIMIT).await, Wake::Changed);
        changes.publish(5, [OTHER]);
        assert_eq!(waiter.wait(Duration::ZERO).await, Wake::TimedOut);
        waiter.change_scope(ChangeScope::Orgs(BTreeSet::from([OTHER])));
        assert_eq!(waiter.wait(WAIT_LIMIT).await, Wake::Changed);
        waiter.change_scope(ChangeScope::Orgs(BTreeSet::new()));
        changes.publish(6, [OWN, OTHER]);
        assert_eq!(waiter.wait(Duration::ZERO).await, Wake::TimedOut);
    }
}
