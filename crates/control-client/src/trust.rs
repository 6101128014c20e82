//! Signing keys that a node trusts: pinned at enrolment, later changed only by endorsement.

use control_auth::PublicKey;
use control_wire::{JsonWebKey, OrgId, SigningKeyId, endorsed_text};
use serde::{Deserialize, Serialize};

/// Maximum number of keys of an organization; the control plane has the same limit.
const MAX_KEYS: usize = 16;
/// Maximum number of stored retired keys; the oldest are dropped first.
const MAX_RETIRED: usize = 64;
/// Maximum number of deactivated keys in a response.
const MAX_ENDED: usize = 64;

/// Trusted keys of one organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    org: OrgId,
    pinned: Vec<PinnedKey>,
    /// Keys that were pinned and are no longer published; never accepted again.
    retired: Vec<SigningKeyId>,
}

/// A key trusted to sign orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedKey {
    /// Identifier of the key, `kid` in orders and in the key set.
    pub kid: SigningKeyId,
    /// Public key: 32 bytes, Base64-URL.
    pub x: String,
}

impl Trust {
    /// Pins the keys received at enrolment, the only time when keys are trusted without proof.
    pub fn pin(org: OrgId, keys: &[JsonWebKey]) -> Self {
        let pinned = keys.iter().take(MAX_KEYS).map(|key| PinnedKey {
            kid: key.kid,
            x: key.x.clone(),
        });
        Self {
            org,
            pinned: pinned.collect(),
            retired: Vec::new(),
        }
    }

    /// Keys that may sign orders.
    pub fn pinned(&self) -> &[PinnedKey] {
        &self.pinned
    }

    /// Public key with the identifier `kid`, if it is pinned.
    pub fn key(&self, kid: SigningKeyId) -> Option<PublicKey> {
        let found = self.pinned.iter().find(|key| key.kid == kid)?;
        Some(PublicKey::from_text(found.x.clone()))
    }

    /// Applies the organization's published keys: pins keys that a pinned key has endorsed, and
    /// retires pinned keys that are missing. A set without any trusted key changes nothing, so that
    /// an impostor of the control plane cannot remove the last key.
    ///
    /// Keys in `ended` are never pinned, but their endorsements count: a node that was offline
    /// during several rotations finds the current key through them. Returns true if something
    /// changed.
    pub fn update(&mut self, published: &[JsonWebKey], ended: &[JsonWebKey]) -> bool {
        let before = self.clone();
        let published = published.get(..MAX_KEYS).unwrap_or(published);
        let ended = ended.get(..MAX_ENDED).unwrap_or(ended);
        let mut links = Vec::new();
        // Endorsed keys may endorse further ones: repeats until a round finds none.
        while let Some(key) = self.find_endorsed(ended, &links) {
            links.push(key);
        }
        while let Some(key) = self.find_endorsed(published, &links) {
            self.pinned.push(key);
        }
        let listed = |key: &PinnedKey| {
            let same = |other: &JsonWebKey| other.kid == key.kid && other.x == key.x;
            published.iter().any(same)
        };
        if self.pinned.iter().any(listed) {
            let gone = self.pinned.iter().filter(|key| !listed(key));
            self.retired.extend(gone.map(|key| key.kid));
            self.pinned.retain(listed);
        }
        let surplus = self.retired.len().saturating_sub(MAX_RETIRED);
        self.retired.drain(..surplus);
        *self != before
    }

    /// A key that is not known yet, endorsed by a pinned or linked key.
    fn find_endorsed(&self, keys: &[JsonWebKey], links: &[PinnedKey]) -> Option<PinnedKey> {
        let found = keys.iter().find(|key| self.is_endorsed(key, links))?;
        Some(PinnedKey {
            kid: found.kid,
            x: found.x.clone(),
        })
    }

