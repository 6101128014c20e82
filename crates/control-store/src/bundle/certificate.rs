//! The certificates that bundles name, and the nodes that may have them.

use crate::error::StoreError;
use crate::row::id;
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::{BundleId, CertificateId, NodeId};

/// The bundles that entitle the node `$1` to their certificates: the bundles of its orders, its
/// former bundle in a rollout, and the last one that it confirmed.
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
    /// Notes the certificates that a bundle names; once and for all, for its files never change.
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

    /// Returns true if a node may have a certificate: it is named by a bundle that the node was
    /// ordered to run and may be serving. Bundles in [`Transaction::unlisted_bundles`] are not
    /// counted.
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

    /// Returns true if a bundle of the node names a certificate, or may name one because it was
    /// made before certificates were noted.
    pub async fn may_have_certificates(&mut self, node: NodeId) -> Result<bool, StoreError> {
        let found = node_bundles!("SELECT bundle_id FROM bundle_certificates WHERE bundle_id");
        let named = sql(found).bind(node).row(self).await?;
        Ok(named.is_some() || !self.unlisted_bundles(node).await?.is_empty())
    }

    /// The certificates that a bundle names; an identifier may be of none.
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

    /// Returns true if the node was ordered to run a bundle before, as far as that is known: by its
    /// newest orders, or because it confirmed the bundle while an order named it.
    pub async fn was_ordered(
        &mut self,
        node: NodeId,
        bundle: BundleId,
    ) -> Result<bool, StoreError> {
        let found = node_bundles!("SELECT id FROM bundles WHERE id = $2 AND id");
        let row = sql(found).bind(node).bind(bundle).row(self).await?;
        Ok(row.is_some())
    }

    /// Returns true if the certificates of a bundle were noted.
    pub async fn has_listed_certificates(&mut self, bundle: BundleId) -> Result<bool, StoreError> {
        let found = sql("SELECT id FROM bundles WHERE id = $1 AND certificates_listed = 1");
        Ok(found.bind(bundle).row(self).await?.is_some())
    }

    /// The bundles of a node that were made before certificates were noted.
    pub async fn unlisted_bundles(&mut self, node: NodeId) -> Result<Vec<BundleId>, StoreError> {
        let found = node_bundles!(
            "SELECT id FROM bundles WHERE certificates_listed = 0 AND digest IS NOT NULL AND id"
        );
        let rows = sql(found).bind(node).rows(self).await?;
        rows.iter().map(|row| id(row, "id")).collect()
    }
}
