//! The cookie value that binds a client to a target.

use siphasher::sip::SipHasher24;
use std::fmt;
use std::hash::Hasher;

/// A key of the proxies that share an upstream, secret from clients: 128 random bits.
#[derive(Clone, Copy)]
pub struct StickyKey(pub [u8; 16]);

/// Identifies a target to a client: the target's address under a keyed hash. The address cannot be
/// derived from it, and an invented token matches no target.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StickyToken(u64);

/// Length of a cookie's value, in characters.
pub const STICKY_VALUE_BYTES: usize = 16;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl StickyKey {
    /// The key derived from `secret`: proxies with the same secret make the same tokens.
    #[must_use]
    pub fn from_secret(secret: &str) -> Self {
        let half = |salt: u64| {
            let mut hasher = SipHasher24::new_with_keys(salt, secret.len() as u64);
            hasher.write(secret.as_bytes());
            hasher.finish()
        };
        let bits = u128::from(half(1)) << 64 | u128::from(half(2));
        Self(bits.to_be_bytes())
    }
}

impl StickyToken {
    /// The token of the target at `address` of `upstream`.
    #[must_use]
    pub fn new(key: &StickyKey, upstream: &str, address: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(&key.0);
        hasher.write(&(upstream.len() as u64).to_le_bytes());
        hasher.write(upstream.as_bytes());
        hasher.write(address.as_bytes());
        Self(hasher.finish())
    }

    /// The token in a cookie's value; `None` if it is not a value of this proxy.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let digits: [u8; STICKY_VALUE_BYTES] = value.try_into().ok()?;
        let mut token = 0;
        for digit in digits {
            let place = DIGITS.iter().position(|known| *known == digit)?;
            token = token << 4 | u64::try_from(place).ok()?;
        }
        Some(Self(token))
    }

    /// The cookie's value: 16 hexadecimal digits in lower case.
    #[must_use]
    pub fn value(self) -> [u8; STICKY_VALUE_BYTES] {
        let mut value = [0; STICKY_VALUE_BYTES];
        for (place, byte) in value.iter_mut().rev().enumerate() {
            let digit = (self.0 >> (4 * place) & 15) as usize;
            *byte = DIGITS.get(digit).copied().unwrap_or(b'0');
        }
        value
    }
}

impl fmt::Debug for StickyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StickyKey(..)")
    }
}

impl fmt::Debug for StickyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StickyToken({:016x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: StickyKey = StickyKey([7; 16]);

    #[test]
    fn a_value_is_read_back_and_anything_else_is_not() {
        let token = StickyToken::new(&KEY, "api", "10.0.0.1:80");
        let value = token.value();

        assert_eq!(StickyToken::parse(&value), Some(token));
        assert_eq!(value, *format!("{:016x}", token.0).as_bytes());
        for wrong in [
            &b""[..],
            &value[1..],
            b"0123456789ABCDEF",
            b"10.0.0.1:80 oops",
        ] {
            assert_eq!(StickyToken::parse(wrong), None);
        }
    }

    #[test]
    fn one_secret_is_one_key() {
        let key = |secret: &str| StickyKey::from_secret(secret).0;

        assert_eq!(key("of all proxies"), key("of all proxies"));
        assert_ne!(key("of all proxies"), key("of another"));
        assert_ne!(key("a")[..8], key("a")[8..]);
    }

    #[test]
    fn tokens_differ_by_key_upstream_and_address() {
        let token = StickyToken::new(&KEY, "api", "a:1");

        assert_ne!(token, StickyToken::new(&StickyKey([8; 16]), "api", "a:1"));
        assert_ne!(token, StickyToken::new(&KEY, "apia", ":1"));
        assert_ne!(token, StickyToken::new(&KEY, "api", "a:2"));
        assert_eq!(format!("{KEY:?}"), "StickyKey(..)");
    }
}
