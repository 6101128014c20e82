//! HTTP-01 validation through nodes: all nodes that serve a host must be ready before the authority
//! is asked to validate.

use super::issuance::IssuanceFault;
use crate::app::App;
use crate::audit::value::done;
use crate::call::Call;
use crate::error::Error;
use control_domain::ManagedCertificate;
use control_wire::{HttpChallenge, ManagedCertificateId, NodeId};
use proxy_acme::PlacedOrder;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Time limit for the confirmations of all nodes, which poll at least every 30 seconds.
const CONFIRMATION_TIME: Duration = Duration::from_secs(90);
/// Interval of reading confirmations from the database.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of nodes that a failure names.
const NAMED_NODES: i64 = 5;

impl App {
    /// Refuses hosts that no online node of the project serves, before an order is placed.
    pub(super) async fn require_served(
        &self,
        value: &ManagedCertificate,
    ) -> Result<(), IssuanceFault> {
        for host in &value.hosts {
            if self.nodes_of_host(value, host).await?.is_empty() {
                let host = host.clone();
                return Err(IssuanceFault::NotServed { host });
            }
        }
        Ok(())
    }

    /// Hands the challenges to the nodes, waits for their confirmations, and requests the
    /// validation.
    pub(super) async fn validate_order(
        &self,
        value: &ManagedCertificate,
        order: &mut PlacedOrder,
    ) -> Result<(), IssuanceFault> {
        let challenges = order.challenges().await?;
        let hosts: BTreeSet<String> = challenges
            .iter()
            .map(|challenge| challenge.host.clone())
            .collect();
        self.store_challenges(value, challenges).await?;
        self.await_confirmations(value, &hosts).await?;
        order.validate().await?;
        self.end_validation(value.id).await?;
        Ok(())
    }

    /// Stores each challenge for every online node that serves its host, and wakes those nodes.
    async fn store_challenges(
        &self,
        value: &ManagedCertificate,
        challenges: Vec<proxy_acme::HttpChallenge>,
    ) -> Result<(), IssuanceFault> {
        let mut placed: Vec<(NodeId, HttpChallenge)> = Vec::new();
        for challenge in challenges {
            let proxy_acme::HttpChallenge {
                host,
                token,
                key_authorization,
            } = challenge;
            let challenge = HttpChallenge {
                host,
                token,
                key_authorization,
            };
            let nodes = self.nodes_of_host(value, &challenge.host).await?;
            if nodes.is_empty() {
                let host = challenge.host;
                return Err(IssuanceFault::NotServed { host });
            }
            placed.extend(nodes.into_iter().map(|node| (node.node, challenge.clone())));
        }
        let mut tx = self.store.begin().await?;
        let seq = tx.lock_audit().await?;
        for (node, challenge) in &placed {
            tx.insert_challenge(value, *node, challenge, seq).await?;
        }
        let nodes: BTreeSet<NodeId> = placed.iter().map(|(node, _)| *node).collect();
        tx.note_change(done(&json!({"hosts": value.hosts, "nodes": nodes.len()})));
        let call = Call::system(self.now());
        let action = "managed_certificate.challenged";
        self.commit(tx, &call, action, value.tenant, value.id.0)
            .await?;
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        self.orders.wake(&nodes);
        Ok(())
    }

    /// Waits until all nodes that are still online have confirmed, at least one for each host.
    async fn await_confirmations(
        &self,
        value: &ManagedCertificate,
        hosts: &BTreeSet<String>,
    ) -> Result<(), IssuanceFault> {
        let waiting = async {
            loop {
                let since = self.heartbeat_interval.online_since(self.now());
                let mut tx = self.store.read().await?;
                let missing = tx.unconfirmed_nodes(value.id, since, NAMED_NODES).await?;
                if missing.is_empty() {
                    return Ok::<(), Error>(());
                }
                drop(tx);
                sleep(LOOK_INTERVAL).await;
            }
        };
        let waited = timeout(CONFIRMATION_TIME, waiting).await;
        let since = self.heartbeat_interval.online_since(self.now());
        let mut tx = self.store.read().await?;
        let Ok(done) = waited else {
            let nodes = tx.unconfirmed_nodes(value.id, since, NAMED_NODES).await?;
            return Err(IssuanceFault::Unconfirmed { nodes });
        };
        done?;
        let answered = tx.confirmed_hosts(value.id).await?;
        match hosts.iter().find(|host| !answered.contains(host)) {
            Some(host) => Err(IssuanceFault::NotServed { host: host.clone() }),
            None => Ok(()),
        }
    }

    /// Deletes the challenges of a certificate, so that nodes stop answering them.
    pub(super) async fn end_validation(&self, id: ManagedCertificateId) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let nodes = tx.delete_challenges(id).await?;
        tx.commit().await?;
        self.orders.wake(&nodes);
        Ok(())
    }
}
