//! Secrets of HTTP/3, shared by all workers of the process.

use aws_lc_rs::{hkdf, hmac};
use quinn_proto::crypto::HandshakeTokenKey;
use std::fmt;
use std::sync::Arc;

/// Length of the seed, in bytes.
pub(in crate::http3) const SEED_BYTES: usize = 32;

/// Length of the key of connection IDs, in bytes.
const ID_KEY_BYTES: usize = 16;

/// Keys of connection IDs, of stateless resets and of address validation tokens. All workers share
/// them: each may receive the answer to a packet of another worker.
#[derive(Clone)]
pub(in crate::http3) struct Http3Secrets {
    seed: [u8; SEED_BYTES],
}

impl Http3Secrets {
    pub(in crate::http3) fn new(seed: [u8; SEED_BYTES]) -> Self {
        Self { seed }
    }

    pub(in crate::http3) fn seed(&self) -> &[u8; SEED_BYTES] {
        &self.seed
    }

    /// Key of the owners in connection IDs.
    pub(in crate::http3) fn id_key(&self) -> [u8; ID_KEY_BYTES] {
        let mut key = [0; ID_KEY_BYTES];
        for (byte, from) in key.iter_mut().zip(self.derived(b"connection id").as_ref()) {
            *byte = *from;
        }
        key
    }

    /// Key of the tokens in stateless resets. [RFC 9000 §10.3]
    pub(in crate::http3) fn reset_key(&self) -> Arc<hmac::Key> {
        let tag = self.derived(b"stateless reset");
        Arc::new(hmac::Key::new(hmac::HMAC_SHA256, tag.as_ref()))
    }

    /// Key of the tokens in Retry packets. [RFC 9000 §8.1.2]
    pub(in crate::http3) fn token_key(&self) -> Arc<dyn HandshakeTokenKey> {
        let tag = self.derived(b"address validation");
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"proxyd http3");
        Arc::new(salt.extract(tag.as_ref()))
    }

    fn derived(&self, purpose: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.seed), purpose)
    }
}

impl fmt::Debug for Http3Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http3Secrets(…)")
    }
}
