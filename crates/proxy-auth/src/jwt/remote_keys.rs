//! The key set of an issuer, as of the last fetch.

use super::key_set::JwtKeys;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The key set of an issuer, shared between the threads that verify tokens and the task that fetches it.
#[derive(Debug, Default)]
pub struct RemoteKeys {
    keys: ArcSwapOption<JwtKeys>,
    /// True if a token has named a key that is not in the set.
    is_wanted: AtomicBool,
}

impl RemoteKeys {
    /// The current keys; `None` before the first successful fetch, and after they have become too
    /// old.
    #[must_use]
    pub fn current(&self) -> Option<Arc<JwtKeys>> {
        self.keys.load_full()
    }

    /// Replaces the keys.
    pub fn set(&self, keys: Option<JwtKeys>) {
        self.keys.store(keys.map(Arc::new));
    }

    /// Requests a fetch before its time.
    pub fn request(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Returns true if a fetch was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Ends the request, as a fetch begins.
    pub fn clear_request(&self) {
        self.is_wanted.store(false, Ordering::Relaxed);
    }
}
