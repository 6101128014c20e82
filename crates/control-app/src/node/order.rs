//! Orders: the bundle that each node must run.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_bundle::digest;
use control_domain::{Access, Node, Refusal, SigningKeyState, Strategy, Tenant};
use control_store::{NodeTarget, Transaction};
use control_wire::{BundleId, DesiredState, HttpChallenge, NodeId, Order, OrgId, RolloutId, Trial};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tokio::time::timeout;

/// Maximum number of orders announced to single nodes at once; above it every long poll reads the
/// database.
const MAX_ANNOUNCED: i64 = 4_096;

/// Heartbeats of a node, at least, between the end of its trial and its confirmation.
const CONFIRMING_HEARTBEATS: u64 = 3;

/// A bundle that nodes are ordered to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderTarget {
    /// Organization of the bundle and the nodes.
    pub org: OrgId,
    /// Bundle to run.
    pub bundle: BundleId,
    /// SHA-256 of the bundle's archive, Base64-URL.
    pub digest: String,
    /// Rollout that places the order; `None` for a direct assignment.
    pub rollout: Option<RolloutId>,
}

impl App {
    /// Orders `nodes` to run a bundle, in the caller's transaction. The caller has checked the
    /// permission and the nodes' organization. [`App::announce_orders`] after the commit wakes the
    /// nodes at once; without it they notice within a second.
    pub async fn write_orders(
        &self,
        tx: &mut Transaction,
        target: &OrderTarget,
        nodes: &[NodeId],
        now: Timestamp,
    ) -> Result<Vec<Order>, Error> {
        let OrderTarget {
            org,
            bundle,
            digest,
            rollout,
        } = target;
        let wanted = nodes.iter().map(|node| NodeTarget {
            node: *node,
            bundle: *bundle,
            digest: digest.clone(),
        });
        let wanted = wanted.collect();
        self.write_each(tx, *org, *rollout, wanted, now).await
    }

