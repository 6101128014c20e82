//! Bundles: creation from files or services as signed archives, and their management.

pub(crate) mod approval;
pub(crate) mod archive;
pub(crate) mod preview;
pub(crate) mod signing_key;

use crate::app::{App, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::configuration::compiler::{self, Definitions, ListenAddresses};
use crate::configuration::{self, Checked, Diagnostic};
use crate::error::Error;
use control_bundle::{
    BundleError, Files, Requirements, certificates, digest, named_certificates, pack, sign,
};
use control_domain::{Access, Bundle, BundleArchive, BundleSignature, QuotaKind, Refusal, Tenant};
use control_store::{
    BundleFilter, CertificateFilter, ListFilter, Page, PageOrder, ServiceFilter, Transaction,
    Upload, Versioned,
};
use control_wire::{BundleId, CertificateId, ProjectId};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// Version of the configuration language.
const SCHEMA_VERSION: u32 = 1;
/// Oldest proxy that is known to accept files checked here: the release of this code.
const MIN_PROXY_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Maximum number of services, upstreams and certificates, each, that a bundle is compiled from.
const MAX_DEFINITIONS: i64 = 1_000;

/// Maximum number of certificates named by one bundle.
const MAX_NAMED: usize = 1_000;

/// Request to create a bundle.
#[derive(Clone, Debug)]
pub struct NewBundle {
    /// Name that says what the bundle is for.
    pub name: String,
    /// Origin of the bundle's files.
    pub source: BundleSource,
}

/// Origin of the files of a bundle.
#[derive(Clone, Debug)]
pub enum BundleSource {
    /// Files of a configuration that begins in `proxy.kdl`.
    Files(Files),
    /// The services of the project.
    Services(ListenAddresses),
}

/// Result of checking and packing files.
struct Built {
    /// `None` for a configuration with errors.
    archive: Option<Vec<u8>>,
    diagnostics: Vec<Diagnostic>,
    /// Number of warnings that a project's policy counts, including those that were not kept.
    warnings: usize,
}

impl App {
    /// Checks files, and creates a bundle: signed, or rejected with diagnostics.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Error::Files`] for files that cannot be a bundle at all.
    pub async fn create_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        new: NewBundle,
    ) -> Result<Versioned<Bundle>, Error> {
        let NewBundle { name, source } = new;
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = BundleId::new(call.now, self.random_id());
        let draft = Bundle::create(&call.actor, tenant, id, &name, call.now)?;
        let files = source_files(&mut tx, call, tenant, source).await?;
        let certificates = certificates(&files);
        let known = known_certificates(&mut tx, project, &files).await?;
        self.check_quota(&mut tx, tenant.org, QuotaKind::Bundles, 1)
            .await?;
        // No connection is held while the files are checked, and SQLite's only writer stays free.
        drop(tx);
        let built = self.heavy(tenant.org, move || build(&files, &known));
        let built = built.await?;
        let Built {
            archive,
            diagnostics,
            warnings,
        } = built.map_err(Error::Files)?;
        let diagnostics = serde_json::to_string(&diagnostics).unwrap_or_default();
        let Some(archive) = archive else {
            let rejected = draft.reject(diagnostics)?;
            return self.insert_bundle(call, rejected, &certificates).await;
        };
        let stored = BundleArchive {
            digest: digest(&archive),
            size_bytes: archive.len() as u64,
        };
        let validated = draft.validate(stored, diagnostics, warnings)?;
        // Order of writes: note, archive, row. Housekeeping finds an archive without a row by its
        // note.
        let object = validated.archive_object()?;
        self.note_upload(&validated, &object, call.now).await?;
        self.objects.put(&object, archive).await?;
        self.insert_bundle(call, validated, &certificates).await
    }

    /// Checks files without storing them.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Error::Files`] for files that cannot be a bundle at all.
    pub async fn check_files(
        &self,
        call: &Call,
        project: ProjectId,
        files: Files,
    ) -> Result<Vec<Diagnostic>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::WRITE_BUNDLES, tenant)?;
        let known = known_certificates(&mut tx, project, &files).await?;
        drop(tx);
        let built = self.heavy(tenant.org, move || build(&files, &known));
        let built = built.await?;
        Ok(built.map_err(Error::Files)?.diagnostics)
    }

    /// The files of a bundle. They contain no secrets, which are stored separately and referenced
    /// by name.
    pub async fn bundle_files(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
    ) -> Result<Files, Error> {
        let found = self.bundle(call, project, id).await?;
        Ok(self.contents(&found.value).await?.files)
    }

    /// The bundles of a project.
    pub async fn bundles(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &BundleFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Bundle>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_BUNDLES, tenant)?;
        Ok(tx.bundles(project, filter, page).await?)
    }

    /// One bundle.
    pub async fn bundle(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
    ) -> Result<Versioned<Bundle>, Error> {
        let found = find(&mut self.store.read().await?, project, id).await?;
        let tenant = found.value.tenant;
        call.actor.require(Access::READ_BUNDLES, tenant)?;
        Ok(found)
    }

    /// Revokes a signed bundle.
    pub async fn revoke_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
    ) -> Result<Versioned<Bundle>, Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let before = found.value.audited();
        let value = found.value.revoke(&call.actor, call.now)?;
        call.expect_version(found.version)?;
        let version = tx.update_bundle(&value, found.version).await?;
        tx.set_recalling(id, true).await?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "bundle.revoked", value.tenant, id.0)
            .await?;
        // The revocation stands if this fails: background work continues the recall.
        drop(self.recall_bundles(call.now).await);
        Ok(Versioned { value, version })
    }

    /// Renames a bundle.
    pub async fn rename_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
        name: &str,
    ) -> Result<Versioned<Bundle>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        let before = found.value.audited();
        let value = found.value.rename(&call.actor, name)?;
        call.expect_version(found.version)?;
        let version = tx.update_bundle(&value, found.version).await?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "bundle.renamed", value.tenant, value.id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Deletes an unused bundle, with its archive.
    pub async fn delete_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        // Excludes concurrent orders.
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let is_used = tx.is_bundle_used(found.value.id).await?;
        found.value.check_delete(&call.actor, is_used)?;
        call.expect_version(found.version)?;
        let tenant = found.value.tenant;
        tx.delete_bundle(id, found.version).await?;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "bundle.deleted", tenant, id.0).await
    }

    async fn note_upload(
        &self,
        bundle: &Bundle,
        object: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(archive) = &bundle.archive else {
            return Ok(());
        };
        let upload = Upload {
            bundle: bundle.id,
            org: bundle.tenant.org,
            digest: archive.digest.clone(),
            object: object.to_owned(),
        };
        let mut tx = self.store.begin().await?;
        // Excludes housekeeping that deletes an archive with the same digest.
        tx.lock_audit().await?;
        tx.begin_upload(&upload, now).await?;
        Ok(tx.commit().await?)
    }

    /// Stores a validated bundle with the certificates that it names, and signs it unless it was
    /// rejected.
    async fn insert_bundle(
        &self,
        call: &Call,
        bundle: Bundle,
        certificates: &[CertificateId],
    ) -> Result<Versioned<Bundle>, Error> {
        let mut tx = self.store.begin().await?;
        let bundle = match bundle.archive.clone() {
            Some(BundleArchive { digest, .. }) => {
                let (key, pair) = self.signer(&mut tx, bundle.tenant.org).await?;
                bundle.sign(BundleSignature {
                    kid: key.id,
                    text: sign(&digest, key.id, &pair),
                    signed_at: call.now,
                })?
            }
            None => bundle,
        };
        tx.insert_bundle(&bundle).await?;
        for kind in [QuotaKind::Bundles, QuotaKind::ArchiveBytes] {
            self.hold_quota(&mut tx, bundle.tenant.org, kind).await?;
        }
        let mut action = "bundle.rejected";
        if bundle.archive.is_some() {
            tx.list_certificates(bundle.id, certificates).await?;
            tx.finish_upload(bundle.id).await?;
            action = "bundle.signed";
        }
        tx.note_change(created(&bundle));
        self.commit(tx, call, action, bundle.tenant, bundle.id.0)
            .await?;
        Ok(Versioned::new(bundle))
    }
}

