//! Random secrets: shown once, stored as a hash.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::fmt;
use zeroize::Zeroizing;

/// 32 random bytes in Base64-URL: an API key, a node key, a session, a one-time token.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A new secret from random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(random)))
    }

    /// A secret as a client presents it; any text.
    pub fn presented(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The secret itself, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// SHA-256 of the text in Base64-URL, which the database stores in place of the secret.
    pub fn hash(&self) -> String {
        sha256(self.0.as_bytes())
    }

    /// The token of forms that a browser with this secret in its cookie sends: a page of another site cannot read it,
    /// and the secret does not follow from it.
    pub fn form_token(&self) -> String {
        sha256(&[b"csrf", self.0.as_bytes()].concat())
    }

    /// Returns true if a form has the token of this secret; compared in constant time.
    pub fn matches_form_token(&self, presented: &str) -> bool {
        let token = self.form_token();
        verify_slices_are_equal(token.as_bytes(), presented.as_bytes()).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// SHA-256 in Base64-URL without padding: 43 characters.
pub fn sha256(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, bytes))
}

/// SHA-256 in hexadecimal, as `sha256sum` prints it: 64 characters.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    let digits = digest
        .as_ref()
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_neither_stored_nor_logged_in_plaintext() {
        let secret = Secret::new([1; 32]);
        assert!(!secret.hash().contains(secret.reveal()));
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }

    #[test]
    fn a_form_has_the_token_of_its_own_session() {
        let (own, other) = (Secret::new([1; 32]), Secret::new([2; 32]));
        assert!(own.matches_form_token(&own.form_token()));
        assert_ne!(own.form_token(), own.hash());
        for wrong in [other.form_token(), own.hash(), String::new()] {
            assert!(!own.matches_form_token(&wrong));
        }
    }

    #[test]
    fn the_hash_is_sha256_of_the_text() {
        // RFC 6234, test vector "abc".
        let abc = "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0";
        assert_eq!(Secret::presented("abc").hash(), abc);
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), hex);
    }
}
