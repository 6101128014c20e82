//! Times of renewals and retries, as pure functions.

use std::time::{Duration, SystemTime};

/// Wait after the first failure; four times as long after each further one.
const FIRST_RETRY: Duration = Duration::from_mins(1);
const RETRY_FACTOR: u32 = 4;
/// Maximum wait between two attempts, unless the authority requests more.
const MAX_RETRY: Duration = Duration::from_hours(6);
/// Maximum wait that the authority can request.
const MAX_ASKED: Duration = Duration::from_hours(7 * 24);
/// Minimum interval between two certificates with a lifetime of at least three intervals. Limits
/// the orders caused by a fast clock, or by a renewal window in the past.
const MIN_ORDER_INTERVAL: Duration = Duration::from_hours(24);
/// Divisor of the lifetime: the authority's window cannot move a renewal into the last tenth.
const LAST_PART: u32 = 10;
/// Divisor of the lifetime: renewals are spread over a twentieth.
const SPREAD_PART: u32 = 20;

/// Validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
}

/// Window in which the authority requests a renewal. [RFC 9773 §4.2]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the window.
    pub start: SystemTime,
    /// End of the window.
    pub end: SystemTime,
}

/// Time of a certificate's renewal: in the authority's window, or else shortly before two thirds of
/// its lifetime. `spread`, from 0 to 1, is constant for a certificate and differs between
/// certificates.
pub(crate) fn renewal_time(validity: Validity, window: Option<Window>, spread: f64) -> SystemTime {
    let Validity {
        not_before,
        not_after,
    } = validity;
    let lifetime = not_after.duration_since(not_before).unwrap_or_default();
    match window {
        None => not_before + lifetime / 3 * 2 - (lifetime / SPREAD_PART).mul_f64(spread),
        Some(Window { start, end }) => {
            let length = end.duration_since(start).unwrap_or_default();
            let chosen = start.checked_add(length.mul_f64(spread)).unwrap_or(start);
            chosen.min(not_after - lifetime / LAST_PART)
        }
    }
}

/// Earliest time of an order after a certificate was obtained at `now`.
pub(crate) fn earliest_order(validity: Validity, now: SystemTime) -> SystemTime {
    let lifetime = validity.not_after.duration_since(validity.not_before);
    now + (lifetime.unwrap_or_default() / 3).min(MIN_ORDER_INTERVAL)
}

/// Wait before the next attempt after `failures` consecutive failures, at least one. `asked` is the
/// wait requested by the authority.
pub fn retry_delay(failures: u32, asked: Option<Duration>) -> Duration {
    let factor = RETRY_FACTOR.saturating_pow(failures.saturating_sub(1));
    let delay = FIRST_RETRY.saturating_mul(factor).min(MAX_RETRY);
    delay.max(asked.unwrap_or_default().min(MAX_ASKED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    const DAY: Duration = Duration::from_hours(24);

    fn quarter() -> Validity {
        Validity {
            not_before: UNIX_EPOCH,
            not_after: UNIX_EPOCH + DAY * 90,
        }
    }

    #[test]
    fn a_certificate_is_renewed_a_month_before_its_end_or_a_little_earlier() {
        assert_eq!(renewal_time(quarter(), None, 0.0), UNIX_EPOCH + DAY * 60);
        let earliest = UNIX_EPOCH + DAY * 60 - DAY * 9 / 2;
        assert_eq!(renewal_time(quarter(), None, 1.0), earliest);
    }

    #[test]
    fn the_authority_moves_a_renewal_earlier_and_later_but_not_to_the_end() {
        let window = |start: u32, end: u32| {
            let (start, end) = (UNIX_EPOCH + DAY * start, UNIX_EPOCH + DAY * end);
            Some(Window { start, end })
        };
        let at = |window, spread| renewal_time(quarter(), window, spread);
        assert_eq!(at(window(10, 12), 0.5), UNIX_EPOCH + DAY * 11);
        assert_eq!(at(window(70, 72), 0.0), UNIX_EPOCH + DAY * 70);
        assert_eq!(at(window(200, 210), 0.0), UNIX_EPOCH + DAY * 81);
        assert_eq!(at(window(12, 10), 0.5), UNIX_EPOCH + DAY * 12);
    }

    #[test]
    fn a_clock_that_is_ahead_orders_one_certificate_a_day() {
        let ahead = UNIX_EPOCH + DAY * 80;
        assert!(renewal_time(quarter(), None, 0.0) < ahead);
        assert_eq!(earliest_order(quarter(), ahead), ahead + DAY);
        let short = Validity {
            not_before: UNIX_EPOCH,
            not_after: UNIX_EPOCH + Duration::from_secs(9),
        };
        let earliest = UNIX_EPOCH + Duration::from_secs(3);
        assert_eq!(earliest_order(short, UNIX_EPOCH), earliest);
    }

    #[test]
    fn attempts_become_rarer_and_never_rarer_than_four_a_day() {
        let minutes: Vec<u64> = (1..=7)
            .map(|n| retry_delay(n, None).as_secs() / 60)
            .collect();
        assert_eq!(minutes, [1, 4, 16, 64, 256, 360, 360]);
        assert_eq!(retry_delay(u32::MAX, None), MAX_RETRY);
    }

    #[test]
    fn the_authority_can_ask_for_a_longer_delay_within_a_bound() {
        assert_eq!(retry_delay(1, Some(DAY)), DAY);
        assert_eq!(
            retry_delay(4, Some(Duration::from_secs(1))).as_secs(),
            64 * 60
        );
        assert_eq!(retry_delay(1, Some(DAY * 365)), MAX_ASKED);
    }
}
