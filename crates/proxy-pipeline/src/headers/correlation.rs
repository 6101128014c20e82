//! Correlation IDs, for responses, logs and upstreams.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use http::HeaderValue;
use proxy_limits::KeySeed;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::cell::RefCell;
use std::io;
use std::time::Duration;

const TEXT_LENGTH: usize = 36;

/// The correlation ID of a request. A generated one becomes a field's value only when one is
/// needed.
#[derive(Clone, Debug)]
pub(crate) enum CorrelationId {
    /// Generated: `UUIDv7` as text.
    Own([u8; TEXT_LENGTH]),
    /// Sent by the client.
    Sent(HeaderValue),
}

impl CorrelationId {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Own(text) => text,
            Self::Sent(value) => value.as_bytes(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The field's value. Marked as not to be indexed: HTTP/2's table would be slow to search among
    /// many similar values.
    pub(crate) fn to_value(&self) -> HeaderValue {
        let value = match self {
            Self::Own(text) => HeaderValue::from_bytes(text),
            Self::Sent(value) => Ok(value.clone()),
        };
        let mut value = value
            .unwrap_or_else(|_| HeaderValue::from_static("00000000-0000-7000-8000-000000000000"));
        value.set_sensitive(true);
        value
    }
}

/// Generates correlation IDs: `UUIDv7` as text.
///
/// The random bits come from `ChaCha20`, so that IDs reveal nothing about other IDs or the seed.
#[derive(Debug)]
pub struct IdSource {
    random: RefCell<ChaCha20Rng>,
}

impl IdSource {
    /// A source with this seed, which must be secret and unique.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            random: RefCell::new(ChaCha20Rng::from_seed(seed)),
        }
    }

    /// A source with a seed of the operating system, read once.
    ///
    /// # Errors
    /// The operating system returned no random bytes.
    pub fn from_system() -> io::Result<Self> {
        random_key().map(Self::new)
    }

    /// A seed for a table of keys that clients choose.
    #[must_use]
    pub fn key_seed(&self) -> KeySeed {
        KeySeed {
            low: self.random(),
            high: self.random(),
        }
    }

    /// A new ID for the time `unix_time`. [RFC 9562 §5.7]
    pub(crate) fn next(&self, unix_time: Duration) -> CorrelationId {
        let millis = u64::try_from(unix_time.as_millis()).unwrap_or(u64::MAX);
        let [random, more] = {
            let mut source = self.random.borrow_mut();
            [source.next_u64(), source.next_u64()]
        };
        CorrelationId::Own(text(uuid(millis, random, more)))
    }

    /// Random bytes, different in each call.
    #[inline]
    pub(crate) fn random_bytes(&self) -> [u8; 16] {
        let (high, low) = (u128::from(self.random()), u128::from(self.random()));
        (high << 64 | low).to_ne_bytes()
    }

    /// Random bits.
    pub(crate) fn random(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }
}

/// Random bytes of the kernel, which cannot be guessed.
///
/// The generator of the TLS library is not used: it measures processor jitter at first, several
/// times as long as the rest of a start.
///
/// # Errors
/// The kernel returned no random bytes.
pub fn random_key<const N: usize>() -> io::Result<[u8; N]> {
    let mut key = [0; N];
    let mut missing = key.as_mut_slice();
    while !missing.is_empty() {
        let filled = match getrandom(&mut *missing, GetRandomFlags::empty()) {
            Err(Errno::INTR) => 0,
            filled => filled?,
        };
        missing = missing.get_mut(filled..).unwrap_or_default();
    }
    Ok(key)
}

/// The `UUIDv7` of a time and 74 of these random bits, as four words in the order of writing.
fn uuid(millis: u64, random: u64, more: u64) -> [u32; 4] {
    const VERSION: u64 = 0x7000;
    const VARIANT: u64 = 0x8000_0000;
    #[expect(clippy::cast_possible_truncation, reason = "a word has 32 bits")]
    let low = |word: u64| word as u32;
    [
        low(millis >> 16),
        low((millis << 16) | VERSION | (random & 0xFFF)),
        low(VARIANT | ((random >> 12) & 0x3FFF_FFFF)),
        low(more),
    ]
}

/// The words in hexadecimal, with a hyphen after the 8th, 12th, 16th and 20th digit.
fn text([a, b, c, d]: [u32; 4]) -> [u8; TEXT_LENGTH] {
    let [a, b, c, d] = [digits(a), digits(b), digits(c), digits(d)];
    let mut text = [b'-'; TEXT_LENGTH];
    text[..8].copy_from_slice(&a);
    text[9..13].copy_from_slice(&b[..4]);
    text[14..18].copy_from_slice(&b[4..]);
    text[19..23].copy_from_slice(&c[..4]);
    text[24..28].copy_from_slice(&c[4..]);
    text[28..].copy_from_slice(&d);
    text
}

