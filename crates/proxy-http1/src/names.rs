//! Cache of field names, keyed by the bytes that were sent.
//!
//! Most heads contain the same few names in the same spelling. A cache hit costs less than
//! converting a name to lower case and testing whether it is standard, and allocates nothing for a
//! custom name.

use http::HeaderName;
use std::cell::RefCell;

/// Number of slots in a thread's cache, each for one name.
const CACHED_NAMES: usize = 128;

/// Maximum length of a cached name, in bytes.
const MAX_NAME_BYTES: usize = size_of::<u128>();

thread_local! {
    static NAMES: RefCell<Names> = const { RefCell::new(Names(Vec::new())) };
}

/// Cached names of a thread, by the hash of their spelling.
#[derive(Debug)]
pub(crate) struct Names(Vec<Option<CachedName>>);

/// A name, with the bytes by which it was sent.
#[derive(Clone, Debug)]
struct CachedName {
    spelt: u128,
    len: usize,
    name: HeaderName,
}

/// Passes the thread's cache to a closure, once for all names of a head.
#[inline]
pub(crate) fn with_cache<T>(read: impl FnOnce(&mut Names) -> T) -> T {
    NAMES.with_borrow_mut(read)
}

impl Names {
    /// Returns the name in the first `len` bytes of `line`; `None` if it is invalid.
    #[inline]
    pub(crate) fn name(&mut self, line: &[u8], len: usize) -> Option<HeaderName> {
        let Some(spelt) = spelling(line, len) else {
            return HeaderName::from_bytes(line.get(..len)?).ok();
        };
        if let Some(Some(known)) = self.0.get(place(spelt))
            && known.spelt == spelt
            && known.len == len
        {
            return Some(known.name.clone());
        }
        self.remember(line, len, spelt)
    }

    #[cold]
    fn remember(&mut self, line: &[u8], len: usize, spelt: u128) -> Option<HeaderName> {
        let name = HeaderName::from_bytes(line.get(..len)?).ok()?;
        self.0.resize(CACHED_NAMES, None);
        if let Some(place) = self.0.get_mut(place(spelt)) {
            let name = name.clone();
            *place = Some(CachedName { spelt, len, name });
        }
        Some(name)
    }
}

/// Packs the first `len` bytes of `line` into a number; `None` if there are too few or too many.
#[inline]
fn spelling(line: &[u8], len: usize) -> Option<u128> {
    if !(1..=MAX_NAME_BYTES).contains(&len) {
        return None;
    }
    let bytes = match line.first_chunk() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => padded(line),
    };
    Some(bytes & (u128::MAX >> (8 * (MAX_NAME_BYTES - len))))
}

/// Packs fewer than 16 bytes into a number, padded with zeros: for a short last line of a head.
fn padded(line: &[u8]) -> u128 {
    let from = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    match line.split_first_chunk() {
        Some((low, rest)) => {
            u128::from(u64::from_le_bytes(*low)) | u128::from(from(rest)) << u64::BITS
        }
        None => u128::from(from(line)),
    }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "both halves are taken, and a place is less than 128"
)]
fn place(spelt: u128) -> usize {
    let folded = spelt as u64 ^ (spelt >> 64) as u64;
    // Fibonacci hashing: the product's highest bits depend on all bits of the factor.
    let product = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (product >> (u64::BITS - CACHED_NAMES.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(line: &[u8], len: usize) -> Option<HeaderName> {
        with_cache(|names| names.name(line, len))
    }

    #[test]
    fn a_name_is_the_same_the_second_time() {
        for spelt in [
            "Host",
            "host",
            "HOST",
            "X-Own",
            "x",
            "Proxy-Connection",
            "Upgrade-Insecure-Requests",
        ] {
            let line = format!("{spelt}: something or other\r\n");
            let expected = HeaderName::from_bytes(spelt.as_bytes()).unwrap();

            assert_eq!(name(line.as_bytes(), spelt.len()).unwrap(), expected);
            assert_eq!(name(line.as_bytes(), spelt.len()).unwrap(), expected);
        }
    }

    #[test]
    fn names_with_a_common_prefix_are_distinguished() {
        let line = b"x-forwarded-for: 192.0.2.1\r\n";

        for len in 1..=15 {
            assert_eq!(name(line, len).unwrap().as_str().len(), len);
        }
    }

    #[test]
    fn a_short_line_at_the_end_of_a_head_is_cached_too() {
        for len in 1..=15 {
            let line = &b"abcdefghijklmno"[..len];
            let expected = HeaderName::from_bytes(line).unwrap();
            assert_eq!(name(line, len).unwrap(), expected);
            assert_eq!(spelling(line, len), spelling(b"abcdefghijklmnopq", len));
            assert_eq!(name(b"abcdefghijklmnopq", len).unwrap(), expected);
        }
    }

    #[test]
    fn an_invalid_name_stays_none() {
        assert!(name(b"a: 0123456789 0123", 1).is_some());
        for (line, len) in [
            ("a b: 0123456789 0123", 3),
            ("a\0: 0123456789 0123", 2),
            ("", 0),
        ] {
            assert_eq!(name(line.as_bytes(), len), None);
            assert_eq!(name(line.as_bytes(), len), None);
        }
    }

    #[test]
    fn a_thread_remembers_no_more_than_it_has_places_for() {
        for number in 0..10_000 {
            let line = format!("x-{number}: 0123456789 0123");
            let len = line.find(':').unwrap();
            assert_eq!(name(line.as_bytes(), len).unwrap(), line[..len]);
        }

        NAMES.with_borrow(|names| assert_eq!(names.0.len(), CACHED_NAMES));
    }
}
