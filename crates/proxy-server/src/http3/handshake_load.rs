//! Limits on the open handshakes of one endpoint. Above the first, clients must prove their
//! address.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Connections of an endpoint in their handshake, above which clients must prove their address
/// first.
const RETRY_HANDSHAKES: u64 = 32;

/// Maximum number of connections of an endpoint in their handshake; further ones are not answered.
const MAX_HANDSHAKES: u64 = 1024;

/// Handshakes with an unproven address that may fail in one second: a spoofed datagram fails at
/// once, and would be recorded for as many addresses as its sender invents.
const UNPROVEN_FAILURES: u32 = 32;

const SECOND: Duration = Duration::from_secs(1);

/// Handshakes that are open, and that have failed.
#[derive(Debug, Default)]
pub(super) struct HandshakeLoad {
    open: Rc<Cell<u64>>,
    failures: u32,
    /// Beginning of the second in which the failures are counted.
    since: Option<Instant>,
}

/// An open handshake, which ends on drop.
pub(super) struct HandshakeSlot(Rc<Cell<u64>>);

/// The decision on the first datagram of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The handshake begins.
    Accept,
    /// The client must prove its address first. [RFC 9000 §8.1.2]
    Retry,
    /// No answer: the limit of open handshakes is reached.
    Ignore { limit: u64 },
}

impl HandshakeLoad {
    /// Decides on a connection at `now`; `is_proven` is true after the client's answer to a Retry.
    pub(super) fn admit(&self, is_proven: bool, now: Instant) -> Admission {
        let open = self.open.get();
        if open >= MAX_HANDSHAKES {
            Admission::Ignore {
                limit: MAX_HANDSHAKES,
            }
        } else if !is_proven
            && (open >= RETRY_HANDSHAKES || self.failures(now) >= UNPROVEN_FAILURES)
        {
            Admission::Retry
        } else {
            Admission::Accept
        }
    }

    /// Counts a handshake until the slot is dropped.
    pub(super) fn begin(&self) -> HandshakeSlot {
        self.open.set(self.open.get() + 1);
        HandshakeSlot(Rc::clone(&self.open))
    }

    /// Counts a first datagram that was refused at `now`.
    pub(super) fn fail(&mut self, now: Instant) {
        self.failures = self.failures(now).saturating_add(1);
        if self.failures == 1 {
            self.since = Some(now);
        }
    }

    /// Failures in the current second.
    fn failures(&self, now: Instant) -> u32 {
        let is_current = |since: Instant| now.saturating_duration_since(since) < SECOND;
        if self.since.is_some_and(is_current) {
            self.failures
        } else {
            0
        }
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the library takes instants")]
    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn many_open_handshakes_ask_for_a_proof_and_then_get_no_answer() {
        let (load, now) = (HandshakeLoad::default(), now());
        let mut open = Vec::new();
        let ignored = Admission::Ignore {
            limit: MAX_HANDSHAKES,
        };
        for (count, unproven, proven) in [
            (RETRY_HANDSHAKES - 1, Admission::Accept, Admission::Accept),
            (RETRY_HANDSHAKES, Admission::Retry, Admission::Accept),
            (MAX_HANDSHAKES, ignored, ignored),
        ] {
            open.resize_with(usize::try_from(count).unwrap(), || load.begin());
            assert_eq!(load.admit(false, now), unproven, "{count}");
            assert_eq!(load.admit(true, now), proven, "{count}");
        }
        drop(open);
        assert_eq!(load.admit(false, now), Admission::Accept);
    }

    #[test]
    fn failures_ask_for_a_proof_for_the_rest_of_their_second() {
        let (mut load, start) = (HandshakeLoad::default(), now());
        for _ in 0..UNPROVEN_FAILURES {
            assert_eq!(load.admit(false, start), Admission::Accept);
            load.fail(start);
        }
        assert_eq!(load.admit(false, start), Admission::Retry);
        assert_eq!(load.admit(true, start), Admission::Accept);
        assert_eq!(load.admit(false, start + SECOND), Admission::Accept);
        load.fail(start + SECOND);
        assert_eq!(load.admit(false, start + SECOND), Admission::Accept);
    }
}
