//! Operators' commands on nodes, and registration.

pub(crate) mod drift;
pub(crate) mod enrolment_token;
pub(crate) mod order;
pub(crate) mod private_keys;
pub(crate) mod session;
pub(crate) mod traffic;

use crate::app::{App, taken, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::error::Error;
use crate::node::private_keys::{require_credential, require_labels};
use crate::node::session::end_of_tokens;
use control_auth::Secret;
use control_domain::{Access, Actor, Labels, NewNode, Node, QuotaKind, Refusal, SigningKey};
use control_store::{NodeCounts, NodeFilter, Page, Sort, Transaction, Versioned};
use control_wire::{NodeEvent, NodeEventId, NodeId, ProjectId, RegisterRequest};
use std::collections::BTreeMap;

/// Result of a registration.
#[derive(Debug)]
pub struct RegisteredNode {
    /// Node as stored.
    pub node: Node,
    /// Its key, which is shown once.
    pub key: Secret,
    /// Keys that verify the signatures of the node's organization.
    pub signing_keys: Vec<Versioned<SigningKey>>,
}

/// Time at which a node's previous keys expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRotation {
    /// At the first use of the new key.
    AtFirstUse,
    /// At once, together with all of the node's tokens.
    Immediate,
}

impl App {
    /// Registers a node; the same transaction uses up the token. A repetition with the same token,
    /// for a node of this name that has sent no heartbeat, issues another key to that node, because
    /// the first response was lost.
    pub async fn register_node(
        &self,
        call: &Call,
        project: ProjectId,
        request: RegisterRequest,
    ) -> Result<RegisteredNode, Error> {
        let mut tx = self.store.begin().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = NodeId::new(call.now, self.random_id());
        let RegisterRequest { name, labels } = request;
        let mut given = None;
        if let Actor::Enrolment { id: token, .. } = call.actor {
            let token = tx.enrolment_token(token).await?.ok_or(Refusal::Ended)?;
            given = Some(token.value.labels);
        }
        let is_given = given.is_some();
        let new = NewNode {
            name: &name,
            labels,
            given,
        };
        let node = Node::register(&call.actor, tenant, id, new, call.now)?;
        if let Actor::Enrolment { id: token, .. } = call.actor {
            let known = tx.node_without_heartbeat(project, &name, token, call.client_ip);
            if let Some(known) = known.await? {
                return self.register_again(tx, call, project, known).await;
            }
            if !tx.use_enrolment_token(token, call.now).await? {
                return Err(Refusal::Ended.into());
            }
        }
        if !is_given {
            let none = Labels::default();
            require_labels(&mut tx, &call.actor, tenant, &none, &node.labels).await?;
        }
        let key = self.new_secret();
        let inserted = tx.insert_node(&node, &key.hash()).await;
        inserted.map_err(taken("name"))?;
        self.hold_quota(&mut tx, tenant.org, QuotaKind::Nodes)
            .await?;
        if let Actor::Enrolment { id: token, .. } = call.actor {
            tx.note_enrolment(id, token, call.client_ip).await?;
        }
        let signing_keys = tx.verifying_signing_keys(tenant.org).await?;
        tx.note_change(created(&node));
        self.commit(tx, call, "node.registered", tenant, id.0)
            .await?;
        Ok(RegisteredNode {
            node,
            key,
            signing_keys,
        })
    }

    /// Repeats a registration after a lost response: issues another key to the node.
    async fn register_again(
        &self,
        mut tx: Transaction,
        call: &Call,
        project: ProjectId,
        id: NodeId,
    ) -> Result<RegisteredNode, Error> {
        let found = find(&mut tx, project, id).await?;
        let key = self.new_secret();
        let (tenant, hash) = (found.value.tenant, key.hash());
        let since = end_of_tokens(&mut tx, call, id).await?;
        tx.reset_node_key(id, &hash, since, found.version).await?;
        let signing_keys = tx.verifying_signing_keys(tenant.org).await?;
        self.commit(tx, call, "node.registered_again", tenant, id.0)
            .await?;
        Ok(RegisteredNode {
            node: found.value,
            key,
            signing_keys,
        })
    }

