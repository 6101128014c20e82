//! Archives of bundles: download, verification, inspection, comparison.

use crate::app::App;
use crate::bundle::find;
use crate::call::Call;
use crate::configuration::diff::{CheckedFiles, Comparison, compare};
use crate::configuration::{Checked, check};
use crate::error::Error;
use control_bundle::{
    BundleError, Contents, Files, MAX_ARCHIVE_BYTES, certificates, digest, unpack, verify,
};
use control_domain::{Access, Actor, Bundle, BundleArchive, BundleSignature, Refusal, SigningKey};
use control_store::{ObjectBytes, ObjectError};
use control_wire::{BundleId, NodeId, ProjectId};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// A stored archive, streamed to a client.
pub struct Archive {
    /// SHA-256 of the archive, Base64-URL.
    pub digest: String,
    /// Size of the compressed archive.
    pub size_bytes: u64,
    /// The compressed archive, read in chunks.
    pub bytes: ObjectBytes,
}

/// Result of verifying the stored bytes and the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Archive's digest and size as recorded in the database.
    pub archive: BundleArchive,
    /// Signature as stored with the bundle.
    pub signature: BundleSignature,
    /// The key that signed; signatures of a deactivated key are not trusted.
    pub signing_key: SigningKey,
    /// True if the stored bytes have the recorded digest.
    pub digest_matches: bool,
    /// True if the signature of the digest verifies by the key.
    pub signature_matches: bool,
    /// Error of unpacking; `None` if all files match the manifest.
    pub fault: Option<String>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Archive({})", self.digest)
    }
}

impl Verification {
    /// Returns true if the archive has no fault and its key is not deactivated, since a deactivated
    /// key may have leaked.
    pub fn is_valid(&self) -> bool {
        let is_trusted = self.signing_key.deactivated_at.is_none();
        is_trusted && self.digest_matches && self.signature_matches && self.fault.is_none()
    }
}

