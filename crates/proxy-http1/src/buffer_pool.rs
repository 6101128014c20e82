//! Containers handed from one message to the next of the same thread.
//!
//! The one used last is used next: it is still in the processor's cache, and connections that wait hold
//! none.

use http::HeaderMap;
use proxy_framing::Lines;
use std::cell::{Cell, RefCell};

/// Most room in all header maps together that wait for their next use, in fields: each takes about 120
/// bytes, which makes half a megabyte.
const MOST_FIELDS: usize = 4_096;

/// The largest header map that is worth keeping, in fields.
const LARGEST_MAP: usize = 64;

/// Most values beyond the first of their names in a map that is worth keeping. A map keeps its room for
/// them, and does not say how much that is.
const MOST_REPEATED: usize = 16;

/// The largest text that is worth keeping, in bytes.
const LARGEST_TEXT: usize = 16 * 1024;

thread_local! {
    static LINES: Cell<Lines> = const { Cell::new(Lines::new()) };
    static TEXT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static MAPS: RefCell<Maps> = const { RefCell::new(Maps { maps: Vec::new(), fields: 0 }) };
}

/// Empty header maps, and the fields that there is room for in them.
struct Maps {
    maps: Vec<HeaderMap>,
    fields: usize,
}

/// Room to note the lines of a head in; [`Head::take`](crate::Head::take) wants it.
#[must_use]
pub fn lines() -> Lines {
    LINES.take()
}

pub(crate) fn keep_lines(lines: Lines) {
    LINES.set(lines);
}

/// Room for a head to be written.
pub(crate) fn text() -> Vec<u8> {
    TEXT.take()
}

pub(crate) fn keep_text(mut text: Vec<u8>) {
    if text.capacity() <= LARGEST_TEXT {
        text.clear();
        TEXT.set(text);
    }
}

/// An empty map, with room if there is one to spare.
pub(crate) fn map() -> HeaderMap {
    let spare = MAPS.with_borrow_mut(|Maps { maps, fields }| {
        let map = maps.pop()?;
        *fields = fields.saturating_sub(map.capacity());
        Some(map)
    });
    spare.unwrap_or_default()
}

/// Takes a map that nobody needs any more, for the next head that this thread reads.
pub fn keep_map(mut map: HeaderMap) {
    bound_map(&mut map);
    let room = map.capacity();
    if (1..=LARGEST_MAP).contains(&room) {
        map.clear();
        MAPS.with_borrow_mut(|Maps { maps, fields }| {
            if *fields + room <= MOST_FIELDS {
                *fields += room;
                maps.push(map);
            }
        });
    }
}

/// Makes `map` one that is not kept, if it holds so many values of names that stand in it already that
/// the room for them is more than is worth keeping. To be called while they are in it.
pub fn bound_map(map: &mut HeaderMap) {
    if MOST_REPEATED < map.len() - map.keys_len() {
        map.reserve(LARGEST_MAP + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_is_kept_comes_back_empty() {
        let mut used = HeaderMap::new();
        used.insert("a", HeaderValue::from_static("1"));
        keep_map(used);
        let again = map();
        assert!(again.is_empty() && again.capacity() > 0);
        assert_eq!(map().capacity(), 0);

        keep_text(b"text".to_vec());
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
            keep_map(used);
            assert_eq!(map().capacity(), 0);
        }
    }

    #[test]
    fn the_room_in_all_kept_maps_together_is_bounded() {
        for _ in 0..1_000 {
            keep_map(HeaderMap::with_capacity(48));
        }
        let kept = std::iter::repeat_with(map).map(|map| map.capacity());
        let room: usize = kept.take_while(|room| *room > 0).sum();
        assert!((1..=MOST_FIELDS).contains(&room), "{room}");
    }

    #[test]
    fn what_is_large_is_not_kept() {
        keep_map(HeaderMap::with_capacity(1000));
        assert_eq!(map().capacity(), 0);
        keep_text(Vec::with_capacity(LARGEST_TEXT + 1));
        assert_eq!(text().capacity(), 0);
    }
}
