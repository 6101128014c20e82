//! An organization's signing keys, for bundles, orders and tokens.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Tenant};
use crate::machine::{Transition, next_state};
use crate::named::named;
use control_auth::PublicKey;
use control_wire::{OrgId, SecretId, SigningKeyId};
use jiff::Timestamp;

/// Maximum number of keys of an organization that verify: every node stores all of them.
const MAX_VERIFYING: usize = 16;

named! {
    /// Uses of a signing key.
    #[schema(as = SigningKeyStateName)]
    SigningKeyState {
        /// Published, so that nodes receive it before it signs.
        Standby = "standby",
        /// Signs and verifies; one per organization.
        Active = "active",
        /// Verifies its earlier signatures; does not sign.
        Retired = "retired",
        /// Neither signs nor verifies.
        Deactivated = "deactivated",
    }
}

named! {
    /// Events of a signing key.
    SigningKeyEvent {
        /// A rotation makes it the signing key.
        Activate = "activate",
        /// A rotation makes another key the signing key.
        Retire = "retire",
        /// Refuses its signatures from now on.
        Deactivate = "deactivate",
    }
}

use SigningKeyEvent::{Activate, Deactivate, Retire};
use SigningKeyState::{Active, Deactivated, Retired, Standby};

/// Transitions of a signing key. The active key cannot be deactivated before a rotation, so an
/// organization can always sign.
pub const SIGNING_KEY_TRANSITIONS: &[Transition<SigningKeyState, SigningKeyEvent>] = &[
    Transition::new(Standby, Activate, Active),
    Transition::new(Active, Retire, Retired),
    Transition::new(Standby, Deactivate, Deactivated),
    Transition::new(Retired, Deactivate, Deactivated),
];

/// A signing key; its private half is a sealed secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey {
    /// Identifier of the key, `kid` in tokens.
    pub id: SigningKeyId,
    /// Organization of the bundles and orders that the key signs.
    pub org: OrgId,
    /// State: whether the key signs, only verifies, or neither.
    pub state: SigningKeyState,
    /// Published half of the key pair.
    pub public_key: PublicKey,
    /// Sealed private half of the key pair.
    pub secret: SecretId,
    /// Key that endorsed this one, and its signature; `None` for an organization's first key.
    pub endorsement: Option<(SigningKeyId, String)>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of deactivation; the key's signatures are refused from then on.
    pub deactivated_at: Option<Timestamp>,
}

impl SigningKey {
    /// Checks that another key may be created for `org`, which has `verifying` keys in use.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if there are 16 already.
    pub fn check_create(actor: &Actor, org: OrgId, verifying: usize) -> Result<(), Refusal> {
        actor.require(Access::CONTROL, Tenant::org(org))?;
        let full = MAX_VERIFYING <= verifying;
        let refusal = Refusal::InUse("16 signing keys that are not deactivated");
        (!full).then_some(()).ok_or(refusal)
    }

    /// Makes `next` the active key; returns it, and the previously active key, which is retired.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if a key is in the wrong state.
    pub fn rotate(actor: &Actor, next: Self, active: Self) -> Result<(Self, Self), Refusal> {
        actor.require(Access::CONTROL, Tenant::org(active.org))?;
        Ok((next.step(Activate)?, active.step(Retire)?))
    }

    /// Deactivates the key: its signatures are refused from now on.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if the key is active or already deactivated.
    pub fn deactivate(self, actor: &Actor, now: Timestamp) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, Tenant::org(self.org))?;
        Ok(Self {
            deactivated_at: Some(now),
            ..self.step(Deactivate)?
        })
    }

    /// Returns true if signatures by the key are accepted.
    pub fn verifies(&self) -> bool {
        self.state != Deactivated
    }

    fn step(self, event: SigningKeyEvent) -> Result<Self, Refusal> {
        let next = next_state(SIGNING_KEY_TRANSITIONS, self.state, event);
        let state = next.ok_or(Refusal::WrongState {
            noun: "a signing key",
            state: self.state.name(),
            event: match event {
                Activate => "be activated",
                Retire => "be retired",
                Deactivate => "be deactivated",
            },
        })?;
        Ok(Self { state, ..self })
    }
}
