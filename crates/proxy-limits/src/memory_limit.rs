//! The limit on the process's memory.

mod body_memory;
mod response_memory;

pub use body_memory::{BodyMemory, BodyMemoryFull, BodyReservation};
pub use response_memory::ResponseReservation;

use crate::client_key::ClientKey;
use response_memory::ResponseMemory;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Settings of the memory limit. Destructured by naming every field.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryLimitSettings {
    /// Maximum resident memory in bytes: `max-memory-bytes`.
    pub max_bytes: Option<u64>,
    /// Maximum resident memory in percent of the machine's or control group's, 0 to 100:
    /// `max-memory-percent`. The smaller of the two limits applies.
    pub max_percent: Option<f64>,
}

/// State of load shedding for lack of memory: written by one thread that measures the resident
/// memory, read by all workers.
///
/// Above the limit load is shed; it is accepted again below 90 % of the limit, which prevents
/// oscillation. Bodies that are buffered have the room that the rest of the process leaves below 85
/// %, so that they alone never cause load to be shed.
#[derive(Debug, Default)]
pub struct MemoryLimit {
    /// 0 is without limit.
    max_bytes: AtomicU64,
    /// The active limit is the one in percent.
    is_by_percent: AtomicBool,
    shedding: AtomicBool,
    used_bytes: AtomicU64,
    bodies: Arc<BodyMemory>,
    responses: Arc<ResponseMemory>,
    /// Memory of bodies, including freed memory that the allocator retains.
    resident_body_bytes: AtomicU64,
    /// Memory that will soon be used by connections accepted since the reading before the last.
    expected_bytes: AtomicU64,
    /// The part of `expected_bytes` for connections accepted since the last reading.
    newly_expected_bytes: AtomicU64,
    /// Held while a reading is turned into the maximum of bodies.
    is_reading: AtomicBool,
}

/// Expected memory of a connection soon after its accept, in bytes: its task and one read.
const EXPECTED_PER_CONNECTION: u64 = 40 << 10;

/// The effect of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryChange {
    /// Nothing.
    Unchanged,
    /// The limit was exceeded: new connections are refused, and queues flushed.
    SheddingBegan {
        /// Resident memory in bytes.
        used_bytes: u64,
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// Less than 90 % of the limit is used: new connections are accepted again.
    Recovered {
        /// Resident memory in bytes.
        used_bytes: u64,
        /// The limit in bytes.
        max_bytes: u64,
    },
}

impl MemoryLimit {
    /// A limit on a machine, or in a control group, with `total_bytes`. Without settings load is
    /// never shed.
    #[must_use]
    pub fn new(settings: MemoryLimitSettings, total_bytes: u64) -> Self {
        let limit = Self::default();
        limit.set_max(settings, total_bytes);
        limit
    }

    /// Applies `settings`, on a machine, or in a control group, of `total_bytes`. Returns the
    /// change that the last reading causes under them.
    pub fn apply(&self, settings: MemoryLimitSettings, total_bytes: u64) -> MemoryChange {
        self.set_max(settings, total_bytes);
        self.observe(self.used_bytes())
    }