/// Eight hexadecimal digits, computed at once: each gets a byte, then those above 9 the distance to
/// `a`.
#[inline]
fn digits(word: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let spread = u64::from(word);
    let spread = (spread | (spread << 16)) & 0x0000_FFFF_0000_FFFF;
    let spread = (spread | (spread << 8)) & 0x00FF_00FF_00FF_00FF;
    let spread = (spread | (spread << 4)) & (0x0F * ONES);
    let above_nine = ((spread + 0x06 * ONES) >> 4) & ONES;
    let letters = above_nine * u64::from(b'a' - b'9' - 1);
    (spread + letters + ONES * u64::from(b'0')).to_be_bytes()
}

/// Returns true if a request's own ID may be used: 1 to 128 characters of `[A-Za-z0-9._-]`.
pub fn is_acceptable(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=128).contains(&id.len()) && id.iter().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use uuid::Uuid;

    const SEED: [u8; 32] = [7; 32];

    #[test]
    fn ids_are_version_7_and_carry_their_time() {
        let source = IdSource::new(SEED);
        let time = Duration::from_millis(1_795_000_000_123);

        let id = Uuid::parse_str(source.next(time).as_str()).unwrap();
        assert_eq!(id.get_version_num(), 7);
        let (seconds, nanos) = id.get_timestamp().unwrap().to_unix();
        assert_eq!(Duration::new(seconds, nanos), time);
    }

    #[test]
    fn ids_have_the_standard_text_form() {
        let words = [0x0123_4567, 0x89AB_7DEF, 0x8FED_CBA9, 0x0000_000A];
        let text = String::from_utf8(text(words).to_vec()).unwrap();

        assert_eq!(text, "01234567-89ab-7def-8fed-cba90000000a");
        let id = Uuid::parse_str(&text).unwrap();
        assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(id.hyphenated().to_string(), text);
    }

    #[test]
    fn random_keys_are_filled_to_the_end_and_differ() {
        let keys: HashSet<[u8; 64]> = (0..8).map(|_| random_key().unwrap()).collect();

        assert_eq!(keys.len(), 8);
        // The probability of eight random zero bytes at the end is 2⁻⁶⁴.
        assert!(keys.iter().all(|key| !key.ends_with(&[0; 8])));
    }

    #[test]
    fn ids_do_not_repeat() {
        let source = IdSource::new(SEED);
        let ids: HashSet<_> = (0..10_000)
            .map(|_| source.next(Duration::ZERO).as_bytes().to_vec())
            .collect();

        assert_eq!(ids.len(), 10_000);
    }

    #[test]
    fn issued_ids_do_not_predict_the_next() {
        // The next number of splitmix64, which reveals the generator's state.
        let source = IdSource::new(SEED);
        let whole = u128::from_ne_bytes(source.random_bytes());
        let word = |number: u128| u64::try_from(number & u128::from(u64::MAX)).unwrap();
        let (first, second) = (word(whole >> 64), word(whole));
        let unshift = |mixed: u64, by: u32| (0..64 / by).fold(mixed, |it, _| mixed ^ (it >> by));
        let inverse = |factor: u64| {
            (0..6).fold(factor, |it, _| {
                it.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(it)))
            })
        };
        let state = unshift(first, 31).wrapping_mul(inverse(0x94D0_49BB_1331_11EB));
        let state = unshift(state, 27).wrapping_mul(inverse(0xBF58_476D_1CE4_E5B9));
        let state = unshift(state, 30).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);

        assert_ne!(mixed ^ (mixed >> 31), second);
    }

    #[test]
    fn only_plain_ids_of_a_sane_length_are_kept() {
        for (id, kept) in [
            ("a", true),
            ("Az09._-", true),
            (&"x".repeat(128), true),
            ("", false),
            (&"x".repeat(129), false),
            ("a b", false),
            ("a\"", false),
            ("ä", false),
        ] {
            assert_eq!(is_acceptable(id.as_bytes()), kept, "{id}");
        }
    }

    #[test]
    fn an_id_that_is_kept_needs_no_escaping() {
        // The access log writes it without escaping.
        for byte in 0..=u8::MAX {
            let plain = byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            for id in [vec![byte], [&[b'a'; 31][..], &[byte]].concat()] {
                assert_eq!(is_acceptable(&id), plain, "{byte:#x}");
            }
        }
        let own = IdSource::new(SEED).next(Duration::ZERO);
        assert!(is_acceptable(own.as_bytes()));
    }
}
