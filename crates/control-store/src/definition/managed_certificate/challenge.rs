//! HTTP-01 challenges in progress, by node.

use crate::error::StoreError;
use crate::row::{id, number, text};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::ManagedCertificate;
use control_wire::{BundleId, HttpChallenge, ManagedCertificateId, NodeId, ProjectId};
use jiff::Timestamp;

/// An online node, and the bundle that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingNode {
    /// Identifier of the node.
    pub node: NodeId,
    /// Current name of the node.
    pub name: String,
    /// Active bundle in the node's last report.
    pub bundle: BundleId,
}

/// State of a project's certificates that every poll of a node reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateSignals {
    /// Number of renewals so far; nodes compare it with the number that they saw last.
    pub renewals: i64,
    /// True if a validation is in progress.
    pub has_challenges: bool,
}

impl Transaction {
    /// The nodes of a project with a heartbeat later than `online_since` and an active bundle of the
    /// project: a node may report any identifier.
    pub async fn serving_nodes(
        &mut self,
        project: ProjectId,
        online_since: Timestamp,
    ) -> Result<Vec<ServingNode>, StoreError> {
        let online = "SELECT n.id AS id, n.name AS name, h.active_bundle_id AS active
                      FROM node_heartbeats h JOIN nodes n ON n.id = h.node_id
                      JOIN bundles b ON b.id = h.active_bundle_id AND b.project_id = h.project_id
                      WHERE h.project_id = $1 AND h.seen_at > $2
                      ORDER BY n.id";
        let rows = sql(online).bind(project).bind(online_since);
        let rows = rows.rows(self).await?;
        let nodes = rows.iter().map(|row| {
            Ok(ServingNode {
                node: id(row, "id")?,
                name: text(row, "name")?,
                bundle: id(row, "active")?,
            })
        });
        nodes.collect()
    }

    /// Hands a challenge to a node; `seq` is the audit entry that announces it.
    pub async fn insert_challenge(
        &mut self,
        certificate: &ManagedCertificate,
        node: NodeId,
        challenge: &HttpChallenge,
        seq: i64,
    ) -> Result<(), StoreError> {
        let HttpChallenge {
            host,
            token,
            key_authorization,
        } = challenge;
        let insert =
            "INSERT INTO acme_challenges (node_id, token, managed_certificate_id, project_id, host,
                        key_authorization, seq, confirmed)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, 0)
                      ON CONFLICT (node_id, token) DO NOTHING";
        let insert = sql(insert).bind(node).bind(token.as_str());
        let insert = insert.bind(certificate.id).bind(certificate.tenant.project);
        let insert = insert.bind(host.as_str()).bind(key_authorization.as_str());
        insert.bind(seq).run(self).await?;
        Ok(())
    }

    /// The challenges that a node must answer, by token.
    pub async fn node_challenges(
        &mut self,
        node: NodeId,
    ) -> Result<Vec<HttpChallenge>, StoreError> {
        let found = sql("SELECT host, token, key_authorization FROM acme_challenges
                         WHERE node_id = $1 ORDER BY token");
        let rows = found.bind(node).rows(self).await?;
        let challenges = rows.iter().map(|row| {
            Ok(HttpChallenge {
                host: text(row, "host")?,
                token: text(row, "token")?,
                key_authorization: text(row, "key_authorization")?,
            })
        });
        challenges.collect()
    }

    /// Records that a node is ready to answer a challenge; returns false if the node has no such
    /// challenge.
    pub async fn confirm_challenge(
        &mut self,
        node: NodeId,
        token: &str,
    ) -> Result<bool, StoreError> {
        let confirm = "UPDATE acme_challenges SET confirmed = 1 WHERE node_id = $1 AND token = $2";
        let written = sql(confirm).bind(node).bind(token).run(self).await?;
        Ok(written > 0)
    }

    /// Names of at most `limit` nodes with a heartbeat later than `online_since` that have not
    /// confirmed a challenge.
    pub async fn unconfirmed_nodes(
        &mut self,
        certificate: ManagedCertificateId,
        online_since: Timestamp,
        limit: i64,
    ) -> Result<Vec<String>, StoreError> {
        let silent =
            "SELECT DISTINCT n.name AS name FROM acme_challenges c JOIN nodes n ON n.id = c.node_id
                      JOIN node_heartbeats h ON h.node_id = c.node_id
                      WHERE c.managed_certificate_id = $1 AND c.confirmed = 0 AND h.seen_at > $2
                      ORDER BY n.name LIMIT $3";
        let rows = sql(silent).bind(certificate).bind(online_since).bind(limit);
        let rows = rows.rows(self).await?;
        rows.iter().map(|row| text(row, "name")).collect()
    }

    /// Hosts of a certificate with a challenge that at least one node confirmed.
    pub async fn confirmed_hosts(
        &mut self,
        certificate: ManagedCertificateId,
    ) -> Result<Vec<String>, StoreError> {
        let found = sql("SELECT DISTINCT host FROM acme_challenges
                         WHERE managed_certificate_id = $1 AND confirmed = 1 ORDER BY host");
        let rows = found.bind(certificate).rows(self).await?;
        rows.iter().map(|row| text(row, "host")).collect()
    }

    /// Deletes the challenges of a certificate; returns the nodes that had them.
    pub async fn delete_challenges(
        &mut self,
        certificate: ManagedCertificateId,
    ) -> Result<Vec<NodeId>, StoreError> {
        let delete = sql(
            "DELETE FROM acme_challenges WHERE managed_certificate_id = $1
                          RETURNING node_id",
        );
        let rows = delete.bind(certificate).rows(self).await?;
        rows.iter().map(|row| id(row, "node_id")).collect()
    }

    /// The certificate state of a project that its nodes poll.
    pub async fn certificate_signals(
        &mut self,
        project: ProjectId,
    ) -> Result<CertificateSignals, StoreError> {
        let one = "SELECT certificate_renewals,
                     (SELECT COUNT(*) FROM acme_challenges c WHERE c.project_id = projects.id) AS challenges
                   FROM projects WHERE id = $1";
        let Some(row) = sql(one).bind(project).row(self).await? else {
            return Ok(CertificateSignals::default());
        };
        Ok(CertificateSignals {
            renewals: number(&row, "certificate_renewals")?,
            has_challenges: number(&row, "challenges")? > 0,
        })
    }
}