    /// The nodes of a project.
    pub async fn nodes(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &NodeFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Node>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let since = self.heartbeat_interval.online_since(call.now);
        Ok(tx.nodes(project, filter, since, page).await?)
    }

    /// Counts the nodes of a project.
    pub async fn count_nodes(&self, call: &Call, project: ProjectId) -> Result<NodeCounts, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        let since = self.heartbeat_interval.online_since(call.now);
        Ok(tx.count_nodes(project, since).await?)
    }

    /// One node with its version.
    pub async fn node(
        &self,
        call: &Call,
        project: ProjectId,
        id: NodeId,
    ) -> Result<Versioned<Node>, Error> {
        let found = find(&mut self.store.read().await?, project, id).await?;
        call.actor.require(Access::READ_NODES, found.value.tenant)?;
        Ok(found)
    }

    /// The newest events of a node.
    pub async fn node_events(
        &self,
        call: &Call,
        project: ProjectId,
        id: NodeId,
        sort: Option<&Sort>,
        page: Page,
    ) -> Result<Vec<(NodeEventId, NodeEvent)>, Error> {
        let mut tx = self.store.read().await?;
        let found = find(&mut tx, project, id).await?;
        call.actor.require(Access::READ_NODES, found.value.tenant)?;
        Ok(tx.node_events(id, sort, page).await?)
    }

    /// Changes labels of a node; the value `None` removes a label.
    pub async fn label_node(
        &self,
        call: &Call,
        project: ProjectId,
        id: NodeId,
        changes: BTreeMap<String, Option<String>>,
    ) -> Result<Versioned<Node>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        let (before, labels) = (found.value.audited(), found.value.labels.clone());
        let value = found.value.label(&call.actor, changes)?;
        let tenant = value.tenant;
        require_labels(&mut tx, &call.actor, tenant, &labels, &value.labels).await?;
        call.expect_version(found.version)?;
        let version = tx.update_node(&value, found.version).await?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "node.labelled", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Approves a node that waits because it requested labels beyond its token's.
    pub async fn approve_node(
        &self,
        call: &Call,
        project: ProjectId,
        id: NodeId,
        grants_labels: bool,
    ) -> Result<Versioned<Node>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        let (before, labels) = (found.value.audited(), found.value.labels.clone());
        let value = found.value.approve(&call.actor, grants_labels)?;
        let tenant = value.tenant;
        require_labels(&mut tx, &call.actor, tenant, &labels, &value.labels).await?;
        call.expect_version(found.version)?;
        let version = tx.update_node(&value, found.version).await?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "node.approved", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Rotates a node's key; the new key is shown once. A holder of the key can fetch the private
    /// keys of the node's certificates.
    pub async fn rotate_node_key(
        &self,
        call: &Call,
        project: ProjectId,
        id: NodeId,
        rotation: KeyRotation,
    ) -> Result<(i64, Secret), Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        found.value.check_key_rotation(&call.actor)?;
        require_credential(&mut tx, &call.actor, &found.value).await?;
        call.expect_version(found.version)?;
        let key = self.new_secret();
        let (hash, version) = (key.hash(), found.version);
        let version = match rotation {
            KeyRotation::AtFirstUse => tx.add_node_key(id, &hash, version).await?,
            KeyRotation::Immediate => {
                let since = end_of_tokens(&mut tx, call, id).await?;
                tx.reset_node_key(id, &hash, since, version).await?
            }
        };
        let tenant = found.value.tenant;
        self.commit(tx, call, "node.key_rotated", tenant, id.0)
            .await?;
        Ok((version, key))
    }

    /// Deletes a node; its credentials are refused from then on.
    pub async fn delete_node(
        &self,
        call: &Call,
        project: ProjectId,
        id: NodeId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        // Taken first, as by a step of a rollout, which locks the rows deleted here afterwards.
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        found
            .value
            .check_delete(&call.actor, self.heartbeat_interval, call.now)?;
        call.expect_version(found.version)?;
        tx.delete_node(id, found.version).await?;
        let tenant = found.value.tenant;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "node.deleted", tenant, id.0).await
    }
}

/// A node of another project is indistinguishable from a missing one.
async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: NodeId,
) -> Result<Versioned<Node>, Error> {
    let found = tx.node(id).await?;
    let found = found.filter(|node| node.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}
