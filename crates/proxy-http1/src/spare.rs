//! Containers handed from one message to the next of the same thread.
//!
//! The one used last is used next: it is still in the processor's cache, and connections that wait hold
//! none.

use http::HeaderMap;
use proxy_framing::Lines;
use std::cell::{Cell, RefCell};

/// Most header maps that wait for their next use.
const MOST_MAPS: usize = 256;

/// The largest header map that is worth keeping, in fields.
const LARGEST_MAP: usize = 64;

/// The largest text that is worth keeping, in bytes.
const LARGEST_TEXT: usize = 16 * 1024;

thread_local! {
    static LINES: Cell<Lines> = const { Cell::new(Lines::new()) };
    static TEXT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static MAPS: RefCell<Vec<HeaderMap>> = const { RefCell::new(Vec::new()) };
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
    MAPS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Takes a map that nobody needs any more, for the next head that this thread reads.
pub fn keep_map(mut map: HeaderMap) {
    if (1..=LARGEST_MAP).contains(&map.capacity()) {
        map.clear();
        MAPS.with_borrow_mut(|maps| {
            if maps.len() < MOST_MAPS {
                maps.push(map);
            }
        });
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
    fn what_is_large_is_not_kept() {
        keep_map(HeaderMap::with_capacity(1000));
        assert_eq!(map().capacity(), 0);
        keep_text(Vec::with_capacity(LARGEST_TEXT + 1));
        assert_eq!(text().capacity(), 0);
    }
}
