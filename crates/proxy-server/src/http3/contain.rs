//! Containment of panics of the QUIC library, which reads unauthenticated datagrams: a panic ends
//! its datagram or its connection, not the worker.

use proxy_errors::{Detail, Problem, Reason};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of `work`; `None` if it panicked, which the process's hook has logged with its place.
///
/// The state that `work` changed may be inconsistent afterwards. The caller drops it, unless it is
/// an endpoint's table of connections, where at worst an unused entry remains.
pub(super) fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// The problem of a connection, or of a datagram, that ended in a panic.
pub(super) fn panic_problem() -> Problem {
    Problem::new(
        Reason::Panic,
        Detail::text("a panic while QUIC was handled"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_has_no_result() {
        assert_eq!(contain(|| 7), Some(7));
        let panic = || std::panic::resume_unwind(Box::new("a defect"));
        assert_eq!(contain::<()>(panic), None);
    }
}
