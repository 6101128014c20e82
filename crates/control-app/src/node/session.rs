//! Requests of nodes: token exchange, heartbeats, events.

use crate::app::App;
use crate::app::write_queue::HeartbeatWrite;
use crate::call::Call;
use crate::error::Error;
use crate::metric;
use control_auth::{Claims, TOKEN_LIFETIME};
use control_domain::{Access, Node, Refusal, RouteCounts, check_events, check_heartbeat};
use control_store::{PackedHeartbeat, Transaction, WrittenHeartbeat};
use control_wire::{
    EventsRequest, HeartbeatRequest, HeartbeatResponse, NodeEventId, NodeId, OrgId, TokenResponse,
    Verdict,
};
use jiff::Timestamp;
use metrics::counter;

/// Maximum number of routes with counters in a heartbeat that is packed on a serving thread, which
/// takes less than a millisecond.
const MAX_SMALL_ROUTES: usize = 32;

impl App {
    /// Issues a token of 12 hours for the node's key.
    ///
    /// Not audited: nothing changes, and every node does it twice a day.
    pub async fn issue_token(&self, call: &Call, id: NodeId) -> Result<TokenResponse, Error> {
        let tenant = Node::own(&call.actor, Access::OwnNodeKey, id)?;
        let project = tenant.project.ok_or(Refusal::NotFound)?;
        let mut tx = self.store.read().await?;
        let since = tx.tokens_since(id).await?.ok_or(Refusal::NotFound)?;
        if call.now < since {
            // The key was replaced while the request was processed.
            return Err(Error::Unauthenticated);
        }
        let (key, pair) = self.signer(&mut tx, tenant.org).await?;
        let issued = call.now.as_second().max(first_second(since));
        let exp = issued.saturating_add(TOKEN_LIFETIME.as_secs());
        let claims = Claims {
            sub: id,
            prj: project,
            org: tenant.org,
            kid: key.id,
            exp,
        };
        Ok(TokenResponse {
            token: claims.sign(&pair)?,
            expires_at: Timestamp::from_second(exp).unwrap_or(Timestamp::MAX),
        })
    }

    /// Records a heartbeat. Not audited: heartbeats are frequent and change nothing that users
    /// control.
    pub async fn heartbeat(
        &self,
        call: &Call,
        id: NodeId,
        heartbeat_request: HeartbeatRequest,
    ) -> Result<HeartbeatResponse, Error> {
        let tenant = Node::own(&call.actor, Access::OwnNode, id)?;
        let event = NodeEventId::new(call.now, self.random_id());
        let rejected = heartbeat_request.status.as_ref().and_then(|status| {
            let is_rejected = status.verdict == Some(Verdict::Rejected);
            status.active.filter(|_| is_rejected)
        });
        let reported = heartbeat_request.traffic.as_ref().map(RouteCounts::from);
        let packed = self.pack(tenant.org, heartbeat_request).await?;
        let heartbeat = HeartbeatWrite {
            node: id,
            org: tenant.org,
            heartbeat_request: Box::new(packed),
            event,
            interval: self.heartbeat_interval,
        };
        let written = self.writes.heartbeat(heartbeat, call.now).await?;
        let WrittenHeartbeat {
            order,
            confirmation,
            has_found_duplicate,
            is_sign_of_life: _,
            replaced,
        } = written.ok_or(Refusal::NotFound)?;
        if has_found_duplicate {
            tracing::warn!(node = %id, "two running processes report as this node");
            counter!(metric::NODE_DUPLICATES).increment(1);
        }
        let counters = replaced.zip(reported);
        self.count_requests(tenant, id, counters, call.now).await;
        if let Some(active) = rejected {
            self.recall_again(id, active).await?;
        }
        Ok(HeartbeatResponse {
            heartbeat_interval_secs: self.heartbeat_interval.secs().into(),
            order: u64::try_from(order).unwrap_or_default(),
            confirmation,
        })
    }

    /// Checks and packs a heartbeat; a large one on a thread for blocking work.
    async fn pack(
        &self,
        org: OrgId,
        heartbeat_request: HeartbeatRequest,
    ) -> Result<PackedHeartbeat, Error> {
        let is_large = heartbeat_request
            .traffic
            .as_ref()
            .is_some_and(|it| MAX_SMALL_ROUTES < it.routes.len());
        let pack = move || {
            check_heartbeat(&heartbeat_request)?;
            Ok::<_, Error>(PackedHeartbeat::new(heartbeat_request)?)
        };
        if is_large {
            self.parsers.run(org.0, pack).await?
        } else {
            pack()
        }
    }

    /// Stores events of a node.
    pub async fn add_node_events(
        &self,
        call: &Call,
        id: NodeId,
        request: &EventsRequest,
    ) -> Result<(), Error> {
        let tenant = Node::own(&call.actor, Access::OwnNode, id)?;
        check_events(request)?;
        let random: [u8; 10] = self.random_id();
        // Identifiers of a batch sort in the order of its events.
        let events = (0_u8..).zip(&request.events).map(|(index, event)| {
            let mut bytes = random;
            let [high, low, ..] = &mut bytes;
            (*high, *low) = (0, index);
            (NodeEventId::new(call.now, bytes), event)
        });
        let mut tx = self.store.begin().await?;
        tx.insert_node_events(id, events).await?;
        if let Some(reservation) = call.reservation {
            tx.commit_reply(reservation, Some(tenant)).await?;
        }
        Ok(tx.commit().await?)
    }
}

/// Time before which issued tokens of `node` are void, when its key is replaced at once.
pub(crate) async fn end_of_tokens(
    tx: &mut Transaction,
    call: &Call,
    node: NodeId,
) -> Result<Timestamp, Error> {
    let before = tx.tokens_since(node).await?;
    Ok(after_tokens(
        before.unwrap_or(Timestamp::UNIX_EPOCH),
        call.now,
    ))
}

/// A time, at or after `now`, with a [`first_second`] after every issued token's. Tokens issued
/// after an earlier replacement at `before` may carry the following second.
fn after_tokens(before: Timestamp, now: Timestamp) -> Timestamp {
    let latest = now.as_second().max(first_second(before));
    if latest < first_second(now) {
        return now;
    }
    Timestamp::from_second(latest.saturating_add(1)).unwrap_or(now)
}

/// The first whole second since 1970 that is not before `since`. Token times are whole seconds, so
/// a token from the second of a replacement may belong to either key.
pub(crate) fn first_second(since: Timestamp) -> i64 {
    since.as_second() + i64::from(since.subsec_nanosecond() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_issued_until_the_second_of_the_revocation_end() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let ends = |before, now| first_second(after_tokens(at(before), at(now)));

        assert_eq!(ends(0, 5_300), 6, "tokens of second 5 end");
        assert_eq!(ends(0, 5_000), 6, "also at its first instant");
        assert_eq!(ends(5_300, 5_400), 7, "a token after 5.3 s is dated 6");
        assert_eq!(ends(6_500, 5_400), 8, "a clock that was set back");
    }
}