    /// Like [`App::write_orders`], with a bundle for each node. Locks rows in the order of node
    /// identifiers, as heartbeats do, so that transactions never deadlock.
    pub(crate) async fn write_each(
        &self,
        tx: &mut Transaction,
        org: OrgId,
        rollout: Option<RolloutId>,
        mut wanted: Vec<NodeTarget>,
        now: Timestamp,
    ) -> Result<Vec<Order>, Error> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        wanted.sort_by_key(|wanted| wanted.node);
        // The lock comes before any counter is read: the second of two transactions sees the
        // first's writes.
        let seq = tx.lock_audit().await?;
        let (key, pair) = self.signer(tx, org).await?;
        let mut orders = Vec::with_capacity(wanted.len());
        for NodeTarget {
            node,
            bundle,
            digest,
        } in wanted
        {
            let mut order = Order {
                node,
                bundle,
                digest,
                counter: tx.order_counter(node).await? + 1,
                kid: key.id,
                signature: String::new(),
            };
            order.signature = pair.sign(order.signed_text().as_bytes());
            tx.write_order(&order, seq, rollout, now).await?;
            orders.push(order);
        }
        Ok(orders)
    }

    /// Wakes the long polls of nodes with newly committed orders.
    pub fn announce_orders(&self, nodes: &[NodeId]) {
        self.orders.wake(nodes);
    }

    /// Number of long polls that wait at this replica.
    pub fn long_polls(&self) -> usize {
        self.orders.waiting()
    }

    /// The desired state of a node. While its tag is in `known`, waits for a newer one, up to
    /// `wait`.
    pub async fn desired(
        &self,
        call: &Call,
        id: NodeId,
        known: &[String],
        wait: Duration,
    ) -> Result<DesiredState, Error> {
        let tenant = Node::own(&call.actor, Access::OwnNode, id)?;
        let found = self.desired_state(tenant, id).await?;
        let is_known = |found: &DesiredState| known.contains(&desired_tag(found));
        if wait.is_zero() || !is_known(&found) {
            return Ok(found);
        }
        let mut waiter = self.orders.subscribe(id)?;
        let newer = async {
            loop {
                let found = self.desired_state(tenant, id).await?;
                if !is_known(&found) || !waiter.wait().await {
                    return Ok(found);
                }
            }
        };
        timeout(wait, newer).await.unwrap_or(Ok(found))
    }

    /// Reads the desired state. Signs the order again if its key was deactivated.
    async fn desired_state(&self, tenant: Tenant, id: NodeId) -> Result<DesiredState, Error> {
        let Tenant { org, project } = tenant;
        let project = project.ok_or(Refusal::NotFound)?;
        let mut tx = self.store.read().await?;
        let signals = tx.certificate_signals(project).await?;
        let certificates = u64::try_from(signals.renewals).unwrap_or_default();
        let found = tx.order(id).await?;
        let challenges = if signals.has_challenges {
            tx.node_challenges(id).await?
        } else {
            Vec::new()
        };
        drop(tx);
        let Some(found) = found else {
            return Ok(DesiredState {
                order: None,
                certificates,
                trial: None,
                challenges: Vec::new(),
            });
        };
        let trial = found.trial_secs.map(|secs| self.trial(secs));
        let mut order = found.order;
        if found.key_state == SigningKeyState::Deactivated {
            let mut tx = self.store.begin().await?;
            let (key, pair) = self.signer(&mut tx, org).await?;
            order.kid = key.id;
            order.signature = pair.sign(order.signed_text().as_bytes());
            tx.resign_order(&order).await?;
            tx.commit().await?;
        }
        Ok(DesiredState {
            order: Some(order),
            certificates,
            trial,
            challenges,
        })
    }

    /// Trial for a node of a batch that may take `secs` to pass.
    fn trial(&self, secs: u64) -> Trial {
        let interval = u64::from(self.heartbeat_interval.secs());
        Trial {
            confirm_secs: secs.saturating_add(interval.saturating_mul(CONFIRMING_HEARTBEATS)),
        }
    }

    /// Time after which a node without a confirmation reverts an order of a rollout.
    pub(crate) fn trial_duration(&self, strategy: &Strategy) -> SignedDuration {
        let secs = u64::try_from(strategy.max_batch_secs()).unwrap_or_default();
        let trial = self.trial(secs);
        SignedDuration::from_secs(i64::try_from(trial.confirm_secs).unwrap_or(i64::MAX))
    }

    /// Wakes the long polls of nodes with orders that this replica has not announced yet.
    pub(crate) async fn announce_newer_orders(
        &self,
        tx: &mut Transaction,
        head: i64,
    ) -> Result<(), Error> {
        match self.orders.seen() {
            Some(seen) if head <= seen => {}
            Some(seen) => {
                let nodes = tx.nodes_ordered_after(seen, MAX_ANNOUNCED).await?;
                let all = i64::try_from(nodes.len()).is_ok_and(|count| count < MAX_ANNOUNCED);
                if all {
                    self.orders.wake(&nodes);
                } else {
                    self.orders.wake_all();
                }
            }
            None => self.orders.wake_all(),
        }
        self.orders.set_seen(head);
        Ok(())
    }
}

/// `ETag` of a desired state, without quotes: the order's counter, its signing key, the number of
/// certificate renewals, and a digest of the challenges if there are any.
pub fn desired_tag(state: &DesiredState) -> String {
    match &state.order {
        Some(order) => {
            let DesiredState {
                certificates,
                challenges,
                ..
            } = state;
            let challenges = challenges_tag(challenges);
            format!("{}-{}-{certificates}{challenges}", order.counter, order.kid)
        }
        None => "0".to_owned(),
    }
}

fn challenges_tag(challenges: &[HttpChallenge]) -> String {
    if challenges.is_empty() {
        return String::new();
    }
    let tokens: Vec<&str> = challenges
        .iter()
        .map(|challenge| challenge.token.as_str())
        .collect();
    format!("-{}", digest(tokens.join(" ").as_bytes()))
}
