//! Counter of search steps. Tests check that their number grows with the input and not with its
//! square.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Counts one comparison or look-up.
#[cfg(test)]
pub(crate) fn step() {
    STEPS.set(STEPS.get() + 1);
}

/// Does nothing outside of tests.
#[cfg(not(test))]
pub(crate) const fn step() {}

/// Number of steps of `run` on this thread.
#[cfg(test)]
pub(crate) fn steps_of<T>(run: impl FnOnce() -> T) -> (u64, T) {
    STEPS.set(0);
    let result = run();
    (STEPS.get(), result)
}
