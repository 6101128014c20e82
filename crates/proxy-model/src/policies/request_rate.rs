//! Rates of requests, also below one a second.

use std::fmt;
use std::str::FromStr;

/// Names of periods with their lengths in seconds; the first name of each length is shown.
const PERIODS: [(&str, u32); 10] = [
    ("s", 1),
    ("sec", 1),
    ("second", 1),
    ("min", 60),
    ("m", 60),
    ("minute", 60),
    ("h", 3_600),
    ("hour", 3_600),
    ("day", 86_400),
    ("d", 86_400),
];
/// Maximum number of requests in a period.
const MAX_EVENTS: u32 = 1_000_000;

/// A number of requests in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestRate {
    /// Requests, 1 to 1 000 000.
    pub events: u32,
    /// Length of the period in seconds: 1, 60, 3 600 or 86 400.
    pub period_secs: u32,
}

impl RequestRate {
    /// `events` in each second.
    #[must_use]
    pub const fn per_second(events: u32) -> Self {
        Self {
            events,
            period_secs: 1,
        }
    }

    /// Requests a second, for comparisons.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.events) / f64::from(self.period_secs)
    }
}

impl FromStr for RequestRate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let form = "write a number and a period, as `5/min`: `s`, `min`, `h` or `day`";
        let (events, period) = text.split_once('/').ok_or(form)?;
        let events = events.trim().parse().map_err(|_| form)?;
        if !(1..=MAX_EVENTS).contains(&events) {
            return Err("at least 1 and at most 1000000 requests");
        }
        let period = period.trim();
        let known = PERIODS.iter().find(|(name, _)| *name == period);
        let (_, period_secs) = known.ok_or(form)?;
        Ok(Self {
            events,
            period_secs: *period_secs,
        })
    }
}

impl fmt::Display for RequestRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            events,
            period_secs,
        } = self;
        let period = PERIODS.iter().find(|(_, secs)| secs == period_secs);
        write!(f, "{events}/{}", period.map_or("s", |(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_number_and_a_period() {
        for (text, shown) in [
            ("5/min", "5/min"),
            ("5 / minute", "5/min"),
            ("1/h", "1/h"),
            ("100/s", "100/s"),
            ("10/day", "10/day"),
        ] {
            let rate = text.parse::<RequestRate>().map(|rate| rate.to_string());
            assert_eq!(rate.as_deref(), Ok(shown), "{text}");
        }
        for text in [
            "",
            "5",
            "5/week",
            "0/min",
            "1000001/s",
            "-1/s",
            "1.5/s",
            "/min",
        ] {
            assert!(text.parse::<RequestRate>().is_err(), "{text}");
        }
    }
}
