//! A cache of field names, by the bytes that were sent.
//!
//! Most heads contain the same few names in the same spelling. A lookup here costs less than
//! converting a name to lower case and testing whether it is a standard one, and does not allocate
//! for a custom name.

use http::HeaderName;
use std::cell::RefCell;

/// Number of names in a thread's cache; each has one slot.
const CACHED_NAMES: usize = 128;

/// Maximum length of a cached name, in bytes.
const MAX_NAME_BYTES: usize = size_of::<u128>();

thread_local! {
    static NAMES: RefCell<Vec<Option<Known>>> = const { RefCell::new(Vec::new()) };
}

/// A name with the bytes it was sent as.
#[derive(Clone, Debug)]
struct Known {
    spelt: u128,
    name: HeaderName,
}

/// The name of `len` bytes at the beginning of `line`; `None` if it is invalid.
pub(crate) fn name(line: &[u8], len: usize) -> Option<HeaderName> {
    let Some(spelt) = spelling(line, len) else {
        return HeaderName::from_bytes(line.get(..len)?).ok();
    };
    NAMES.with_borrow_mut(|names| {
        if let Some(Some(known)) = names.get(place(spelt))
            && known.spelt == spelt
            && known.name.as_str().len() == len
        {
            return Some(known.name.clone());
        }
        let name = HeaderName::from_bytes(line.get(..len)?).ok()?;
        remember(names, spelt, &name);
        Some(name)
    })
}

#[cold]
fn remember(names: &mut Vec<Option<Known>>, spelt: u128, name: &HeaderName) {
    names.resize(CACHED_NAMES, None);
    if let Some(place) = names.get_mut(place(spelt)) {
        let name = name.clone();
        *place = Some(Known { spelt, name });
    }
}

/// The first `len` bytes of `line` as a number; `None` if there are too few or too many.
#[inline]
fn spelling(line: &[u8], len: usize) -> Option<u128> {
    if !(1..=MAX_NAME_BYTES).contains(&len) {
        return None;
    }
    let bytes = u128::from_le_bytes(*line.first_chunk()?);
    Some(bytes & (u128::MAX >> (8 * (MAX_NAME_BYTES - len))))
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "both halves are taken, and a place is less than 128"
)]
fn place(spelt: u128) -> usize {
    let folded = spelt as u64 ^ (spelt >> 64) as u64;
    // Fibonacci hashing: the highest bits of the product depend on all of the factor's.
    let product = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (product >> (u64::BITS - CACHED_NAMES.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn names_that_begin_alike_are_told_apart() {
        let line = b"x-forwarded-for: 192.0.2.1\r\n";

        for len in 1..=15 {
            assert_eq!(name(line, len).unwrap().as_str().len(), len);
        }
    }

    #[test]
    fn what_is_no_name_stays_none() {
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

        NAMES.with_borrow(|names| assert_eq!(names.len(), CACHED_NAMES));
    }
}
