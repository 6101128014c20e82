//! Per-thread pools of buffers, reused from message to message.
//!
//! The pools are last in, first out, because the last buffer is still in the processor's cache.
//! Idle connections hold no buffers.

use http::HeaderMap;
use proxy_framing::Lines;
use std::cell::{Cell, RefCell};

/// Maximum total capacity of pooled buffers of one kind, in fields. A field takes about 120 bytes
/// in a header map, which makes half a megabyte, and 24 bytes in a list of lines.
const MAX_POOLED_FIELDS: usize = 4_096;

/// Maximum capacity of a pooled buffer, in fields.
const MAX_FIELDS: usize = 64;

/// Maximum number of repeated values in a pooled map, which keeps their memory without reporting
/// its size.
const MAX_REPEATED_VALUES: usize = 16;

/// Maximum capacity of a pooled text buffer, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

thread_local! {
    static LINES: RefCell<Pool<Lines>> = const { RefCell::new(Pool::new()) };
    static TEXT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static MAPS: RefCell<Pool<HeaderMap>> = const { RefCell::new(Pool::new()) };
}

/// Empty buffers, with their total capacity in fields.
struct Pool<T> {
    buffers: Vec<T>,
    fields: usize,
}

impl<T> Pool<T> {
    const fn new() -> Self {
        Self {
            buffers: Vec::new(),
            fields: 0,
        }
    }

    fn take(&mut self, capacity: impl FnOnce(&T) -> usize) -> Option<T> {
        let buffer = self.buffers.pop()?;
        self.fields = self.fields.saturating_sub(capacity(&buffer));
        Some(buffer)
    }

    /// Adds an empty buffer with room for `capacity` fields, unless the pool is full.
    fn recycle(&mut self, buffer: T, capacity: usize) {
        if self.fields + capacity <= MAX_POOLED_FIELDS {
            self.fields += capacity;
            self.buffers.push(buffer);
        }
    }
}

/// Takes an empty list of line positions, for [`Head::take`](crate::fields::Head::take).
#[must_use]
pub fn lines() -> Lines {
    let pooled = LINES.with_borrow_mut(|pool| pool.take(|lines| lines.fields.capacity()));
    pooled.unwrap_or_default()
}

/// Returns a list to this thread's pool.
pub(crate) fn recycle_lines(lines: Lines) {
    let room = lines.fields.capacity();
    if (1..=MAX_FIELDS).contains(&room) {
        LINES.with_borrow_mut(|pool| pool.recycle(lines, room));
    }
}

/// Takes an empty buffer for writing a head.
pub(crate) fn text() -> Vec<u8> {
    TEXT.take()
}

pub(crate) fn recycle_text(mut text: Vec<u8>) {
    if text.capacity() <= MAX_TEXT_BYTES {
        text.clear();
        TEXT.set(text);
    }
}

/// Takes an empty map.
pub(crate) fn map() -> HeaderMap {
    let pooled = MAPS.with_borrow_mut(|pool| pool.take(HeaderMap::capacity));
    pooled.unwrap_or_default()
}

/// Returns a map to this thread's pool.
pub fn recycle_map(mut map: HeaderMap) {
    bound_map(&mut map);
    let room = map.capacity();
    if (1..=MAX_FIELDS).contains(&room) {
        map.clear();
        MAPS.with_borrow_mut(|pool| pool.recycle(map, room));
    }
}

/// Replaces `map` by one that is never pooled, if it has too many repeated values. Call it while
/// the map still contains the values.
pub fn bound_map(map: &mut HeaderMap) {
    if MAX_REPEATED_VALUES < map.len() - map.keys_len() {
        map.reserve(MAX_FIELDS + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn kept_buffers_are_empty() {
        let mut used = HeaderMap::new();
        used.insert("a", HeaderValue::from_static("1"));
        recycle_map(used);
        let again = map();
        assert!(again.is_empty() && again.capacity() > 0);
        assert_eq!(map().capacity(), 0);

        recycle_text(b"text".to_vec());
        let again = text();
        assert!(again.is_empty() && again.capacity() > 0);
    }

    #[test]
    fn a_map_that_held_many_values_of_one_name_is_not_kept() {
        for removed_before in [false, true] {
            let mut used = HeaderMap::new();
            for _ in 0..1_000 {
                used.append("a", HeaderValue::from_static("1"));
            }
            if removed_before {
                bound_map(&mut used);
                used.remove("a");
            }
            recycle_map(used);
            assert_eq!(map().capacity(), 0);
        }
    }

    #[test]
    fn the_room_in_all_kept_maps_together_is_bounded() {
        for _ in 0..1_000 {
            recycle_map(HeaderMap::with_capacity(48));
        }
        let kept = std::iter::repeat_with(map).map(|map| map.capacity());
        let room: usize = kept.take_while(|room| *room > 0).sum();
        assert!((1..=MAX_POOLED_FIELDS).contains(&room), "{room}");
    }

    #[test]
    fn large_buffers_are_not_kept() {
        recycle_map(HeaderMap::with_capacity(1000));
        assert_eq!(map().capacity(), 0);
        recycle_text(Vec::with_capacity(MAX_TEXT_BYTES + 1));
        assert_eq!(text().capacity(), 0);
    }
}
