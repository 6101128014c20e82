//! Archives in the object store, recorded before their bundles are in the database.

use crate::error::StoreError;
use crate::row::{id, text};
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::{BundleId, OrgId};
use jiff::Timestamp;

/// An archive being stored in the object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The bundle that the archive will belong to.
    pub bundle: BundleId,
    /// The organization of that bundle.
    pub org: OrgId,
    /// SHA-256 of the archive, Base64-URL.
    pub digest: String,
    /// Name in the object store, shared by bundles with the same bytes.
    pub object: String,
}

/// An upload that was given up because its bundle never appeared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedUpload {
    /// Identifier of the bundle that was not stored.
    pub bundle: BundleId,
    /// Name in the object store.
    pub object: String,
    /// True if neither a bundle nor another upload refers to the object.
    pub is_orphan: bool,
}

impl Transaction {
    /// Records an archive before its bytes are stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] while an archive with the same bytes is being deleted.
    pub async fn begin_upload(
        &mut self,
        upload: &Upload,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Upload {
            bundle,
            org,
            digest,
            object,
        } = upload;
        let insert = "INSERT INTO uploads (bundle_id, org_id, digest, object, created_at)
                      SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS
                        (SELECT 1 FROM uploads WHERE object = $4 AND sweeping = 1)";
        let insert = sql(insert).bind(*bundle).bind(*org).bind(digest.as_str());
        let inserted = insert.bind(object.as_str()).bind(now).run(self).await?;
        (inserted == 1).then_some(()).ok_or(StoreError::Stale)
    }

    /// Removes the record of an archive, in the transaction that stores its bundle.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if housekeeping has abandoned the upload.
    pub async fn finish_upload(&mut self, bundle: BundleId) -> Result<(), StoreError> {
        let delete = "DELETE FROM uploads WHERE bundle_id = $1 AND sweeping = 0";
        let deleted = sql(delete).bind(bundle).run(self).await?;
        (deleted == 1).then_some(()).ok_or(StoreError::Stale)
    }

    /// Abandons up to `limit` uploads that began before `before`, oldest first. They cannot be
    /// completed afterwards.
    pub async fn abandon_uploads(
        &mut self,
        before: Timestamp,
        limit: i64,
    ) -> Result<Vec<AbandonedUpload>, StoreError> {
        let update = "UPDATE uploads SET sweeping = 1 WHERE created_at < $1 AND bundle_id IN
                        (SELECT bundle_id FROM uploads WHERE created_at < $1
                         ORDER BY created_at, bundle_id LIMIT $2)";
        sql(update).bind(before).bind(limit).run(self).await?;
        let list = "SELECT u.bundle_id AS bundle_id, u.object AS object,
                      CASE WHEN EXISTS (SELECT 1 FROM bundles b
                                        WHERE b.org_id = u.org_id AND b.digest = u.digest)
                        OR EXISTS (SELECT 1 FROM uploads o
                                   WHERE o.object = u.object AND o.sweeping = 0)
                      THEN 'used' ELSE 'orphan' END AS fate
                    FROM uploads u WHERE u.sweeping = 1 ORDER BY u.created_at, u.bundle_id LIMIT $1";
        let rows = sql(list).bind(limit).rows(self).await?;
        let uploads = rows.iter().map(|row| {
            Ok(AbandonedUpload {
                bundle: id(row, "bundle_id")?,
                object: text(row, "object")?,
                is_orphan: text(row, "fate")? == "orphan",
            })
        });
        uploads.collect()
    }

    /// Deletes the row of an abandoned upload, once its object is deleted or belongs to another
    /// bundle.
    pub async fn forget_upload(&mut self, bundle: BundleId) -> Result<(), StoreError> {
        let delete = "DELETE FROM uploads WHERE bundle_id = $1 AND sweeping = 1";
        sql(delete).bind(bundle).run(self).await?;
        Ok(())
    }
}
