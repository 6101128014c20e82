//! Pins of public keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::str::FromStr;

/// SHA-256 of a public key: of its `SubjectPublicKeyInfo` in DER. [RFC 7469 §2.4]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyPin(pub [u8; 32]);

impl FromStr for KeyPin {
    type Err = &'static str;

    /// Parses 44 characters of base64, with padding.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let bytes = STANDARD.decode(text);
        let bytes = bytes.map_err(|_| "44 characters of base64, with the `=` at its end")?;
        let digest = <[u8; 32]>::try_from(bytes);
        digest
            .map(Self)
            .map_err(|_| "a SHA-256 has 32 bytes, 44 characters in base64")
    }
}

impl fmt::Display for KeyPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for KeyPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPin({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_the_base64_of_32_bytes() {
        let text = "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM=";
        let pin: KeyPin = text.parse().unwrap();
        assert_eq!(pin.to_string(), text);
        for wrong in [
            "",
            "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM",
            "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZ",
            "77aab346ef7338409bf7451ecf6ef15a5b4db23d1ed4c77b1a461891 5a195a63",
        ] {
            assert!(wrong.parse::<KeyPin>().is_err(), "{wrong}");
        }
    }
}
