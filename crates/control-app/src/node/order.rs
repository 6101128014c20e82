//! Orders: the bundle assigned to each node.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_bundle::digest;
use control_domain::{Access, Node, Refusal, SigningKeyState, Tenant};
use control_store::{NodeTarget, Transaction};
use control_wire::{BundleId, DesiredState, HttpChallenge, NodeId, Order, OrgId, RolloutId, Trial};
use jiff::Timestamp;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum number of announced orders; above it every long poll reads the database.
const MAX_ANNOUNCED: i64 = 4_096;

/// Minimum number of a node's heartbeats between the end of a trial and its confirmation.
const CONFIRMING_HEARTBEATS: u64 = 3;

/// A bundle to be run by nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderTarget {
    /// The organization of the bundle and of the nodes.
    pub org: OrgId,
    /// Bundle that the order is for.
    pub bundle: BundleId,
    /// SHA-256 of its archive, Base64-URL.
    pub digest: String,
    /// The rollout that orders it.
    pub rollout: Option<RolloutId>,
}

impl App {
    /// Orders `nodes` to run a bundle, in the caller's transaction; the caller has checked the
    /// permission and the nodes' organization. After the commit [`App::announce_orders`] wakes them
    /// at once; without it they notice within a second.
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

    /// Orders each node to run its own bundle, like [`App::write_orders`] for one bundle. Rows are
    /// locked in the order of node identifiers, as by heartbeats, so that transactions never
    /// deadlock.
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
        // Taken before any counter is read, so that the second of two transactions sees the writes
        // of the first.
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

    /// Long polls that wait at this replica.
    pub fn long_polls(&self) -> usize {
        self.orders.waiting()
    }

    /// The order of a node. Waits, up to `wait`, while its tag is in `known`.
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
                if !is_known(&found) || !waiter.woken().await {
                    return Ok(found);
                }
            }
        };
        timeout(wait, newer).await.unwrap_or(Ok(found))
    }

    /// An order signed by a deactivated key is signed again when its node requests it.
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

    /// A trial of a batch that may take `secs` to pass.
    fn trial(&self, secs: u64) -> Trial {
        let interval = u64::from(self.heartbeat_interval.secs());
        Trial {
            confirm_secs: secs.saturating_add(interval.saturating_mul(CONFIRMING_HEARTBEATS)),
        }
    }

    /// Wakes the long polls of nodes with orders that this replica has not announced.
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

/// The `ETag` of a desired state, without quotes: the order's counter, the key that signed, the
/// certificates' number, and a digest of the challenges if there are any.
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
