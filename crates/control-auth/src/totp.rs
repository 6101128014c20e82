//! Time-based one-time passwords (RFC 6238) with the parameters that every authenticator app supports:
//! SHA-1, 6 digits, 30 seconds.

use crate::error::AuthError;
use jiff::Timestamp;
use qrcode::QrCode;
use qrcode::render::svg;
use std::fmt;
use totp_rs::{Algorithm, Builder, Totp};
use zeroize::Zeroizing;

/// Length of a secret in bytes, as recommended by RFC 4226, section 4, for SHA-1.
pub const TOTP_SECRET_BYTES: usize = 20;
const STEP_SECS: u64 = 30;
const DIGITS: u8 = 6;
/// Accepted time steps before and after the current one (RFC 6238, section 5.2).
const SKEW_STEPS: u16 = 1;
/// Minimum width of the QR code, in pixels.
const MIN_QR_PIXELS: u32 = 240;

/// The secret that an authenticator app and the control plane share.
#[derive(Clone)]
pub struct TotpSecret(Zeroizing<[u8; TOTP_SECRET_BYTES]>);

impl TotpSecret {
    /// A new secret from random bytes.
    pub fn new(random: [u8; TOTP_SECRET_BYTES]) -> Self {
        Self(Zeroizing::new(random))
    }

    /// Restores a stored secret.
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] unless there are 20.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AuthError> {
        let bytes = bytes.try_into().map_err(|_| AuthError::Malformed)?;
        Ok(Self::new(bytes))
    }

    /// The bytes, to be sealed.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// Returns the time step of a valid `code`. `None` also if the step is not later than
    /// `last_step`, the step of the last accepted code: a code works once. Spaces are ignored,
    /// because apps display them.
    pub fn check(&self, code: &str, last_step: i64, now: Timestamp) -> Option<i64> {
        let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let seconds = u64::try_from(now.as_second()).ok()?;
        let step = self.totp().check(&code, seconds)?;
        let step = i64::try_from(step).ok()?;
        (last_step < step).then_some(step)
    }

    /// The code at a time.
    pub fn code(&self, at: Timestamp) -> String {
        let seconds = u64::try_from(at.as_second()).unwrap_or_default();
        self.totp().generate(seconds).to_string()
    }

    /// The secret in Base32 without padding (RFC 4648, section 6), for apps without a camera.
    pub fn base32(&self) -> String {
        const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        // 20 bytes are four groups of 40 bits, and each is eight letters.
        let groups = self.0.chunks(5).map(|group| {
            group
                .iter()
                .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte))
        });
        let letters =
            groups.flat_map(|bits| (0..8).map(move |place| bits >> (35 - 5 * place) & 31));
        letters
            .filter_map(|index| LETTERS.get(usize::try_from(index).ok()?))
            .map(|letter| char::from(*letter))
            .collect()
    }

    /// The content of the QR code. It contains the issuer twice, as apps expect.
    pub fn uri(&self, issuer: &str, account: &str) -> String {
        let (issuer, account) = (percent_encoded(issuer), percent_encoded(account));
        let secret = self.base32();
        format!("otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}")
    }

    /// The QR code as an SVG element without an XML declaration, dark on light in every theme.
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] if the names are too long for a QR code.
    pub fn qr_svg(&self, issuer: &str, account: &str) -> Result<String, AuthError> {
        let code = QrCode::new(self.uri(issuer, account)).map_err(|_| AuthError::Malformed)?;
        let drawn = code
            .render::<svg::Color<'_>>()
            .min_dimensions(MIN_QR_PIXELS, MIN_QR_PIXELS)
            .build();
        let element = drawn.find("<svg").and_then(|start| drawn.get(start..));
        Ok(element.unwrap_or(&drawn).to_owned())
    }

    fn totp(&self) -> Totp {
        Builder::new()
            .with_algorithm(Algorithm::SHA1)
            .with_digits(DIGITS)
            .with_skew(SKEW_STEPS)
            .with_step_duration(STEP_SECS)
            .with_secret(self.0.to_vec())
            .build_noncompliant()
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret(…)")
    }
}

fn percent_encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    /// Appendix B of RFC 6238, the last six of eight digits.
    const VECTORS: [(i64, &str); 6] = [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ];

    fn secret() -> TotpSecret {
        TotpSecret::new(*b"12345678901234567890")
    }

    #[test]
    fn codes_are_those_of_rfc_6238() {
        for (second, wanted) in VECTORS {
            let now = Timestamp::from_second(second).unwrap();
            assert_eq!(secret().code(now), wanted);
            let step = secret().check(wanted, 0, now);
            assert_eq!(step, Some(second / 30));
        }
    }

    #[test]
    fn a_code_works_once_and_one_step_early_or_late() {
        let now = Timestamp::from_second(1_111_111_110).unwrap();
        let step = 1_111_111_110 / 30;
        for (steps, found) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)] {
            let code = secret().code(now + SignedDuration::from_secs(30 * steps));
            let wanted = found.then_some(step + steps);
            assert_eq!(secret().check(&code, 0, now), wanted, "{steps}");
            assert_eq!(secret().check(&code, step + steps, now), None, "used");
        }
        let code = secret().code(now);
        let spaced = format!("{} {}", &code[..3], &code[3..]);
        assert_eq!(secret().check(&spaced, 0, now), Some(step));
        for wrong in [
            "",
            "0",
            &code[..5],
            &format!("{code}0"),
            "abcdef",
            "１２３４５６",
        ] {
            assert_eq!(secret().check(wrong, 0, now), None, "{wrong}");
        }
    }

    #[test]
    fn the_uri_has_the_names_and_the_secret() {
        assert_eq!(secret().base32(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(
            secret().uri("Edge & co", "ann@example.com"),
            "otpauth://totp/Edge%20%26%20co:ann%40example.com\
             ?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Edge%20%26%20co"
        );
        let svg = secret().qr_svg("Edge", "ann@example.com").unwrap();
        assert!(svg.starts_with("<svg"), "{svg}");
        assert!(!svg.contains("style="), "{svg}");
        assert!(TotpSecret::from_bytes(&[0; 19]).is_err());
    }
}
