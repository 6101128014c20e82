//! A bundle: files of configuration that were checked and signed.

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

/// A bundle, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// UUID of version 7, so that bundles sort by creation.
    pub id: BundleId,
    /// Project that the bundle belongs to.
    pub tenant: Tenant,
    /// Name for its purpose; not unique.
    pub name: Name,
    /// State of the checks and of the signature.
    pub state: BundleState,
    /// Its bytes; `None` if it was rejected.
    pub archive: Option<BundleArchive>,
    /// `None` unless it was signed.
    pub signature: Option<BundleSignature>,
    /// Errors and warnings of the validator, as JSON; at most 100, so not all of them.
    pub diagnostics: String,
    /// All warnings that a policy counts; `None` for a bundle of before they were counted, and for a draft.
    pub warnings: Option<usize>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
}

/// The bytes of a bundle in the object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleArchive {
    /// SHA-256 in Base64-URL.
    pub digest: String,
    /// Number of requests.
    pub size_bytes: u64,
}

/// The signature of a bundle's digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleSignature {
    /// The key that signed.
    pub kid: SigningKeyId,
    /// Ed25519 in Base64-URL.
    pub text: String,
    /// Time of signing.
    pub signed_at: Timestamp,
}

impl Bundle {
    /// A new bundle with files that are not checked yet.
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

    /// The bundle with the archive of its files, which have no errors and so many warnings that a policy counts.
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

    /// The bundle with the errors of its files.
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

    /// The bundle with the signature of its digest.
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

    /// The digest that nodes may be ordered to run.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or unless it is signed.
    pub fn assign(&self, actor: &Actor) -> Result<&str, Refusal> {
        actor.require(Access::WRITE_BUNDLES, self.tenant)?;
        self.step(BundleEvent::Assign)?;
        let archive = self.archive.as_ref().ok_or(Refusal::NotFound)?;
        Ok(&archive.digest)
    }

    /// The bundle, taken back.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or unless it is signed.
    pub fn revoke(self, actor: &Actor, now: Timestamp) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_BUNDLES, self.tenant)?;
        let state = self.step(BundleEvent::Revoke)?;
        Ok(Self {
            state,
            revoked_at: Some(now),
            ..self
        })
    }

    /// The bundle under another name.
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

    /// Checks that a node may have the bytes: an order to it was signed while the bundle was.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] unless it is signed.
    pub fn check_delivery(&self) -> Result<(), Refusal> {
        let is_signed = self.state == BundleState::Signed;
        is_signed.then_some(()).ok_or(Refusal::NotFound)
    }

    /// The name of the archive in the object store. Bundles of the same files share it.
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

    /// The refusal of an event that requires the archive.
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