    fn set_max(&self, settings: MemoryLimitSettings, total_bytes: u64) {
        let max_bytes = settings.max_bytes_of(total_bytes);
        let is_by_percent = settings.max_bytes.is_none_or(|max| max_bytes < Some(max));
        self.is_by_percent.store(is_by_percent, Ordering::Relaxed);
        self.max_bytes
            .store(max_bytes.unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns true if the active limit is the one in percent, not the one in bytes.
    pub fn is_by_percent(&self) -> bool {
        self.is_by_percent.load(Ordering::Relaxed)
    }

    /// Also reads the resident memory with `resident_bytes` whenever bodies have grown by a
    /// mebibyte, and adapts the maximum of bodies.
    pub fn read_on_growth(self: &Arc<Self>, resident_bytes: fn() -> Option<u64>) {
        let limit = Arc::downgrade(self);
        self.bodies.on_growth(move || {
            if let Some(limit) = limit.upgrade()
                && limit.max_bytes().is_some()
                && let Some(used_bytes) = resident_bytes()
            {
                limit.make_room_for_bodies(used_bytes);
            }
        });
    }

    /// Records a measurement of the resident memory, in bytes, at regular intervals.
    pub fn observe(&self, used_bytes: u64) -> MemoryChange {
        let expected = self.newly_expected_bytes.swap(0, Ordering::Relaxed);
        self.expected_bytes.store(expected, Ordering::Relaxed);
        self.make_room_for_bodies(used_bytes);
        let was_shedding = self.is_shedding();
        let Some(max_bytes) = self.max_bytes() else {
            if !was_shedding {
                return MemoryChange::Unchanged;
            }
            self.shedding.store(false, Ordering::Relaxed);
            let max_bytes = u64::MAX;
            return MemoryChange::Recovered {
                used_bytes,
                max_bytes,
            };
        };
        if !was_shedding && used_bytes > max_bytes {
            self.shedding.store(true, Ordering::Relaxed);
            return MemoryChange::SheddingBegan {
                used_bytes,
                max_bytes,
            };
        }
        if was_shedding && used_bytes < ninety_percent(max_bytes) {
            self.shedding.store(false, Ordering::Relaxed);
            return MemoryChange::Recovered {
                used_bytes,
                max_bytes,
            };
        }
        MemoryChange::Unchanged
    }

    /// Sets the maximum of buffered bodies. Memory that the allocator kept from earlier bodies
    /// serves later ones, until the resident memory falls.
    fn make_room_for_bodies(&self, used_bytes: u64) {
        if self.is_reading.swap(true, Ordering::Acquire) {
            // Another thread already uses an equally recent reading.
            return;
        }
        let before = self.used_bytes.swap(used_bytes, Ordering::Relaxed);
        let Some(max_bytes) = self.max_bytes() else {
            self.bodies.set_max(u64::MAX);
            return self.is_reading.store(false, Ordering::Release);
        };
        let returned = before.saturating_sub(used_bytes);
        let resident = self.resident_body_bytes.load(Ordering::Relaxed);
        let resident = resident
            .saturating_sub(returned)
            .max(self.bodies.take_peak_bytes());
        self.resident_body_bytes.store(resident, Ordering::Relaxed);
        let expected = self.expected_bytes.load(Ordering::Relaxed);
        let others = used_bytes.saturating_sub(resident) + expected;
        self.bodies
            .set_max(body_line(max_bytes).saturating_sub(others));
        self.is_reading.store(false, Ordering::Release);
    }

    /// The memory of bodies that are buffered.
    pub fn bodies(&self) -> &Arc<BodyMemory> {
        &self.bodies
    }

    /// Memory for a response of `bytes` that the program makes for `client`; `None` if its share or
    /// the memory is used up.
    pub fn reserve_response(&self, client: ClientKey, bytes: u64) -> Option<ResponseReservation> {
        if self.is_shedding() {
            return None;
        }
        self.responses.reserve(&self.bodies, client, bytes)
    }

    /// Takes a new connection into account, unless the limit leaves no room for it.
    #[inline]
    pub fn admit_connection(&self) -> bool {
        let Some(max_bytes) = self.max_bytes() else {
            return true;
        };
        let expected = self.expected_bytes.load(Ordering::Relaxed);
        if self.is_shedding() || self.used_bytes().saturating_add(expected) > max_bytes {
            return false;
        }
        for expected in [&self.expected_bytes, &self.newly_expected_bytes] {
            expected.fetch_add(EXPECTED_PER_CONNECTION, Ordering::Relaxed);
        }
        self.bodies.lower_max(EXPECTED_PER_CONNECTION);
        true
    }

    /// Returns true if new connections must be refused.
    #[inline]
    pub fn is_shedding(&self) -> bool {
        self.shedding.load(Ordering::Relaxed)
    }

    /// The limit in bytes, if there is one.
    pub fn max_bytes(&self) -> Option<u64> {
        Some(self.max_bytes.load(Ordering::Relaxed)).filter(|max| *max > 0)
    }

    /// Resident memory at the last reading, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

impl MemoryLimitSettings {
    /// The limit in bytes where there are `total_bytes`, if there is one.
    #[must_use]
    pub fn max_bytes_of(self, total_bytes: u64) -> Option<u64> {
        let Self {
            max_bytes,
            max_percent,
        } = self;
        let share = max_percent.map(|percent| share(total_bytes, percent));
        [max_bytes, share].into_iter().flatten().min()
    }
}

fn ninety_percent(bytes: u64) -> u64 {
    bytes - bytes / 10
}

/// Resident memory up to which bodies may be buffered, in bytes.
fn body_line(max_bytes: u64) -> u64 {
    max_bytes - max_bytes / 20 * 3
}

/// `percent` of `total`, exact to a millionth.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 100 million"
)]
fn share(total: u64, percent: f64) -> u64 {
    let millionths = (percent.clamp(0.0, 100.0) * 10_000.0).round() as u64;
    let share = u128::from(total) * u128::from(millionths) / 1_000_000;
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_limit::body_memory::BodyReservation;

    fn limit(max_bytes: Option<u64>, max_percent: Option<f64>) -> MemoryLimit {
        let settings = MemoryLimitSettings {
            max_bytes,
            max_percent,
        };
        MemoryLimit::new(settings, 2_000)
    }

    #[test]
    fn shedding_begins_above_the_limit_and_ends_below_ninety_percent() {
        let memory = limit(Some(1_000), None);
        let began = MemoryChange::SheddingBegan {
            used_bytes: 1_001,
            max_bytes: 1_000,
        };
        let recovered = MemoryChange::Recovered {
            used_bytes: 899,
            max_bytes: 1_000,
        };
        let readings = [
            (1_000, MemoryChange::Unchanged, false),
            (1_001, began, true),
            (2_000, MemoryChange::Unchanged, true),
            (900, MemoryChange::Unchanged, true),
            (899, recovered, false),
            (1_000, MemoryChange::Unchanged, false),
        ];
        for (used, change, shedding) in readings {
            assert_eq!(memory.observe(used), change, "{used}");
            assert_eq!(memory.is_shedding(), shedding, "{used}");
        }
    }

    #[test]
    fn bodies_may_use_memory_up_to_85_percent_of_the_limit() {
        let memory = limit(Some(1_000), None);
        let body = |bytes| {
            let body = BodyReservation::new(memory.bodies());
            body.grow(bytes, None).map(|()| body)
        };
        memory.observe(300);

        let large = body(550).unwrap();
        assert!(large.grow(1, None).is_err());
        // The body is resident now, and connections were accepted.
        memory.observe(900);
        assert!(large.is_evicted());
        drop(large);
        // The allocator retains its memory, which is available to other bodies.
        memory.observe(900);
        assert!(body(500).is_ok());
        assert!(body(501).is_err());
    }

    #[test]
    fn memory_of_bodies_that_was_returned_leaves_the_room_that_connections_do() {
        let memory = limit(Some(1_000), None);
        let body = |bytes| {
            let body = BodyReservation::new(memory.bodies());
            body.grow(bytes, None).map(|()| body)
        };
        memory.observe(300);
        drop(body(550).unwrap());
        memory.observe(900);

        memory.observe(350);

        assert!(body(500).is_ok());
        assert!(body(501).is_err());
    }

    #[test]
    fn connections_count_before_they_are_seen_in_a_reading() {
        let max = 20 * EXPECTED_PER_CONNECTION;
        let memory = limit(Some(max), None);
        memory.observe(10 * EXPECTED_PER_CONNECTION);

        let admitted = (0..100).filter(|_| memory.admit_connection()).count();

        assert_eq!(admitted, 11);
        // They are being set up at the next reading, and in the one after that.
        memory.observe(10 * EXPECTED_PER_CONNECTION);
        assert!(!memory.admit_connection());
        memory.observe(12 * EXPECTED_PER_CONNECTION);
        assert!(memory.admit_connection());
        assert!(limit(None, None).admit_connection());
    }

    #[test]
    fn the_smaller_of_both_limits_holds() {
        let cases = [
            (None, None, None),
            (Some(1_000), None, Some(1_000)),
            (None, Some(80.0), Some(1_600)),
            (Some(1_000), Some(80.0), Some(1_000)),
            (Some(1_000), Some(12.5), Some(250)),
        ];
        for (bytes, percent, max) in cases {
            let memory = limit(bytes, percent);
            assert_eq!(memory.max_bytes(), max);
            assert_eq!(memory.is_by_percent(), max != bytes || max.is_none());
        }
        let unlimited = limit(None, None);
        assert_eq!(unlimited.observe(u64::MAX), MemoryChange::Unchanged);
    }

    #[test]
    fn a_reload_continues_shedding_until_there_is_room_under_the_new_limit() {
        let memory = limit(Some(1_000), None);
        let bytes = |max| MemoryLimitSettings {
            max_bytes: Some(max),
            max_percent: None,
        };
        memory.observe(1_500);
        assert_eq!(memory.apply(bytes(1_600), 0), MemoryChange::Unchanged);
        assert!(memory.is_shedding());

        memory.apply(bytes(2_000), 0);
        assert!(!memory.is_shedding());
        memory.apply(bytes(1_400), 0);
        assert!(memory.is_shedding());
        memory.apply(MemoryLimitSettings::default(), 0);
        assert!(!memory.is_shedding());
    }
}
