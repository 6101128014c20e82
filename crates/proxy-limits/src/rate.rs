//! Rates without rounding, and the settings of a rate limit.

/// Maximum number of events in the period of a [`Rate`].
pub const MAX_RATE_EVENTS: u32 = 10_000_000;

/// Maximum period of a [`Rate`], in seconds: one day.
pub const MAX_RATE_PERIOD_SECS: u32 = 86_400;

const NS_PER_SEC: u64 = 1_000_000_000;

/// A number of events in a period, stored as a fraction: 1/3 per hour is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    // In lowest terms by whole seconds, both at least 1.
    events: u64,
    period_secs: u64,
}

/// Settings of a rate limit. Destructured by naming every field, so that a new one is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateLimitSettings {
    /// Average rate of admitted events.
    pub rate: Rate,
    /// Number of events admitted at once after a pause: the capacity of the bucket. At least 1.
    pub burst: u32,
}

/// The reason why a rate or a rate limit is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// No events, no period, or no burst: no event would ever be admitted.
    #[error("a rate limit needs at least one event, a period and a burst of at least one")]
    Zero,
    /// More than [`MAX_RATE_EVENTS`], or over more than [`MAX_RATE_PERIOD_SECS`].
    #[error("a rate is at most 10000000 events, in a period of at most one day")]
    OutOfRange,
}

impl Rate {
    /// `events` in each second, 1 to 10 000 000.
    ///
    /// # Errors
    /// [`RateError::Zero`] or [`RateError::OutOfRange`].
    pub fn per_second(events: u32) -> Result<Self, RateError> {
        Self::per(events, 1)
    }

    /// `events` (1 to 10 000 000) in each `period_secs` (1 to 86 400): 300 a minute, or one in ten
    /// seconds.
    ///
    /// # Errors
    /// [`RateError::Zero`] or [`RateError::OutOfRange`].
    pub fn per(events: u32, period_secs: u32) -> Result<Self, RateError> {
        if events == 0 || period_secs == 0 {
            return Err(RateError::Zero);
        }
        if events > MAX_RATE_EVENTS || period_secs > MAX_RATE_PERIOD_SECS {
            return Err(RateError::OutOfRange);
        }
        let (events, period_secs) = (u64::from(events), u64::from(period_secs));
        let shared = greatest_common_divisor(events, period_secs);
        Ok(Self {
            events: events / shared,
            period_secs: period_secs / shared,
        })
    }

    /// Events and the ticks they are counted over, in lowest terms. `tick_ns` is a divisor of a
    /// second.
    pub(crate) const fn fraction(self, tick_ns: u64) -> (u64, u64) {
        let ticks = self.period_secs * (NS_PER_SEC / tick_ns);
        let shared = greatest_common_divisor(self.events, ticks);
        (self.events / shared, ticks / shared)
    }
}

impl RateLimitSettings {
    /// `events` a second with a burst of ten times as many, as the `limits` block has it.
    ///
    /// # Errors
    /// [`RateError`] outside 1 to 10 000 000.
    pub fn per_second(events: u32) -> Result<Self, RateError> {
        Ok(Self {
            rate: Rate::per_second(events)?,
            burst: events.saturating_mul(10),
        })
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rates_are_equal_however_they_were_written() {
        let minute = Rate::per(300, 60).unwrap();

        assert_eq!(minute, Rate::per_second(5).unwrap());
        assert_eq!(minute.fraction(1), (1, 200_000_000));
        let odd = Rate::per_second(9_999_999).unwrap();
        assert_eq!(odd.fraction(1), (9_999_999, 1_000_000_000));
        assert_eq!(minute.fraction(1_000), (1, 200_000));
    }

    #[test]
    fn a_rate_of_nothing_or_too_much_is_refused() {
        let cases = [
            (0, 1, RateError::Zero),
            (1, 0, RateError::Zero),
            (MAX_RATE_EVENTS + 1, 1, RateError::OutOfRange),
            (1, MAX_RATE_PERIOD_SECS + 1, RateError::OutOfRange),
        ];
        for (events, secs, error) in cases {
            assert_eq!(Rate::per(events, secs), Err(error), "{events}/{secs} s");
        }
        assert!(Rate::per(1, MAX_RATE_PERIOD_SECS).is_ok());
        assert!(Rate::per_second(MAX_RATE_EVENTS).is_ok());
    }

    #[test]
    fn the_limits_block_bursts_ten_times_its_rate() {
        assert_eq!(RateLimitSettings::per_second(7).unwrap().burst, 70);
    }
}
