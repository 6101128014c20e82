//! The key of the audit log's chain.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::fmt;

/// The key of the audit log's chain, without which no entry can be forged.
#[derive(Clone)]
pub struct AuditKey(Key);

impl AuditKey {
    /// A key of 32 random bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Key::new(HMAC_SHA256, bytes))
    }

    /// HMAC-SHA256 in Base64-URL.
    pub fn authenticate(&self, bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(sign(&self.0, bytes))
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey(…)")
    }
}
