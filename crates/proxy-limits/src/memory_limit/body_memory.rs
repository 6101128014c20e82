//! Memory of the bodies that are buffered, over all workers.

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

/// Growth of bodies between two readings of the process's memory, in bytes: in the time between two
/// regular readings, several workers can receive more than a tenth of a small limit.
const BYTES_PER_READING: u64 = 1 << 20;

/// Memory of the bodies that are buffered, over all workers, with a maximum that follows the memory
/// limit.
///
/// A body that grows beyond the maximum evicts larger ones, the largest first; it is refused if
/// none is larger. All other bodies pause until the evicted ones are dropped. A body that has been
/// read is not evicted any more, and counts until it is dropped.
#[derive(Debug)]
pub struct BodyMemory {
    bodies: Locked,
    /// Bytes of bodies that are evicted and not dropped yet.
    evicted_bytes: AtomicU64,
    reader: OnceLock<Reader>,
}

/// Reads the process's memory and sets the maximum by it.
struct Reader(Box<dyn Fn() + Send + Sync>);

impl Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// One body's share of a [`BodyMemory`]; released on drop.
#[derive(Debug)]
pub struct BodyReservation {
    memory: Arc<BodyMemory>,
    slot: usize,
    is_evicted: Arc<AtomicBool>,
}

/// A body has to end, since the memory for bodies is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory is left for bodies")]
pub struct BodyMemoryFull;

#[expect(
    clippy::disallowed_types,
    reason = "taken once for several kibibytes of a body that is buffered, and by no other request"
)]
type Locked = std::sync::Mutex<Bodies>;

#[derive(Debug)]
struct Bodies {
    max_bytes: u64,
    /// Bytes of all bodies except evicted ones.
    held_bytes: u64,
    evicted_bytes: u64,
    /// Maximum of `held_bytes` and `evicted_bytes` together since the last reading.
    peak_bytes: u64,
    /// Growth of bodies since the reader was called.
    unread_bytes: u64,
    entries: Vec<Entry>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Entry {
    bytes: u64,
    is_growing: bool,
    is_evicted: Arc<AtomicBool>,
    /// The task that reads the body.
    waker: Option<Waker>,
    /// The task waits until evicted bodies are dropped.
    is_paused: bool,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self {
            bodies: Locked::new(Bodies {
                max_bytes: u64::MAX,
                held_bytes: 0,
                evicted_bytes: 0,
                peak_bytes: 0,
                unread_bytes: 0,
                entries: Vec::new(),
                free: Vec::new(),
            }),
            evicted_bytes: AtomicU64::new(0),
            reader: OnceLock::new(),
        }
    }
}

