//! Recovery codes: the second factor of a user without the authenticator, each good once.

use crate::secret::sha256;
use std::fmt;
use zeroize::Zeroizing;

/// Random bytes of a code: 80 bits need no slow hash.
const CODE_BYTES: usize = 10;
/// The alphabet of Crockford's Base32: no letters that resemble digits, and no vowels that form words.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const GROUP_CHARS: usize = 4;

/// A recovery code in clear, `xxxx-xxxx-xxxx-xxxx`; wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(Zeroizing<String>);

impl RecoveryCode {
    /// A new code from random bytes.
    pub fn new(random: [u8; CODE_BYTES]) -> Self {
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().skip(6).zip(random) {
            *to = from;
        }
        let bits = u128::from_be_bytes(bytes);
        let mut text = Zeroizing::new(String::with_capacity(19));
        for place in 0..16 {
            if place > 0 && place % GROUP_CHARS == 0 {
                text.push('-');
            }
            let index = usize::try_from(bits >> (75 - 5 * place) & 31).unwrap_or_default();
            text.push(LETTERS.get(index).copied().map_or('0', char::from));
        }
        Self(text)
    }

    /// A code typed by a person: case, spaces and hyphens are ignored, and letters that resemble
    /// digits are read as these digits.
    pub fn presented(text: &str) -> Self {
        let typed = text.chars().filter(char::is_ascii_alphanumeric);
        let mut code = Zeroizing::new(String::with_capacity(19));
        for (place, letter) in typed.take(17).enumerate() {
            if place > 0 && place % GROUP_CHARS == 0 {
                code.push('-');
            }
            code.push(match letter.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            });
        }
        Self(code)
    }

    /// The code itself, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// SHA-256 in Base64-URL, which the database stores in place of the code.
    pub fn hash(&self) -> String {
        sha256(self.0.as_bytes())
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_same_however_it_is_typed() {
        let code = RecoveryCode::new([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23]);
        assert_eq!(code.reveal(), "04hm-asw9-nf6y-y093");
        for typed in [
            "04hm-asw9-nf6y-y093",
            "04HMASW9NF6YY093",
            " o4hm asw9 nf6y yO93\n",
        ] {
            assert_eq!(RecoveryCode::presented(typed).hash(), code.hash());
        }
        for wrong in ["", "04hm-asw9-nf6y-y09", "04hm-asw9-nf6y-y0933"] {
            assert_ne!(RecoveryCode::presented(wrong).hash(), code.hash());
        }
        assert_eq!(RecoveryCode::new([255; 10]).reveal(), "zzzz-zzzz-zzzz-zzzz");
    }
}
