//! The registered deadlines of one worker, checked once per tick.

use crate::clock::Tick;
use crate::deadline::Deadline;
use std::cell::RefCell;
use std::rc::Rc;

/// The registered deadlines of a worker.
#[derive(Debug, Default)]
pub struct TimerRegistry {
    slots: RefCell<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    entries: Vec<Option<Rc<Deadline>>>,
    free: Vec<u32>,
}

/// A registration, removed on drop.
#[derive(Debug)]
pub struct TimerGuard {
    timers: Rc<TimerRegistry>,
    slot: u32,
}

impl TimerRegistry {
    /// Registers `deadline` until the guard is dropped.
    pub fn register(self: &Rc<Self>, deadline: Rc<Deadline>) -> TimerGuard {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.free.pop().unwrap_or_else(|| {
            slots.entries.push(None);
            u32::try_from(slots.entries.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(place) = slots.entries.get_mut(slot as usize) {
            *place = Some(deadline);
        }
        TimerGuard {
            timers: Rc::clone(self),
            slot,
        }
    }

    /// Expires every deadline that has passed at `now`, and wakes its watcher.
    pub fn run(&self, now: Tick) {
        for deadline in self.slots.borrow().entries.iter().flatten() {
            deadline.check(now);
        }
    }

    /// Wakes every watcher, so that each checks its state again.
    pub fn wake_all(&self) {
        for deadline in self.slots.borrow().entries.iter().flatten() {
            deadline.wake();
        }
    }

    /// Number of registered deadlines.
    pub fn len(&self) -> usize {
        let slots = self.slots.borrow();
        slots.entries.len() - slots.free.len()
    }

    /// Returns true if no deadline is registered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for TimerGuard {
    fn drop(&mut self) {
        let mut slots = self.timers.slots.borrow_mut();
        let Slots { entries, free } = &mut *slots;
        if let Some(place) = entries.get_mut(self.slot as usize) {
            *place = None;
            free.push(self.slot);
        }
        // Frees the memory of a former flood of connections.
        if entries.len() == free.len() {
            *entries = Vec::new();
            *free = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Timer};
    use std::time::Duration;

    #[test]
    fn a_sweep_expires_registered_deadlines_and_removes_dropped_ones() {
        let (timers, clock) = (Rc::new(TimerRegistry::default()), Clock::default());
        let [kept, gone] = [0, 1].map(|_| Rc::new(Deadline::default()));
        let entry = timers.register(Rc::clone(&kept));
        drop(timers.register(Rc::clone(&gone)));
        for deadline in [&kept, &gone] {
            deadline.start(&clock, Timer::KeepAlive, Duration::from_secs(1));
        }

        clock.advance_to(Duration::from_secs(2));
        timers.run(clock.now());

        assert_eq!(kept.expired(), Some(Timer::KeepAlive));
        assert_eq!(gone.expired(), None);
        drop(entry);
        assert!(timers.is_empty());
    }

    #[test]
    fn a_freed_slot_is_used_again() {
        let timers = Rc::new(TimerRegistry::default());
        let first = timers.register(Rc::default());
        let second = timers.register(Rc::default());
        drop(first);
        let third = timers.register(Rc::default());

        assert_eq!((third.slot, timers.len()), (0, 2));
        drop(second);
    }
}
