//! The name that one request bears in responses, logs and upstreams.

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use uuid::Builder;

const TEXT_LENGTH: usize = 36;
const ARENA_BYTES: usize = 4096;

/// Makes correlation IDs: `UUIDv7`, in text, out of one arena instead of one allocation each.
#[derive(Debug)]
pub struct IdSource {
    state: Cell<u64>,
    arena: RefCell<BytesMut>,
}

impl IdSource {
    /// A source whose IDs differ from those of other seeds.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: Cell::new(seed),
            arena: RefCell::default(),
        }
    }

    /// A new ID, made at `unix_time`.
    pub(crate) fn next(&self, unix_time: Duration) -> HeaderValue {
        let mut random = [0; 10];
        for (place, byte) in random.iter_mut().zip(self.random_bytes()) {
            *place = byte;
        }
        let millis = u64::try_from(unix_time.as_millis()).unwrap_or(u64::MAX);
        let id = Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        let mut text = [0; TEXT_LENGTH];
        id.hyphenated().encode_lower(&mut text);
        HeaderValue::from_maybe_shared(self.keep(&text))
            .unwrap_or_else(|_| HeaderValue::from_static("00000000-0000-7000-8000-000000000000"))
    }

    fn keep(&self, text: &[u8]) -> Bytes {
        let mut arena = self.arena.borrow_mut();
        if arena.capacity() < text.len() {
            *arena = BytesMut::with_capacity(ARENA_BYTES);
        }
        arena.extend_from_slice(text);
        arena.split().freeze()
    }

    /// Bytes that differ from one call to the next.
    #[inline]
    pub(crate) fn random_bytes(&self) -> [u8; 16] {
        let (high, low) = (u128::from(self.random()), u128::from(self.random()));
        (high << 64 | low).to_ne_bytes()
    }

    // splitmix64: IDs must not collide; they are no secrets.
    fn random(&self) -> u64 {
        let state = self.state.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.state.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Whether an ID that came with a request may be kept: 1 to 128 characters of `[A-Za-z0-9._-]`.
pub fn is_acceptable(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=128).contains(&id.len()) && id.iter().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use uuid::Uuid;

    #[test]
    fn ids_are_version_7_and_carry_their_time() {
        let source = IdSource::new(7);
        let time = Duration::from_millis(1_795_000_000_123);

        let id = Uuid::parse_str(source.next(time).to_str().unwrap()).unwrap();
        assert_eq!(id.get_version_num(), 7);
        let (seconds, nanos) = id.get_timestamp().unwrap().to_unix();
        assert_eq!(Duration::new(seconds, nanos), time);
    }

    #[test]
    fn ids_do_not_repeat() {
        let source = IdSource::new(1);
        let ids: HashSet<_> = (0..10_000)
            .map(|_| source.next(Duration::ZERO).as_bytes().to_vec())
            .collect();

        assert_eq!(ids.len(), 10_000);
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
}
