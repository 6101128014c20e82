//! Credentials of the `Basic` scheme. [RFC 7617]

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::fmt;
use zeroize::Zeroizing;

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct BasicCredentials {
    /// `user:password`, wiped when dropped.
    text: Zeroizing<String>,
    /// Index of the first colon.
    colon: usize,
}

/// Returns true if a text may be the name of a user: not empty, without a colon, controls, and white space
/// at its ends, which no header field can carry.
#[must_use]
pub fn is_user_name(text: &str) -> bool {
    let is_forbidden = |c: char| c == ':' || c.is_control();
    !text.is_empty() && !text.contains(is_forbidden) && text.trim() == text
}

impl BasicCredentials {
    /// Parses the value of `Authorization`; `None` if it is of another scheme, malformed, or not UTF-8.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (scheme, encoded) = value.split_at_checked("Basic ".len())?;
        if !scheme.eq_ignore_ascii_case(b"Basic ") {
            return None;
        }
        let decoded = Zeroizing::new(BASE64.decode(encoded.trim_ascii()).ok()?);
        let text = str::from_utf8(&decoded).ok()?;
        let (user, password) = text.split_once(':')?;
        let is_valid = is_user_name(user) && !password.contains(char::is_control);
        is_valid.then(|| Self {
            colon: user.len(),
            text: Zeroizing::new(text.to_owned()),
        })
    }

    /// User name, before the first colon. [RFC 7617 §2]
    #[must_use]
    pub fn user(&self) -> &str {
        self.text.get(..self.colon).unwrap_or_default()
    }

    pub(crate) fn password(&self) -> &str {
        self.text.get(self.colon + 1..).unwrap_or_default()
    }
}

impl fmt::Debug for BasicCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BasicCredentials(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_ends_at_the_first_colon() {
        let credentials = BasicCredentials::parse(b"basic  YW5uOmE6Yg==").unwrap();
        assert_eq!((credentials.user(), credentials.password()), ("ann", "a:b"));
        let unpadded = BasicCredentials::parse(b"Basic YW5uOmE6Yg").unwrap();
        assert_eq!(unpadded, credentials);
    }

    #[test]
    fn other_values_are_not_credentials() {
        for value in [
            &b""[..],
            b"Basic",
            b"Basic ",
            b"Bearer YW5uOmE=",
            b"Basic YW5u",
            b"Basic ???",
            // `:a`, a line feed in the password, and bytes that are not UTF-8.
            b"Basic OmE=",
            b"Basic YW5uOmEKYg==",
            b"Basic YW5uOv8=",
        ] {
            assert_eq!(BasicCredentials::parse(value), None, "{value:?}");
        }
    }
}