impl App {
    /// The archive of a bundle.
    pub async fn download_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
    ) -> Result<Archive, Error> {
        let found = self.bundle(call, project, id).await?;
        self.open_archive(&found.value).await
    }

    /// The archive of a signed bundle, for a node. Only bundles that were ordered for the node: a
    /// compromised node must not read further ones.
    pub async fn node_archive(
        &self,
        call: &Call,
        node: NodeId,
        bundle: BundleId,
    ) -> Result<Archive, Error> {
        call.actor.holds(Access::OwnNode)?;
        let Actor::Node { id, tenant, .. } = &call.actor else {
            return Err(Refusal::WrongCredential.into());
        };
        let project = tenant.project.filter(|_| *id == node);
        let project = project.ok_or(Refusal::NotFound)?;
        let mut tx = self.store.read().await?;
        if !tx.may_need_bundle(node, bundle).await? {
            return Err(Refusal::NotFound.into());
        }
        let found = find(&mut tx, project, bundle).await?;
        call.actor.require(Access::OwnNode, found.value.tenant)?;
        found.value.check_delivery()?;
        self.open_archive(&found.value).await
    }

    /// The bill of materials in the archive.
    pub async fn bundle_sbom(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
    ) -> Result<Value, Error> {
        let found = self.bundle(call, project, id).await?;
        Ok(self.contents(&found.value).await?.sbom)
    }

    /// Verifies the stored bytes and the signature.
    pub async fn verify_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
    ) -> Result<Verification, Error> {
        let bundle = self.bundle(call, project, id).await?.value;
        let (Some(archive), Some(signature)) = (bundle.archive.clone(), bundle.signature.clone())
        else {
            return Err(bundle.without_archive("be verified").into());
        };
        let key = self.store.read().await?.signing_key(signature.kid).await?;
        let signing_key = key.ok_or(Refusal::NotFound)?.value;
        let bytes = self.archive_bytes(&bundle).await;
        let is_lost = matches!(
            bytes,
            Err(Error::Object(ObjectError::Missing | ObjectError::TooLarge))
        );
        let bytes = if is_lost { Vec::new() } else { bytes? };
        let check = move || (digest(&bytes), unpack(&bytes).err());
        let (found, fault) = self.heavy(bundle.tenant.org, check).await?;
        let signed = verify(
            &archive.digest,
            signature.kid,
            &signing_key.public_key,
            &signature.text,
        );
        Ok(Verification {
            digest_matches: found == archive.digest,
            signature_matches: signed.is_ok(),
            fault: fault.map(|fault| fault.to_string()),
            archive,
            signature,
            signing_key,
        })
    }

    /// Difference between two bundles of a project.
    pub async fn compare_bundles(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
        before: BundleId,
    ) -> Result<Comparison, Error> {
        let new = self.bundle(call, project, id).await?;
        let old = self.older_bundle(call, project, before).await?;
        let compared = self.compare_contents(&old, &new.value, compare);
        // The bundle passed the checks of the release that signed it.
        let refused = Refusal::invalid("before", "is refused by this version of the checks");
        Ok(compared.await?.ok_or(refused)?)
    }

    /// The older bundle of a comparison, which the request's field `before` names.
    pub(crate) async fn older_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
    ) -> Result<Bundle, Error> {
        match self.bundle(call, project, id).await {
            Err(Error::Refused(Refusal::NotFound)) => {
                Err(Refusal::invalid("before", "does not exist in the project").into())
            }
            found => Ok(found?.value),
        }
    }

    /// Compares two bundles; `None` if the checks of this release refuse one of them. Both archives
    /// are read after the permit for heavy work is acquired, so waiting comparisons hold no memory.
    pub(crate) async fn compare_contents<T: Send + 'static>(
        &self,
        before: &Bundle,
        after: &Bundle,
        compare: impl FnOnce(CheckedFiles<'_>, CheckedFiles<'_>) -> T + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let permit = self.heavy_permits.acquire(after.tenant.org.0).await;
        let (old, old_digest) = self.archive_and_digest(before).await?;
        let (new, new_digest) = self.archive_and_digest(after).await?;
        let compared = spawn_blocking(move || {
            let old = unpack_verified(old, &old_digest)?.files;
            let new = unpack_verified(new, &new_digest)?.files;
            let compared = checked_and_compared(&old, &new, compare);
            drop(permit);
            Ok(compared)
        });
        let compared = compared.await.map_err(|_| Error::Stopped)?;
        compared.map_err(Error::Archive)
    }

    /// Compares files with an older bundle; `None` if the checks of this release refuse either.
    pub(crate) async fn compare_files(
        &self,
        before: &Bundle,
        after: &Arc<Files>,
    ) -> Result<Option<Comparison>, Error> {
        let permit = self.heavy_permits.acquire(before.tenant.org.0).await;
        let (old, old_digest) = self.archive_and_digest(before).await?;
        let new = Arc::clone(after);
        let compared = spawn_blocking(move || {
            let old = unpack_verified(old, &old_digest)?.files;
            let compared = checked_and_compared(&old, &new, compare);
            drop(permit);
            Ok(compared)
        });
        let compared = compared.await.map_err(|_| Error::Stopped)?;
        compared.map_err(Error::Archive)
    }

    /// Records the certificates of bundles that an earlier release stored without a list of them.
    /// An unreadable archive does not stop the rest.
    ///
    /// # Errors
    ///
    /// The [`Error`] of the last archive that could not be read.
    pub(crate) async fn list_certificates(&self, bundles: &[BundleId]) -> Result<(), Error> {
        let mut outcome = Ok(());
        for bundle in bundles {
            // Of many nodes that reconnect together, one reads the archive, and the rest find its
            // result.
            let _turn = self.listing.lock().await;
            let mut tx = self.store.read().await?;
            if tx.has_listed_certificates(*bundle).await? {
                continue;
            }
            let found = tx.bundle(*bundle).await?.ok_or(Refusal::NotFound)?;
            drop(tx);
            match self.contents(&found.value).await {
                Ok(contents) => {
                    let mut tx = self.store.begin().await?;
                    let named = certificates(&contents.files);
                    tx.list_certificates(*bundle, &named).await?;
                    tx.commit().await?;
                }
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    async fn open_archive(&self, bundle: &Bundle) -> Result<Archive, Error> {
        let Some(BundleArchive { digest, .. }) = &bundle.archive else {
            return Err(bundle.without_archive("be downloaded").into());
        };
        let (size_bytes, bytes) = self.objects.stream(&bundle.archive_object()?).await?;
        Ok(Archive {
            digest: digest.clone(),
            size_bytes,
            bytes,
        })
    }

    /// Reads and unpacks an archive; verifies its digest and its manifest.
    pub(crate) async fn contents(&self, bundle: &Bundle) -> Result<Contents, Error> {
        let permit = self.heavy_permits.acquire(bundle.tenant.org.0).await;
        let (bytes, wanted) = self.archive_and_digest(bundle).await?;
        let opened = spawn_blocking(move || {
            let opened = unpack_verified(bytes, &wanted);
            drop(permit);
            opened
        });
        let opened = opened.await.map_err(|_| Error::Stopped)?;
        opened.map_err(Error::Archive)
    }

    async fn archive_and_digest(&self, bundle: &Bundle) -> Result<(Vec<u8>, String), Error> {
        let Some(BundleArchive { digest, .. }) = bundle.archive.clone() else {
            return Err(bundle.without_archive("be unpacked").into());
        };
        Ok((self.archive_bytes(bundle).await?, digest))
    }

    async fn archive_bytes(&self, bundle: &Bundle) -> Result<Vec<u8>, Error> {
        let object = bundle.archive_object()?;
        Ok(self.objects.get(&object, MAX_ARCHIVE_BYTES).await?)
    }
}

/// Checks and compares two sets of files; `None` if the checks refuse either.
fn checked_and_compared<T>(
    old: &Files,
    new: &Files,
    compare: impl FnOnce(CheckedFiles<'_>, CheckedFiles<'_>) -> T,
) -> Option<T> {
    let Checked { model: before, .. } = check(old);
    let Checked { model: after, .. } = check(new);
    let before = CheckedFiles {
        model: before.as_ref()?,
        files: old,
    };
    let after = CheckedFiles {
        model: after.as_ref()?,
        files: new,
    };
    Some(compare(before, after))
}

/// Verifies and unpacks an archive. Frees its bytes before returning, because a comparison holds
/// two archives.
fn unpack_verified(archive: Vec<u8>, wanted: &str) -> Result<Contents, BundleError> {
    let same = digest(&archive) == wanted;
    same.then_some(()).ok_or(BundleError::Digest)?;
    let contents = unpack(&archive);
    drop(archive);
    contents
}