/// A bundle of another project is indistinguishable from a missing one.
pub(crate) async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: BundleId,
) -> Result<Versioned<Bundle>, Error> {
    let found = tx.bundle(id).await?;
    let found = found.filter(|found| found.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}

/// Files of the source; checks the permissions that they need.
async fn source_files(
    tx: &mut Transaction,
    call: &Call,
    tenant: Tenant,
    source: BundleSource,
) -> Result<Files, Error> {
    match source {
        BundleSource::Files(files) => {
            // Files may name any certificate, so they need the permission for private keys. A
            // service's certificate was permitted when the service was written.
            if !certificates(&files).is_empty() {
                call.actor.require(Access::DELIVER_KEYS, tenant)?;
            }
            Ok(files)
        }
        BundleSource::Services(listen) => {
            call.actor.require(Access::READ_SERVICES, tenant)?;
            let project = tenant.project.ok_or(Refusal::NotFound)?;
            Ok(compiler::compile(
                &definitions(tx, project).await?,
                &listen,
            )?)
        }
    }
}

async fn definitions(tx: &mut Transaction, project: ProjectId) -> Result<Definitions, Error> {
    let page = Page {
        after: None,
        limit: MAX_DEFINITIONS + 1,
        order: PageOrder::Oldest,
    };
    let services = tx
        .services(project, &ServiceFilter::default(), page)
        .await?;
    let upstreams = tx.upstreams(project, &ListFilter::default(), page).await?;
    let certificates = tx
        .certificates(project, &CertificateFilter::default(), page)
        .await?;
    let most = services.len().max(upstreams.len()).max(certificates.len());
    if i64::try_from(most).is_ok_and(|most| most > MAX_DEFINITIONS) {
        let reason = "the project has more than 1000 services, upstreams or certificates";
        return Err(Refusal::invalid("services", reason).into());
    }
    Ok(Definitions {
        services: values(services),
        upstreams: values(upstreams),
        certificates: values(certificates),
    })
}

fn values<T>(found: Vec<Versioned<T>>) -> Vec<T> {
    found.into_iter().map(|found| found.value).collect()
}

/// Certificates of the project among those that the files name.
async fn known_certificates(
    tx: &mut Transaction,
    project: ProjectId,
    files: &Files,
) -> Result<BTreeSet<CertificateId>, Error> {
    let mut known = BTreeSet::new();
    for id in named_certificates(files).into_iter().take(MAX_NAMED) {
        let found = tx.certificate(id).await?;
        if found.is_some_and(|found| found.value.tenant.project == Some(project)) {
            known.insert(id);
        }
    }
    Ok(known)
}

fn build(files: &Files, known: &BTreeSet<CertificateId>) -> Result<Built, BundleError> {
    let requirements = Requirements {
        schema_version: SCHEMA_VERSION,
        least_proxy_version: MIN_PROXY_VERSION.to_owned(),
    };
    // The size limits come first: they bound the cost of the later checks.
    let archive = pack(files, &requirements)?;
    let Checked {
        model,
        diagnostics,
        warnings,
    } = configuration::check_with(files, known);
    Ok(Built {
        archive: model.map(|_| archive),
        diagnostics,
        warnings,
    })
}