impl BodyMemory {
    /// Memory of all bodies that are buffered, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.bodies().held_bytes
    }

    /// The maximum of [`Self::held_bytes`] since the last call, with bodies that were evicted
    /// meanwhile.
    pub fn take_peak_bytes(&self) -> u64 {
        let mut bodies = self.bodies();
        let now = bodies.held_bytes + bodies.evicted_bytes;
        std::mem::replace(&mut bodies.peak_bytes, now)
    }

    /// Calls `read` whenever bodies have grown by [`BYTES_PER_READING`]. Only the first call has an
    /// effect.
    pub(crate) fn on_growth(&self, read: impl Fn() + Send + Sync + 'static) {
        self.reader.get_or_init(|| Reader(Box::new(read)));
    }

    /// The maximum in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.bodies().max_bytes
    }

    /// Lowers the maximum by `bytes` that something else is about to use.
    pub fn lower_max(&self, bytes: u64) {
        let mut bodies = self.bodies();
        if bodies.max_bytes != u64::MAX {
            bodies.max_bytes = bodies.max_bytes.saturating_sub(bytes);
        }
    }

    /// Sets the maximum, in bytes, and evicts the largest bodies until the rest is within it.
    pub fn set_max(&self, max_bytes: u64) {
        let mut bodies = self.bodies();
        bodies.max_bytes = max_bytes;
        let mut evicted = Vec::new();
        while bodies.held_bytes > max_bytes
            && let Some(largest) = bodies.largest()
        {
            evicted.extend(bodies.evict(largest));
        }
        self.end(bodies, evicted);
    }

    fn end(&self, bodies: MutexGuard<'_, Bodies>, woken: Vec<Waker>) {
        self.evicted_bytes
            .store(bodies.evicted_bytes, Ordering::Relaxed);
        drop(bodies);
        woken.into_iter().for_each(Waker::wake);
    }

    fn read(&self) {
        if let Some(Reader(read)) = self.reader.get() {
            read();
        }
    }

    fn bodies(&self) -> MutexGuard<'_, Bodies> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BodyReservation {
    /// An empty share of `memory`.
    #[must_use]
    pub fn new(memory: &Arc<BodyMemory>) -> Self {
        let is_evicted = Arc::new(AtomicBool::new(false));
        let slot = memory.bodies().insert(Entry {
            bytes: 0,
            is_growing: true,
            is_evicted: Arc::clone(&is_evicted),
            waker: None,
            is_paused: false,
        });
        Self {
            memory: Arc::clone(memory),
            slot,
            is_evicted,
        }
    }

    /// A share of `bytes` that is not evicted; `None` if there is no room without evicting bodies.
    #[must_use]
    pub fn whole(memory: &Arc<BodyMemory>, bytes: u64) -> Option<Self> {
        let mut bodies = memory.bodies();
        let used = bodies.held_bytes.saturating_add(bodies.evicted_bytes);
        if used.saturating_add(bytes) > bodies.max_bytes {
            return None;
        }
        let is_evicted = Arc::new(AtomicBool::new(false));
        let slot = bodies.insert(Entry {
            bytes,
            is_growing: false,
            is_evicted: Arc::clone(&is_evicted),
            waker: None,
            is_paused: false,
        });
        bodies.count(bytes);
        let is_reading_due = bodies.is_reading_due();
        drop(bodies);
        if is_reading_due {
            memory.read();
        }
        Some(Self {
            memory: Arc::clone(memory),
            slot,
            is_evicted,
        })
    }

    /// Adds `bytes`. `waker` is woken when the body is evicted; without one, the last stays.
    ///
    /// # Errors
    /// [`BodyMemoryFull`] if no larger body can be evicted for it, or this one was. The reservation
    /// is unchanged then.
    pub fn grow(&self, bytes: u64, waker: Option<&Waker>) -> Result<(), BodyMemoryFull> {
        let mut evicted = Vec::new();
        let mut bodies = self.memory.bodies();
        // Read under the lock: an evicted body that grew would be counted as held, and released as
        // evicted.
        if self.is_evicted() {
            return Err(BodyMemoryFull);
        }
        let grown = bodies.grow(self.slot, bytes, waker, &mut evicted);
        let is_reading_due = bodies.is_reading_due();
        self.memory.end(bodies, evicted);
        if is_reading_due {
            self.memory.read();
        }
        grown
    }

    /// Ready when the body may be read on: not while evicted bodies use the memory that was
    /// promised for larger reservations.
    #[inline]
    pub fn poll_room(&self, waker: &Waker) -> Poll<()> {
        if self.memory.evicted_bytes.load(Ordering::Relaxed) == 0 {
            return Poll::Ready(());
        }
        self.memory.bodies().poll_room(self.slot, waker)
    }

    /// Returns true if the body was evicted and must end.
    #[inline]
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// Excludes the body from eviction, because it was read completely. An eviction that its task
    /// has not noticed is void.
    pub fn settle(&self) {
        let mut bodies = self.memory.bodies();
        let woken = bodies.settle(self.slot);
        self.memory.end(bodies, woken);
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        let mut bodies = self.memory.bodies();
        let woken = bodies.remove(self.slot, self.is_evicted());
        self.memory.end(bodies, woken);
    }
}

impl Bodies {
    fn insert(&mut self, entry: Entry) -> usize {
        if let Some(slot) = self.free.pop()
            && let Some(free) = self.entries.get_mut(slot)
        {
            *free = entry;
            return slot;
        }
        self.entries.push(entry);
        self.entries.len() - 1
    }

