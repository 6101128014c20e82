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

/// An archive being sent.
pub struct Archive {
    /// SHA-256 in Base64-URL.
    pub digest: String,
    /// Number of bytes that follow.
    pub size_bytes: u64,
    /// Bytes of the archive, compressed.
    pub bytes: ObjectBytes,
}

/// Result of verifying the stored bytes and the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The bundle as it is in the database.
    pub archive: BundleArchive,
    /// Signature as stored with the bundle.
    pub signature: BundleSignature,
    /// The signing key; a deactivated one no longer proves anything.
    pub signing_key: SigningKey,
    /// True if the stored bytes have the digest.
    pub digest_matches: bool,
    /// True if the signature is of the digest, by that key.
    pub signature_matches: bool,
    /// Error of unpacking; `None` if every file matches the manifest.
    pub fault: Option<String>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Archive({})", self.digest)
    }
}

impl Verification {
    /// Returns true if no fault was found. A signature by a deactivated key proves nothing: the key
    /// may have leaked.
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

    /// The archive of a signed bundle that a node may need. Only bundles ordered for it: a
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
        // Valid by the checks of the release that signed it.
        let refused = Refusal::invalid("before", "is refused by this version of the checks");
        Ok(compared.await?.ok_or(refused)?)
    }

    /// The bundle that the field `before` names.
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

    /// Compares the contents of two bundles; `None` if the checks of this version refuse one of
    /// them. Both are read and unpacked within one permit for heavy work: waiting comparisons hold
    /// no resources.
    pub(crate) async fn compare_contents<T: Send + 'static>(
        &self,
        before: &Bundle,
        after: &Bundle,
        compare: impl FnOnce(CheckedFiles<'_>, CheckedFiles<'_>) -> T + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let permit = self.heavy_permits.take(after.tenant.org.0).await;
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

    /// Compares files with an older bundle; `None` if the checks of this version refuse one of them.
    pub(crate) async fn compare_files(
        &self,
        before: &Bundle,
        after: &Arc<Files>,
    ) -> Result<Option<Comparison>, Error> {
        let permit = self.heavy_permits.take(before.tenant.org.0).await;
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

    /// Reads the archives of bundles made before certificates were noted, and notes their certificates.
    /// One that cannot be read does not stop the rest.
    ///
    /// # Errors
    ///
    /// The [`Error`] of the last one that cannot be read.
    pub(crate) async fn list_certificates(&self, bundles: &[BundleId]) -> Result<(), Error> {
        let mut outcome = Ok(());
        for bundle in bundles {
            // Nodes that reconnect together wait for one reader, and find its result.
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

    /// The files of a bundle, compared with its digest and its manifest.
    pub(crate) async fn contents(&self, bundle: &Bundle) -> Result<Contents, Error> {
        let permit = self.heavy_permits.take(bundle.tenant.org.0).await;
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

/// `None` if the checks refuse one of them.
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

/// Frees the archive as soon as it is unpacked: a comparison has two.
fn unpack_verified(archive: Vec<u8>, wanted: &str) -> Result<Contents, BundleError> {
    let same = digest(&archive) == wanted;
    same.then_some(()).ok_or(BundleError::Digest)?;
    let contents = unpack(&archive);
    drop(archive);
    contents
}
