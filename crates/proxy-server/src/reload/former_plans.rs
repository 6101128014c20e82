//! Plans that a reload has replaced, until they are unused.

use crate::runtime::disk_thread::DiskThread;
use proxy_plan::Plan;
use std::sync::Arc;

/// Replaced plans that requests may still use.
///
/// The disk thread frees them: for 10 000 routes that takes milliseconds, which would otherwise
/// delay the requests of the worker with the last reference.
#[derive(Debug, Default)]
pub(crate) struct FormerPlans(Vec<Arc<Plan>>);

impl FormerPlans {
    /// Adds a plan that was just replaced.
    pub(crate) fn push(&mut self, plan: Arc<Plan>) {
        self.0.push(plan);
    }

    pub(crate) fn free(&mut self, disk: &DiskThread) {
        let (unused, used): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|plan| Arc::strong_count(plan) == 1);
        self.0 = used;
        if !unused.is_empty() {
            disk.leave(move || drop(unused));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_plan::TargetRegistry;

    fn plan() -> Arc<Plan> {
        let text = "listeners { listener \"main\" { address \"127.0.0.1:0\" } }\n\
             routes { route \"r\" { upstream \"u\" } }\n\
             upstreams { upstream \"u\" { target \"127.0.0.1:81\" } }";
        let loaded = proxy_config::parse(text, "test.kdl").unwrap();
        let mut targets = TargetRegistry::default().begin();
        Arc::new(Plan::compile(1, Arc::new(loaded.model), &mut targets))
    }

    #[test]
    fn a_plan_is_freed_elsewhere_as_soon_as_nothing_uses_it() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let disk = DiskThread::start().unwrap();
            let mut former = FormerPlans::default();
            let used = plan();
            let seen = Arc::downgrade(&used);
            former.push(Arc::clone(&used));
            former.free(&disk);
            drop(used);
            assert!(seen.upgrade().is_some(), "the last user does not free it");

            former.free(&disk);
            disk.run(|| ()).await.unwrap();
            assert!(seen.upgrade().is_none());
        });
    }
}