    /// Removes a body. Returns the tasks that waited for it.
    fn remove(&mut self, slot: usize, is_evicted: bool) -> Vec<Waker> {
        let Some(entry) = self.entries.get_mut(slot) else {
            return Vec::new();
        };
        let bytes = std::mem::take(&mut entry.bytes);
        entry.end();
        self.free.push(slot);
        if !is_evicted {
            self.held_bytes -= bytes;
            return Vec::new();
        }
        self.evicted_bytes -= bytes;
        self.take_paused()
    }

    /// Excludes a body from eviction. Returns the tasks that waited for it.
    fn settle(&mut self, slot: usize) -> Vec<Waker> {
        let Some(entry) = self.entries.get_mut(slot) else {
            return Vec::new();
        };
        entry.end();
        if !entry.is_evicted.swap(false, Ordering::Relaxed) {
            return Vec::new();
        }
        // Counted as evicted, it would hold up other bodies for as long as it is sent.
        self.evicted_bytes -= entry.bytes;
        self.held_bytes += entry.bytes;
        self.take_paused()
    }

    fn poll_room(&mut self, slot: usize, waker: &Waker) -> Poll<()> {
        let used = self.held_bytes.saturating_add(self.evicted_bytes);
        if self.evicted_bytes == 0 || used <= self.max_bytes {
            return Poll::Ready(());
        }
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.watch(waker);
            entry.is_paused = true;
        }
        Poll::Pending
    }

    /// The tasks that wait until evicted bodies are dropped.
    fn take_paused(&mut self) -> Vec<Waker> {
        let entries = self.entries.iter_mut();
        let paused = entries.filter_map(|entry| {
            let is_paused = std::mem::take(&mut entry.is_paused);
            is_paused.then(|| entry.waker.clone()).flatten()
        });
        paused.collect()
    }

    fn grow(
        &mut self,
        slot: usize,
        bytes: u64,
        waker: Option<&Waker>,
        evicted: &mut Vec<Waker>,
    ) -> Result<(), BodyMemoryFull> {
        let Some(entry) = self.entries.get_mut(slot) else {
            return Err(BodyMemoryFull);
        };
        if let Some(waker) = waker {
            entry.watch(waker);
        }
        let wanted = entry.bytes.saturating_add(bytes);
        while self.held_bytes.saturating_add(bytes) > self.max_bytes {
            let largest = self.largest().filter(|largest| *largest != slot);
            let largest = largest.filter(|largest| self.bytes(*largest) >= wanted);
            let Some(largest) = largest else {
                return Err(BodyMemoryFull);
            };
            evicted.extend(self.evict(largest));
        }
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.bytes = wanted;
        }
        self.count(bytes);
        Ok(())
    }

    fn count(&mut self, bytes: u64) {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        self.unread_bytes = self.unread_bytes.saturating_add(bytes);
        let used = self.held_bytes.saturating_add(self.evicted_bytes);
        self.peak_bytes = self.peak_bytes.max(used);
    }

    fn is_reading_due(&mut self) -> bool {
        let is_due = self.unread_bytes >= BYTES_PER_READING;
        if is_due {
            self.unread_bytes = 0;
        }
        is_due
    }

    fn bytes(&self, slot: usize) -> u64 {
        self.entries.get(slot).map_or(0, |entry| entry.bytes)
    }

    /// The largest body that may be evicted.
    fn largest(&self) -> Option<usize> {
        let entries = self.entries.iter().enumerate();
        let growing = entries.filter(|(_, entry)| entry.is_growing && entry.bytes > 0);
        let largest = growing.max_by_key(|(_, entry)| entry.bytes);
        largest.map(|(slot, _)| slot)
    }

    /// Marks a body as evicted, to be dropped by its task.
    fn evict(&mut self, slot: usize) -> Option<Waker> {
        let entry = self.entries.get_mut(slot)?;
        self.held_bytes -= entry.bytes;
        self.evicted_bytes += entry.bytes;
        entry.is_growing = false;
        entry.is_evicted.store(true, Ordering::Relaxed);
        entry.waker.take()
    }
}

impl Entry {
    fn watch(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|it| it.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }

