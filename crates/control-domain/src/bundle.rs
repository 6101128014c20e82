//! A bundle: configuration files that are checked and signed as a unit.

pub(crate) mod signing_key;

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Tenant};
use crate::machine::{Transition, next_state};
use crate::named::named;
use crate::text::Name;
use control_wire::{BundleId, SigningKeyId};
use jiff::Timestamp;

named! {
    /// State of a bundle.
    #[schema(as = BundleStateName)]
    BundleState {
        /// Its files are not checked yet.
        Draft = "draft",
        /// Its files are a configuration without errors.
        Validated = "validated",
        /// The files have errors, listed as diagnostics.
        Rejected = "rejected",
        /// Nodes may be ordered to run it.
        Signed = "signed",
        /// It may no longer be ordered.
        Revoked = "revoked",
    }
}

named! {
    /// Events of a bundle.
    BundleEvent {
        /// The configuration has no errors.
        Validate = "be validated",
        /// The configuration has errors.
        Reject = "be rejected",
        /// The organization's key signs its digest.
        Sign = "be signed",
        /// An operator revokes it.
        Revoke = "be revoked",
        /// A node is ordered to run it.
        Assign = "be assigned",
    }
}

/// Transitions of a bundle.
pub const BUNDLE_TRANSITIONS: &[Transition<BundleState, BundleEvent>] = &[
    Transition::new(
        BundleState::Draft,
        BundleEvent::Validate,
        BundleState::Validated,
    ),
    Transition::new(
        BundleState::Draft,
        BundleEvent::Reject,
        BundleState::Rejected,
    ),
    Transition::new(
        BundleState::Validated,
        BundleEvent::Sign,
        BundleState::Signed,
    ),
    Transition::new(
        BundleState::Signed,
        BundleEvent::Assign,
        BundleState::Signed,
    ),
    Transition::new(
        BundleState::Signed,
        BundleEvent::Revoke,
        BundleState::Revoked,
    ),
];

/// A bundle, without its archive's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// UUID of version 7, which sorts by creation.
    pub id: BundleId,
    /// Project that the bundle belongs to.
    pub tenant: Tenant,
    /// Name that says what the bundle is for; not unique.
    pub name: Name,
    /// State of the checks and of the signature.
    pub state: BundleState,
    /// The stored archive; `None` if the bundle was rejected.
    pub archive: Option<BundleArchive>,
    /// `None` until the bundle is signed.
    pub signature: Option<BundleSignature>,
    /// Errors and warnings as JSON; at most 100, so the list may be incomplete.
    pub diagnostics: String,
    /// Number of warnings that a policy counts; `None` for a draft, and for bundles from before
    /// warnings were counted.
    pub warnings: Option<usize>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
}

/// Archive of a bundle in the object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleArchive {
    /// SHA-256 of the archive, Base64-URL.
    pub digest: String,
    /// Size of the archive.
    pub size_bytes: u64,
}

/// The signature of a bundle's digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleSignature {
    /// The key that signed.
    pub kid: SigningKeyId,
    /// Ed25519 signature, Base64-URL.
    pub text: String,
    /// Time of signing.
    pub signed_at: Timestamp,
}

impl Bundle {
    /// Creates a draft; its files are not checked yet.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad name.
    pub fn create(
        actor: &Actor,
        tenant: Tenant,
        id: BundleId,
        name: &str,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_BUNDLES, tenant)?;
        Ok(Self {
            id,
            tenant,
            name: Name::parse("name", name)?,
            state: BundleState::Draft,
            archive: None,
            signature: None,
            diagnostics: String::new(),
            warnings: None,
            created_at: now,
            revoked_at: None,
        })
    }

    /// Records the archive of files without errors, and the number of warnings that a policy
    /// counts.
    ///
    /// # Errors
    ///
    /// [`Refusal::WrongState`] unless it is a draft.
    pub fn validate(
        self,
        archive: BundleArchive,
        diagnostics: String,
        warnings: usize,
    ) -> Result<Self, Refusal> {
        let state = self.step(BundleEvent::Validate)?;
        Ok(Self {
            state,
            archive: Some(archive),
            diagnostics,
            warnings: Some(warnings),
            ..self
        })
    }

    /// Records the errors of the files.
    ///
    /// # Errors
    ///
    /// [`Refusal::WrongState`] unless it is a draft.
    pub fn reject(self, diagnostics: String) -> Result<Self, Refusal> {
        let state = self.step(BundleEvent::Reject)?;
        Ok(Self {
            state,
            diagnostics,
            ..self
        })
    }

    /// Records the signature of the archive's digest.
    ///
    /// # Errors
    ///
    /// [`Refusal::WrongState`] unless it was validated.
    pub fn sign(self, signature: BundleSignature) -> Result<Self, Refusal> {
        let state = self.step(BundleEvent::Sign)?;
        Ok(Self {
            state,
            signature: Some(signature),
            ..self
        })
    }

    /// Digest for orders of the bundle.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if the bundle is not signed.
    pub fn assign(&self, actor: &Actor) -> Result<&str, Refusal> {
        actor.require(Access::WRITE_BUNDLES, self.tenant)?;
        self.step(BundleEvent::Assign)?;
        let archive = self.archive.as_ref().ok_or(Refusal::NotFound)?;
        Ok(&archive.digest)
    }

    /// Revokes the bundle.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if the bundle is not signed.
    pub fn revoke(self, actor: &Actor, now: Timestamp) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_BUNDLES, self.tenant)?;
        let state = self.step(BundleEvent::Revoke)?;
        Ok(Self {
            state,
            revoked_at: Some(now),
            ..self
        })
    }

    /// Renames the bundle.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad name.
    pub fn rename(self, actor: &Actor, name: &str) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_BUNDLES, self.tenant)?;
        let name = Name::parse("name", name)?;
        Ok(Self { name, ..self })
    }

    /// Checks that the actor may delete it.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or while nodes or rollouts need it.
    pub fn check_delete(&self, actor: &Actor, is_used: bool) -> Result<(), Refusal> {
        actor.require(Access::WRITE_BUNDLES, self.tenant)?;
        let used = Refusal::InUse("nodes or rollouts that need it");
        (!is_used).then_some(()).ok_or(used)
    }

    /// Checks that the archive may be delivered to nodes.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] if the bundle is not signed.
    pub fn check_delivery(&self) -> Result<(), Refusal> {
        let is_signed = self.state == BundleState::Signed;
        is_signed.then_some(()).ok_or(Refusal::NotFound)
    }

    /// Name of the archive in the object store; bundles with the same files share it.
    ///
    /// # Errors
    ///
    /// [`Refusal::WrongState`] for a bundle without an archive.
    pub fn archive_object(&self) -> Result<String, Refusal> {
        let archive = self.archive.as_ref();
        let archive = archive.ok_or_else(|| self.without_archive("be unpacked"))?;
        let org = self.tenant.org;
        Ok(format!("bundles/{org}/{}.tar.zst", archive.digest))
    }

    /// Refusal of an event that needs the archive.
    pub fn without_archive(&self, event: &'static str) -> Refusal {
        Refusal::WrongState {
            noun: "a bundle",
            state: self.state.name(),
            event,
        }
    }

    fn step(&self, event: BundleEvent) -> Result<BundleState, Refusal> {
        let next = next_state(BUNDLE_TRANSITIONS, self.state, event);
        next.ok_or(Refusal::WrongState {
            noun: "a bundle",
            state: self.state.name(),
            event: event.name(),
        })
    }
}