    fn is_endorsed(&self, key: &JsonWebKey, links: &[PinnedKey]) -> bool {
        let mut known = self.pinned.iter().chain(links);
        if known.any(|known| known.kid == key.kid) || self.retired.contains(&key.kid) {
            return false;
        }
        let (Some(by), Some(endorsement)) = (key.endorsed_by, &key.endorsement) else {
            return false;
        };
        let text = endorsed_text(self.org, key.kid, &key.x);
        let mut endorsers = self.pinned.iter().chain(links);
        let endorser = endorsers.find(|endorser| endorser.kid == by);
        endorser.is_some_and(|endorser| {
            let endorser = PublicKey::from_text(endorser.x.clone());
            endorser.verify(text.as_bytes(), endorsement).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_auth::SigningPair;
    use uuid::Uuid;

    const ORG: OrgId = OrgId(Uuid::from_u128(1));

    fn pair(number: u8) -> SigningPair {
        SigningPair::new(&[number; 32]).unwrap()
    }

    fn kid(number: u8) -> SigningKeyId {
        SigningKeyId(Uuid::from_u128(number.into()))
    }

    fn key(number: u8) -> JsonWebKey {
        JsonWebKey::ed25519(kid(number), pair(number).public().as_str().to_owned())
    }

    fn endorsed(number: u8, by: u8) -> JsonWebKey {
        let mut key = key(number);
        let text = endorsed_text(ORG, key.kid, &key.x);
        key.endorsement = Some(pair(by).sign(text.as_bytes()));
        key.endorsed_by = Some(kid(by));
        key
    }

    fn believed(trust: &Trust) -> Vec<SigningKeyId> {
        trust.pinned().iter().map(|key| key.kid).collect()
    }

    #[test]
    fn endorsed_keys_are_pinned_in_a_chain() {
        let mut trust = Trust::pin(ORG, &[key(1)]);
        assert!(trust.update(&[endorsed(3, 2), endorsed(2, 1), key(1)], &[]));
        assert_eq!(believed(&trust), [kid(1), kid(2), kid(3)]);
        assert!(!trust.update(&[key(1), endorsed(2, 1), endorsed(3, 2)], &[]));
    }

    #[test]
    fn a_key_without_a_true_endorsement_is_not_accepted() {
        let mut forged = endorsed(2, 1);
        forged.endorsement = endorsed(3, 1).endorsement;
        let mut foreign = endorsed(2, 4);
        foreign.endorsed_by = Some(kid(1));
        for key_set in [forged, foreign, key(2), endorsed(2, 4)] {
            let mut trust = Trust::pin(ORG, &[key(1)]);
            assert!(!trust.update(&[key(1), key_set], &[]));
            assert_eq!(believed(&trust), [kid(1)]);
        }
    }

    #[test]
    fn a_key_that_is_no_longer_published_is_never_accepted_again() {
        let mut trust = Trust::pin(ORG, &[key(1)]);
        assert!(trust.update(&[endorsed(2, 1)], &[]));
        assert_eq!(believed(&trust), [kid(2)]);
        assert!(!trust.update(&[endorsed(2, 1), endorsed(1, 2), endorsed(3, 1)], &[]));
        assert_eq!(believed(&trust), [kid(2)]);
    }

    #[test]
    fn a_set_without_a_believable_key_changes_nothing() {
        let mut trust = Trust::pin(ORG, &[key(1)]);
        let other_x = JsonWebKey::ed25519(kid(1), pair(9).public().as_str().to_owned());
        for published in [vec![], vec![key(2)], vec![other_x]] {
            assert!(!trust.update(&published, &[]));
            assert_eq!(believed(&trust), [kid(1)]);
        }
    }

    #[test]
    fn a_node_that_was_offline_follows_keys_that_ended_meanwhile() {
        let mut trust = Trust::pin(ORG, &[key(1)]);
        let ended = [endorsed(3, 2), endorsed(2, 1), key(1)];
        assert!(trust.update(&[endorsed(4, 3)], &ended));
        assert_eq!(believed(&trust), [kid(4)]);
        // Ended keys are not pinned, and neither is a key after a gap in the chain.
        let mut trust = Trust::pin(ORG, &[key(1)]);
        assert!(!trust.update(&[endorsed(4, 3)], &[endorsed(3, 2), key(1)]));
        assert!(!trust.update(&[key(4)], &ended));
        assert_eq!(believed(&trust), [kid(1)]);
        // A pinned key that ended no longer endorses.
        let mut trust = Trust::pin(ORG, &[key(1)]);
        assert!(trust.update(&[endorsed(2, 1)], &[key(1)]));
        assert!(!trust.update(&[endorsed(3, 1), endorsed(2, 1)], &[key(1)]));
        assert_eq!(believed(&trust), [kid(2)]);
    }
}