    /// Ends the reading of the body.
    fn end(&mut self) {
        self.is_growing = false;
        self.waker = None;
        self.is_paused = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn body(memory: &Arc<BodyMemory>, bytes: u64) -> BodyReservation {
        let body = BodyReservation::new(memory);
        body.grow(bytes, None).unwrap();
        body
    }

    fn memory(max_bytes: u64) -> Arc<BodyMemory> {
        let memory = Arc::new(BodyMemory::default());
        memory.set_max(max_bytes);
        memory
    }

    #[test]
    fn growth_is_followed_by_a_reading_that_may_set_the_maximum() {
        let memory = Arc::new(BodyMemory::default());
        let weak = Arc::downgrade(&memory);
        memory.on_growth(move || weak.upgrade().unwrap().set_max(5));
        let small = body(&memory, 5);
        assert!(!small.is_evicted());

        let large = body(&memory, BYTES_PER_READING);

        assert!(large.is_evicted());
        assert!(!small.is_evicted());
        assert!(small.grow(1, None).is_err());
    }

    #[test]
    fn the_largest_body_ends_first_and_its_task_is_woken() {
        let memory = memory(100);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let (small, large) = (body(&memory, 30), body(&memory, 50));
        large.grow(10, Some(&waker)).unwrap();

        let grown = small.grow(11, None);

        assert_eq!(grown, Ok(()));
        assert!(large.is_evicted());
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert_eq!(large.grow(1, None), Err(BodyMemoryFull));
        assert_eq!(memory.held_bytes(), 41);
        // The memory is not free yet.
        assert!(small.poll_room(&waker).is_pending());
        drop(large);
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
        assert!(small.poll_room(&waker).is_ready());
        assert_eq!((memory.held_bytes(), memory.take_peak_bytes()), (41, 101));
        assert_eq!(memory.take_peak_bytes(), 41);
    }

    #[test]
    fn a_body_that_is_polled_again_and_again_while_it_pauses_is_woken_once() {
        let memory = memory(100);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let (small, large) = (body(&memory, 30), body(&memory, 60));
        small.grow(20, None).unwrap();

        for _ in 0..1_000 {
            assert!(small.poll_room(&waker).is_pending());
        }
        drop(large);

        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(small.poll_room(&waker).is_ready());
    }

    #[test]
    fn the_largest_body_is_refused_and_evicts_no_smaller_one() {
        let memory = memory(100);
        let (small, large) = (body(&memory, 30), body(&memory, 60));

        assert_eq!(large.grow(11, None), Err(BodyMemoryFull));

        assert!(!small.is_evicted() && !large.is_evicted());
        assert_eq!(memory.held_bytes(), 90);
        drop(large);
        assert_eq!(small.grow(70, None), Ok(()));
    }

    #[test]
    fn a_lower_maximum_evicts_from_the_largest_on() {
        let memory = memory(u64::MAX);
        let bodies: Vec<_> = [10, 40, 20, 30].map(|bytes| body(&memory, bytes)).into();

        memory.set_max(35);

        let evicted: Vec<bool> = bodies.iter().map(BodyReservation::is_evicted).collect();
        assert_eq!(evicted, [false, true, false, true]);
        assert_eq!(memory.held_bytes(), 30);
    }

    #[test]
    fn a_body_that_is_evicted_as_its_last_byte_is_read_holds_up_no_other() {
        let memory = memory(100);
        let (small, read) = (body(&memory, 30), body(&memory, 60));
        small.grow(20, None).unwrap();
        assert!(read.is_evicted());

        read.settle();

        assert!(!read.is_evicted());
        assert!(small.poll_room(Waker::noop()).is_ready());
        assert_eq!(memory.held_bytes(), 110);
        drop((small, read));
        assert_eq!(memory.held_bytes(), 0);
    }

    #[test]
    fn a_body_that_has_been_read_counts_and_stays() {
        let memory = memory(100);
        let read = body(&memory, 90);
        read.settle();

        let next = BodyReservation::new(&memory);
        assert_eq!(next.grow(11, None), Err(BodyMemoryFull));
        assert_eq!(next.grow(10, None), Ok(()));
        memory.set_max(50);

        assert!(!read.is_evicted() && next.is_evicted());
        drop((read, next));
        assert_eq!(memory.held_bytes(), 0);
    }
}
