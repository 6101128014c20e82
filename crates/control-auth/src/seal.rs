//! Secrets that must be read again: sealed with AES-256-GCM by a key from a file.

use crate::secret::sha256;
use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::fmt;
use zeroize::Zeroizing;

/// A key that seals; 32 bytes of a key file.
#[derive(Debug)]
pub struct MasterKey {
    id: String,
    key: LessSafeKey,
}

/// The keys of the key file: the first seals, all of them open. They may be replaced while in use.
#[derive(Debug)]
pub struct Sealer {
    keys: ArcSwap<Vec<MasterKey>>,
}

/// A sealed secret, the only form that the database stores.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    /// [`MasterKey::id`] of the key that opens it.
    pub master_key: String,
    /// Nonce, ciphertext and tag in Base64-URL.
    pub text: String,
}

/// Error of sealing or opening a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// A key file without a key.
    #[error("the key file holds no key")]
    NoKey,
    /// The secret was sealed with a key that the key file does not hold.
    #[error("sealed with a key that is not in the key file")]
    UnknownKey,
    /// The bytes were changed, or belong to another row.
    #[error("the sealed bytes do not belong here")]
    Tampered,
}

impl MasterKey {
    /// A key from 32 random bytes. Its name is derived from them.
    ///
    /// # Errors
    ///
    /// [`SealError::NoKey`] if there are not 32 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, SealError> {
        let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| SealError::NoKey)?;
        let id = sha256(&[b"master key id\n", bytes].concat())
            .chars()
            .take(12)
            .collect();
        Ok(Self {
            id,
            key: LessSafeKey::new(key),
        })
    }

    /// An ID of 12 characters that reveals nothing about the key.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Sealer {
    /// `keys`: the current one first, then those that only open.
    ///
    /// # Errors
    ///
    /// [`SealError::NoKey`] if there is none.
    pub fn new(keys: Vec<MasterKey>) -> Result<Self, SealError> {
        if keys.is_empty() {
            return Err(SealError::NoKey);
        }
        Ok(Self {
            keys: ArcSwap::from_pointee(keys),
        })
    }

    /// The name of the key that seals now.
    pub fn current(&self) -> String {
        let keys = self.keys.load();
        keys.first().map_or("", MasterKey::id).to_owned()
    }

    /// Returns true if it can open secrets sealed by the key with this ID.
    pub fn holds(&self, id: &str) -> bool {
        self.keys.load().iter().any(|key| key.id == id)
    }

    /// Has the keys of `other` from now on.
    pub fn replace(&self, other: Self) {
        self.keys.store(other.keys.into_inner());
    }

    /// Seals `secret` for `place`, the name of its row; `nonce` must be random.
    ///
    /// # Errors
    ///
    /// [`SealError::NoKey`] if the secret is longer than 64 GiB.
    pub fn seal(
        &self,
        place: &str,
        nonce: [u8; NONCE_LEN],
        secret: &[u8],
    ) -> Result<Sealed, SealError> {
        let keys = self.keys.load();
        let master = keys.first().ok_or(SealError::NoKey)?;
        let mut bytes = secret.to_vec();
        let associated = Aad::from(place.as_bytes());
        master
            .key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), associated, &mut bytes)
            .map_err(|_| SealError::NoKey)?;
        Ok(Sealed {
            master_key: master.id.clone(),
            text: URL_SAFE_NO_PAD.encode([nonce.as_slice(), &bytes].concat()),
        })
    }

    /// Opens the output of [`Sealer::seal`] for the same `place`.
    ///
    /// # Errors
    ///
    /// [`SealError::UnknownKey`], or [`SealError::Tampered`] for other bytes or another place.
    pub fn open(&self, place: &str, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let Sealed { master_key, text } = sealed;
        let keys = self.keys.load();
        let master = keys.iter().find(|key| key.id == *master_key);
        let master = master.ok_or(SealError::UnknownKey)?;
        let bytes = URL_SAFE_NO_PAD.decode(text);
        let bytes = bytes.map_err(|_| SealError::Tampered)?;
        let (nonce, secret) = bytes
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(SealError::Tampered)?;
        let mut secret = Zeroizing::new(secret.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = master
            .key
            .open_in_place(nonce, Aad::from(place.as_bytes()), &mut secret)
            .map_err(|_| SealError::Tampered)?
            .len();
        secret.truncate(opened);
        Ok(secret)
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed(by {})", self.master_key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(keys: &[u8]) -> Sealer {
        let keys = keys
            .iter()
            .map(|byte| MasterKey::new(&[*byte; 32]).unwrap());
        Sealer::new(keys.collect()).unwrap()
    }

    #[test]
    fn a_secret_opens_in_its_own_place_only() {
        let sealer = sealer(&[1]);
        let sealed = sealer.seal("row 1", [9; 12], b"private").unwrap();
        assert_eq!(*sealer.open("row 1", &sealed).unwrap(), b"private");
        assert_eq!(sealer.open("row 2", &sealed), Err(SealError::Tampered));
        let text = format!("A{}", sealed.text);
        let changed = Sealed { text, ..sealed };
        assert_eq!(sealer.open("row 1", &changed), Err(SealError::Tampered));
    }

    #[test]
    fn new_secrets_are_sealed_with_the_new_key() {
        let used = sealer(&[1]);
        let old = used.seal("row", [9; 12], b"private").unwrap();
        used.replace(sealer(&[2, 1]));
        let new = used.seal("row", [9; 12], b"private").unwrap();
        assert_ne!(new.master_key, old.master_key);
        assert!(used.open("row", &old).is_ok());
        assert!(used.open("row", &new).is_ok());
    }

    #[test]
    fn an_older_key_opens_and_a_lost_key_does_not() {
        let sealed = sealer(&[1]).seal("row", [9; 12], b"private").unwrap();
        assert_eq!(*sealer(&[2, 1]).open("row", &sealed).unwrap(), b"private");
        assert_eq!(
            sealer(&[2]).open("row", &sealed),
            Err(SealError::UnknownKey)
        );
    }
}
