//! Processor cores, and their assignment to processes.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use xtask_kit::task_error::TaskError;

/// Cores on which this process may run; at least two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores(Vec<usize>);

impl Cores {
    /// Reads the cores from the operating system.
    pub(crate) fn for_this_process() -> Result<Self, TaskError> {
        let allowed = sched_getaffinity(None).map_err(|errno| TaskError::System {
            action: "ask which cores there are",
            source: errno.into(),
        })?;
        let cores = Self(
            (0..CpuSet::MAX_CPU)
                .filter(|core| allowed.is_set(*core))
                .collect(),
        );
        if cores.0.len() < 2 {
            return Err(TaskError::Failed(
                "a proxy and its load need a core each, and there is only one".to_owned(),
            ));
        }
        Ok(cores)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Core of a proxy with one worker.
    pub(crate) fn first(&self) -> usize {
        self.0.first().copied().unwrap_or_default()
    }

    /// Core of the load.
    pub(crate) fn last(&self) -> usize {
        self.0.last().copied().unwrap_or_default()
    }

    /// Returns true if a proxy on this number of cores leaves one to the load.
    pub(crate) fn spare_one_beside(&self, cores: usize) -> bool {
        cores < self.0.len()
    }

    /// Runs `work` on the first `count` cores. Processes that it starts stay there.
    pub(crate) fn on_first<T>(&self, count: usize, work: impl FnOnce() -> T) -> io::Result<T> {
        let first: Vec<usize> = self.0.iter().copied().take(count).collect();
        self.on(&first, work)
    }

    /// Runs `work` on the core of the load. Processes that it starts stay there.
    pub(crate) fn on_last<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.on(&[self.last()], work)
    }

    fn on<T>(&self, cores: &[usize], work: impl FnOnce() -> T) -> io::Result<T> {
        sched_setaffinity(None, &set(cores))?;
        let done = work();
        sched_setaffinity(None, &set(&self.0))?;
        Ok(done)
    }
}

fn set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_started_on_the_first_core_stay_there() {
        let Ok(cores) = Cores::for_this_process() else {
            return;
        };
        let there = cores.on_first(1, || sched_getaffinity(None)).unwrap();
        assert_eq!(there.unwrap().count(), 1);
        assert_eq!(Cores::for_this_process().unwrap(), cores);
    }
}
