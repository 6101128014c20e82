//! Certificates named by bundles, and the nodes that may fetch them.

use crate::error::StoreError;
use crate::rollout::recall::confirmed_fallback;
use crate::row::id;
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::{BundleId, CertificateId, NodeId};

/// Bundles that entitle node `$1` to their certificates: those of its orders, its previous bundle
/// in a rollout, and the last one that it confirmed.
macro_rules! node_bundles {
    ($head:literal) => {
        concat!(
            $head,
            " IN (SELECT bundle_id FROM node_orders WHERE node_id = $1
                  UNION ALL
                  SELECT previous_bundle_id FROM node_orders WHERE node_id = $1
                  UNION ALL
                  SELECT previous_bundle_id FROM rollout_nodes WHERE node_id = $1 AND held = 1
                  UNION ALL
                  SELECT confirmed_bundle_id FROM node_heartbeats WHERE node_id = $1)"
        )
    };
}

impl Transaction {
    /// Records the certificates that a bundle names. Needed once, because a bundle's files never
    /// change.
    ///
    /// # Errors
    ///
    /// [`StoreError::Reference`] if the bundle does not exist.
    pub async fn list_certificates(
        &mut self,
        bundle: BundleId,
        certificates: &[CertificateId],
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO bundle_certificates (bundle_id, certificate_id) VALUES ($1, $2)
                      ON CONFLICT (bundle_id, certificate_id) DO NOTHING";
        for certificate in certificates {
            let insert = sql(insert).bind(bundle).bind(*certificate);
            insert.run(self).await?;
        }
        let update = sql("UPDATE bundles SET certificates_listed = 1 WHERE id = $1");
        update.bind(bundle).run(self).await?;
        Ok(())
    }

    /// Returns true if the node may fetch the certificate: a bundle that the node was ordered to
    /// run, and may still serve, names it. Bundles in [`Transaction::unlisted_bundles`] do not
    /// count.
    pub async fn may_have_certificate(
        &mut self,
        node: NodeId,
        certificate: CertificateId,
    ) -> Result<bool, StoreError> {
        let found = node_bundles!(
            "SELECT bundle_id FROM bundle_certificates WHERE certificate_id = $2 AND bundle_id"
        );
        let row = sql(found).bind(node).bind(certificate).row(self).await?;
        Ok(row.is_some())
    }

    /// Returns true if a bundle names the certificate that a node runs or was ordered to run, that a
    /// rollout moves nodes to, or that a node would return to: after a rejection, a rollback, or a
    /// recall of what it runs. Revoked bundles do not count.
    pub async fn is_certificate_on_nodes(
        &mut self,
        certificate: CertificateId,
    ) -> Result<bool, StoreError> {
        let found = concat!(
            "SELECT b.id FROM bundle_certificates c JOIN bundles b ON b.id = c.bundle_id
            WHERE c.certificate_id = $1 AND b.state <> 'revoked' AND (
              EXISTS (SELECT 1 FROM node_orders o WHERE o.bundle_id = b.id)
              OR EXISTS (SELECT 1 FROM node_orders o WHERE o.previous_bundle_id = b.id)
              OR EXISTS (SELECT 1 FROM rollouts r WHERE r.bundle_id = b.id
                         AND r.state NOT IN ('completed', 'rolled_back', 'cancelled'))
              OR EXISTS (SELECT 1 FROM rollout_nodes r
                         WHERE r.previous_bundle_id = b.id AND r.held = 1)
              OR EXISTS (SELECT 1 FROM node_heartbeats h
                         WHERE h.project_id = b.project_id AND h.active_bundle_id = b.id)
              OR EXISTS (SELECT 1 FROM node_bundles n
                         JOIN node_heartbeats h ON h.node_id = n.node_id
                         WHERE n.bundle_id = b.id AND n.confirmed_counter IS NOT NULL
                           AND (h.confirmed_bundle_id = b.id OR b.id = ",
            confirmed_fallback!("h.confirmed_bundle_id"),
            "))) LIMIT 1"
        );
        Ok(sql(found).bind(certificate).row(self).await?.is_some())
    }

    /// Returns true if a bundle of the node names a certificate, or may name one because its
    /// certificates were never recorded.
    pub async fn may_have_certificates(&mut self, node: NodeId) -> Result<bool, StoreError> {
        let found = node_bundles!("SELECT bundle_id FROM bundle_certificates WHERE bundle_id");
        let named = sql(found).bind(node).row(self).await?;
        Ok(named.is_some() || !self.unlisted_bundles(node).await?.is_empty())
    }

    /// Certificates that a bundle names; some of them may not exist.
    pub async fn listed_certificates(
        &mut self,
        bundle: BundleId,
    ) -> Result<Vec<CertificateId>, StoreError> {
        let found = sql(
            "SELECT certificate_id FROM bundle_certificates WHERE bundle_id = $1
                         ORDER BY certificate_id",
        );
        let rows = found.bind(bundle).rows(self).await?;
        rows.iter().map(|row| id(row, "certificate_id")).collect()
    }

    /// Returns true if the node is known to have been ordered to run the bundle: by its latest
    /// orders, or because it confirmed the bundle while an order named it.
    pub async fn was_ordered(
        &mut self,
        node: NodeId,
        bundle: BundleId,
    ) -> Result<bool, StoreError> {
        let found = node_bundles!("SELECT id FROM bundles WHERE id = $2 AND id");
        let row = sql(found).bind(node).bind(bundle).row(self).await?;
        Ok(row.is_some())
    }

    /// Returns true if the certificates of a bundle were recorded.
    pub async fn has_listed_certificates(&mut self, bundle: BundleId) -> Result<bool, StoreError> {
        let found = sql("SELECT id FROM bundles WHERE id = $1 AND certificates_listed = 1");
        Ok(found.bind(bundle).row(self).await?.is_some())
    }

    /// The node's bundles from releases that did not record certificates.
    pub async fn unlisted_bundles(&mut self, node: NodeId) -> Result<Vec<BundleId>, StoreError> {
        let found = node_bundles!(
            "SELECT id FROM bundles WHERE certificates_listed = 0 AND digest IS NOT NULL AND id"
        );
        let rows = sql(found).bind(node).rows(self).await?;
        rows.iter().map(|row| id(row, "id")).collect()
    }
}
