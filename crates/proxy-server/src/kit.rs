//! What a connection needs while a request is served, lent to it by its worker.

use http::HeaderMap;
use proxy_http1::Lines;
use std::cell::RefCell;

/// Most kits that wait for their next use.
const MOST: usize = 64;

/// The largest buffer that is worth keeping, in bytes.
const LARGEST: usize = 16 * 1024;

/// Empty containers with room.
#[derive(Debug, Default)]
pub(crate) struct Kit {
    /// For the lines of a request's head.
    pub(crate) lines: Lines,
    /// For the fields of a request's head.
    pub(crate) headers: HeaderMap,
    /// For the head of its response.
    pub(crate) text: Vec<u8>,
}

/// The kits of one worker that nobody uses.
#[derive(Debug, Default)]
pub(crate) struct Kits(RefCell<Vec<Kit>>);

impl Kits {
    /// A kit, which may be a new one.
    pub(crate) fn take(&self) -> Kit {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes a kit back.
    pub(crate) fn put(&self, mut kit: Kit) {
        let mut kits = self.0.borrow_mut();
        if kits.len() < MOST && kit.text.capacity() <= LARGEST {
            kit.text.clear();
            kits.push(kit);
        }
    }
}
