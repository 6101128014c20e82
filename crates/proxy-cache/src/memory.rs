//! Bytes in use by a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory use of a store: all bytes, and the bytes of bodies being read.
#[derive(Debug)]
pub(crate) struct Memory {
    used: AtomicU64,
    filling: AtomicU64,
    max_bytes: u64,
}

/// Bytes in use, released on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    memory: Arc<Memory>,
    bytes: u64,
}

/// Bytes of a body that is being read.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Memory {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            used: AtomicU64::new(0),
            filling: AtomicU64::new(0),
            max_bytes,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns true if more bytes are in use than permitted.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.used() > self.max_bytes
    }

    /// Counts `bytes`, even beyond the limit.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        let bytes = bytes as u64;
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Charge {
            memory: Arc::clone(self),
            bytes,
        }
    }

    pub(crate) fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation {
            memory: Arc::clone(self),
            bytes: 0,
        }
    }
}

impl Reservation {
    /// Grows the reservation to `bytes` in total. Returns false, without a change, if there is no
    /// room.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let filling = self.memory.filling.fetch_add(more, Ordering::Relaxed);
        let used = self.memory.used.fetch_add(more, Ordering::Relaxed);
        // Stored responses use up to seven eighths of the store.
        let max_filling = self.memory.max_bytes / 8;
        let is_room = filling.saturating_add(more) <= max_filling
            && used.saturating_add(more) <= self.memory.max_bytes;
        if is_room {
            self.bytes += more;
        } else {
            self.memory.filling.fetch_sub(more, Ordering::Relaxed);
            self.memory.used.fetch_sub(more, Ordering::Relaxed);
        }
        is_room
    }
}

impl Reservation {
    /// Releases all bytes.
    pub(crate) fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.memory.filling.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
