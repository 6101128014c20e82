//! Credentials of nodes: keys, and data to verify tokens.

use crate::error::StoreError;
use crate::row::{id, text, time};
use crate::statement::sql;
use crate::store::Transaction;
use control_auth::PublicKey;
use control_domain::Tenant;
use control_wire::{EnrolmentTokenId, NodeId, ProjectId, SigningKeyId};
use jiff::Timestamp;
use std::net::IpAddr;

/// Data to verify a token with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenIssuer {
    /// Tenant of the node.
    pub tenant: Tenant,
    /// Public key that the signature names; not deactivated.
    pub public_key: PublicKey,
    /// Tokens issued earlier are void.
    pub tokens_since: Timestamp,
}

impl Transaction {
    /// Records the enrolment token of a registration, and its client address.
    pub async fn note_enrolment(
        &mut self,
        node: NodeId,
        token: EnrolmentTokenId,
        address: Option<IpAddr>,
    ) -> Result<(), StoreError> {
        let update = sql("UPDATE nodes SET enrolled_by = $1, enrolled_from = $2 WHERE id = $3");
        let update = update.bind(token).bind(address_text(address));
        update.bind(node).run(self).await?;
        Ok(())
    }

    /// The node with this name that the token registered from this address and that has sent no
    /// heartbeat.
    pub async fn node_without_heartbeat(
        &mut self,
        project: ProjectId,
        name: &str,
        token: EnrolmentTokenId,
        address: Option<IpAddr>,
    ) -> Result<Option<NodeId>, StoreError> {
        let find = "SELECT n.id AS id FROM nodes n JOIN node_heartbeats h ON h.node_id = n.id
                    WHERE n.project_id = $1 AND n.name = $2 AND n.enrolled_by = $3
                      AND n.enrolled_from = $4 AND h.seen_at = 0";
        let find = sql(find).bind(project).bind(name).bind(token);
        let row = find.bind(address_text(address)).row(self).await?;
        row.map(|row| id(&row, "id")).transpose()
    }

    /// The node with a key of this hash.
    pub async fn node_by_key(
        &mut self,
        key_hash: &str,
    ) -> Result<Option<(NodeId, Tenant)>, StoreError> {
        let by_key = sql("SELECT id, org_id, project_id FROM nodes WHERE key_hash = $1");
        let row = by_key.bind(key_hash).row(self).await?;
        let Some(row) = row else { return Ok(None) };
        let tenant = Tenant::project(id(&row, "org_id")?, id(&row, "project_id")?);
        Ok(Some((id(&row, "id")?, tenant)))
    }

    /// Returns true if a new key with this hash waits for its first use.
    pub async fn is_next_node_key(&mut self, key_hash: &str) -> Result<bool, StoreError> {
        let by_key = sql("SELECT id FROM nodes WHERE next_key_hash = $1");
        Ok(by_key.bind(key_hash).row(self).await?.is_some())
    }

    /// Activates the key with this hash that waits for its first use, in place of the previous key.
    pub async fn replace_node_key(&mut self, key_hash: &str) -> Result<(), StoreError> {
        let update = "UPDATE nodes SET key_hash = next_key_hash, next_key_hash = NULL,
                      version = version + 1 WHERE next_key_hash = $1";
        sql(update).bind(key_hash).run(self).await?;
        Ok(())
    }

    /// Adds a second key to the node if `version` is stored; the first use of the second key ends
    /// the first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn add_node_key(
        &mut self,
        node: NodeId,
        key_hash: &str,
        version: i64,
    ) -> Result<i64, StoreError> {
        let update = "UPDATE nodes SET next_key_hash = $1, version = version + 1
                      WHERE id = $2 AND version = $3";
        let update = sql(update).bind(key_hash).bind(node);
        update.write(self, version).await
    }

    /// Replaces the node's key if `version` is stored; earlier keys and all tokens end at `now`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn reset_node_key(
        &mut self,
        node: NodeId,
        key_hash: &str,
        now: Timestamp,
        version: i64,
    ) -> Result<i64, StoreError> {
        let update = "UPDATE nodes SET key_hash = $1, next_key_hash = NULL, tokens_since = $2,
                      version = version + 1 WHERE id = $3 AND version = $4";
        let update = sql(update).bind(key_hash).bind(now).bind(node);
        update.write(self, version).await
    }

    /// Time of the last rotation that ended all tokens of the node; 1970 if there was none, `None`
    /// if the node does not exist.
    pub async fn tokens_since(&mut self, node: NodeId) -> Result<Option<Timestamp>, StoreError> {
        let since = sql("SELECT tokens_since FROM nodes WHERE id = $1");
        let row = since.bind(node).row(self).await?;
        row.map(|row| time(&row, "tokens_since")).transpose()
    }

    /// Data to verify a token of `node` with, if `kid` is a key of its organization that is not
    /// deactivated.
    pub async fn token_issuer(
        &mut self,
        node: NodeId,
        kid: SigningKeyId,
    ) -> Result<Option<TokenIssuer>, StoreError> {
        let issuer = "SELECT n.org_id AS org_id, n.project_id AS project_id,
                        n.tokens_since AS tokens_since, k.public_key AS public_key
                      FROM nodes n JOIN signing_keys k ON k.org_id = n.org_id
                      WHERE n.id = $1 AND k.id = $2 AND k.state <> 'deactivated'";
        let row = sql(issuer).bind(node).bind(kid).row(self).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(TokenIssuer {
            tenant: Tenant::project(id(&row, "org_id")?, id(&row, "project_id")?),
            public_key: PublicKey::from_text(text(&row, "public_key")?),
            tokens_since: time(&row, "tokens_since")?,
        }))
    }
}

fn address_text(address: Option<IpAddr>) -> String {
    address.map_or_else(String::new, |address| address.to_string())
}
