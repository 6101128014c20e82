//! Load of a target, over all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Requests in flight to one target, over all workers. Kept only if the load balancing policy needs
/// them: see [`LoadBalancer::reads_load`](crate::LoadBalancer::reads_load).
#[derive(Clone, Debug, Default)]
pub struct TargetLoad(Arc<Requests>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Requests(AtomicU32);

/// A request in flight to a target. Counted until it is dropped.
#[derive(Debug)]
pub struct ActiveRequest(Arc<Requests>);

impl TargetLoad {
    /// Counts one more request.
    #[must_use]
    pub fn begin(&self) -> ActiveRequest {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(Arc::clone(&self.0))
    }

    /// Number of active requests.
    #[inline]
    #[must_use]
    pub fn active(&self) -> u32 {
        self.0.0.load(Ordering::Relaxed)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_until_it_is_dropped() {
        let load = TargetLoad::default();
        let (first, second) = (load.begin(), load.begin());
        assert_eq!(load.active(), 2);
        drop(first);
        assert_eq!(load.active(), 1);
        drop(second);
        assert_eq!(load.active(), 0);
    }
}
