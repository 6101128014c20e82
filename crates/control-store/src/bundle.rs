//! Bundles.

pub(crate) mod certificate;
pub(crate) mod objects;
pub(crate) mod retention;
pub(crate) mod signing_key;
pub(crate) mod upload;

use crate::error::StoreError;
use crate::row::{
    id, named, number, optional_id, optional_number, optional_text, optional_time, text, time,
    versioned,
};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{Page, Sort, SortColumn, Versioned};
use control_domain::{Bundle, BundleArchive, BundleSignature, BundleState, Name, Tenant};
use control_wire::{BundleId, ProjectId};
use sqlx::any::AnyRow;

/// Columns of a bundle; `listed` leaves out diagnostics, which lists do not show.
macro_rules! select {
    (listed $rest:literal) => {
        select!("'' AS diagnostics", $rest)
    };
    ($rest:literal) => {
        select!("diagnostics", $rest)
    };
    ($diagnostics:literal, $rest:literal) => {
        concat!(
            "SELECT id, org_id, project_id, name, state, digest, size_bytes, signing_key_id, ",
            "signature, warnings, created_at, signed_at, revoked_at, version, ",
            $diagnostics,
            " FROM bundles ",
            $rest
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[(SortColumn::Name, "name")],
};

/// Filter of a project's bundles; absent fields admit all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleFilter {
    /// Only those in this state.
    pub state: Option<BundleState>,
    /// Limits the list to this name, or to a prefix that ends in `*`.
    pub name: Option<String>,
    /// Sort order; `None` sorts by creation.
    pub sort: Option<Sort>,
}

impl Transaction {
    /// Inserts a new bundle.
    pub async fn insert_bundle(&mut self, bundle: &Bundle) -> Result<(), StoreError> {
        let Bundle {
            id,
            tenant: Tenant { org, project },
            name,
            state,
            archive,
            signature,
            diagnostics,
            warnings,
            created_at,
            revoked_at,
        } = bundle;
        let insert = "INSERT INTO bundles (id, org_id, project_id, name, state, digest, size_bytes,
                      signing_key_id, signature, diagnostics, created_at, signed_at, revoked_at,
                      warnings, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1)";
        let archive = archive.as_ref();
        let signature = signature.as_ref();
        let size_bytes = archive.map(|archive| i64::try_from(archive.size_bytes).unwrap_or(0));
        let insert = sql(insert).bind(*id).bind(*org).bind(*project).bind(name);
        let insert = insert
            .bind(state.name())
            .bind(archive.map(|archive| archive.digest.clone()))
            .bind(size_bytes)
            .bind(signature.map(|signature| signature.kid))
            .bind(signature.map(|signature| signature.text.clone()))
            .bind(diagnostics.as_str());
        let insert = insert
            .bind(*created_at)
            .bind(signature.map(|signature| signature.signed_at))
            .bind(*revoked_at)
            .bind(warnings.and_then(|warnings| i64::try_from(warnings).ok()));
        insert.run(self).await?;
        Ok(())
    }

    /// The bundle; `None` if it does not exist.
    pub async fn bundle(
        &mut self,
        bundle: BundleId,
    ) -> Result<Option<Versioned<Bundle>>, StoreError> {
        sql(select!("WHERE id = $1")).bind(bundle).one(self).await
    }

    /// The bundles of a project.
    pub async fn bundles(
        &mut self,
        project: ProjectId,
        filter: &BundleFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Bundle>>, StoreError> {
        let BundleFilter { state, name, sort } = filter;
        let list = ListQuery::new(select!(listed "WHERE project_id = ?"), project)
            .and("state = ?", state.map(BundleState::name))
            .named("name", name.as_deref());
        let sort = sort.as_ref();
        list.sorted(self, &SORTED, sort, page).await
    }

    /// Updates name and state of the bundle if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_bundle(
        &mut self,
        bundle: &Bundle,
        version: i64,
    ) -> Result<i64, StoreError> {
        let update = "UPDATE bundles SET state = $1, revoked_at = $2, name = $3,
                        version = version + 1 WHERE id = $4 AND version = $5";
        let update = sql(update)
            .bind(bundle.state.name())
            .bind(bundle.revoked_at)
            .bind(&bundle.name)
            .bind(bundle.id);
        update.write(self, version).await
    }
}

impl Record for Bundle {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let bundle = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            name: Name::stored(text(row, "name")?),
            state: named(row, "state", BundleState::from_name)?,
            archive: archive(row)?,
            signature: signature(row)?,
            diagnostics: text(row, "diagnostics")?,
            warnings: warnings(row)?,
            created_at: time(row, "created_at")?,
            revoked_at: optional_time(row, "revoked_at")?,
        };
        versioned(bundle, row)
    }
}

fn warnings(row: &AnyRow) -> Result<Option<usize>, StoreError> {
    let stored = optional_number(row, "warnings")?;
    let counted = stored.map(usize::try_from).transpose();
    counted.map_err(|_| StoreError::Corrupt("warnings"))
}

fn archive(row: &AnyRow) -> Result<Option<BundleArchive>, StoreError> {
    let Some(digest) = optional_text(row, "digest")? else {
        return Ok(None);
    };
    let size_bytes = u64::try_from(number(row, "size_bytes")?);
    let size_bytes = size_bytes.map_err(|_| StoreError::Corrupt("size_bytes"))?;
    Ok(Some(BundleArchive { digest, size_bytes }))
}

fn signature(row: &AnyRow) -> Result<Option<BundleSignature>, StoreError> {
    let Some(kid) = optional_id(row, "signing_key_id")? else {
        return Ok(None);
    };
    Ok(Some(BundleSignature {
        kid,
        text: text(row, "signature")?,
        signed_at: time(row, "signed_at")?,
    }))
}
