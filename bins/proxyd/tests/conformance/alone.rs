//! Runs tests that measure time one after the other.
#![expect(
    clippy::disallowed_types,
    reason = "tests wait for each other, and nobody waits for them"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

static TURN: Mutex<()> = Mutex::new(());

/// Waits for other measurements, and blocks them until the guard is dropped.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
