//! Freezes: weekly times without changes, in UTC.

use crate::access::refusal::Refusal;
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::str::FromStr;

/// Maximum number of freezes per project.
const MAX_FREEZES: usize = 16;
const DAY_MINUTES: u16 = 24 * 60;
const WEEK_MINUTES: u16 = 7 * DAY_MINUTES;
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Minutes from Monday 00:00 to Thursday 00:00, the weekday of the Unix epoch.
const EPOCH_MINUTE: i64 = 3 * 24 * 60;

/// A weekly time without changes, such as `Fri 16:00-Mon 08:00`; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    start: WeekMinute,
    end: WeekMinute,
}

/// The freezes of a project, at most 16.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freezes(Vec<Freeze>);

/// Minutes since Monday 00:00 UTC; less than a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WeekMinute(u16);

impl Freezes {
    /// Parses freezes from text.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] for a malformed text, or too many.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, Refusal> {
        let freezes: Vec<Freeze> = texts
            .into_iter()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        if MAX_FREEZES < freezes.len() {
            return Err(Refusal::invalid("freeze", "has more than 16 times"));
        }
        Ok(Self(freezes))
    }

    /// The text of each freeze, readable by [`Freezes::parse`].
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// End of the freeze at `now`, across overlapping and adjacent freezes; `None` outside a
    /// freeze. If the freezes cover the whole week, the end is a week later.
    pub fn end(&self, now: Timestamp) -> Option<Timestamp> {
        let mut minute = WeekMinute::from(now);
        let mut minutes: u16 = 0;
        while let Some(freeze) = self.0.iter().find(|freeze| freeze.contains(minute)) {
            minutes += freeze.end.since(minute);
            minute = freeze.end;
            if WEEK_MINUTES <= minutes {
                minutes = WEEK_MINUTES;
                break;
            }
        }
        if minutes == 0 {
            return None;
        }
        let started = now.as_second().div_euclid(60) * 60;
        let started = Timestamp::from_second(started).unwrap_or(now);
        let length = SignedDuration::from_mins(i64::from(minutes));
        Some(started.checked_add(length).unwrap_or(Timestamp::MAX))
    }

    /// Returns true if `self` freezes every minute that the argument freezes.
    pub(super) fn cover(&self, others: &Self) -> bool {
        let has = |freezes: &Self, minute| freezes.0.iter().any(|one| one.contains(minute));
        let mut week = (0..WEEK_MINUTES).map(WeekMinute);
        week.all(|minute| !has(others, minute) || has(self, minute))
    }
}

impl Freeze {
    fn contains(self, minute: WeekMinute) -> bool {
        minute.since(self.start) < self.end.since(self.start)
    }
}

impl FromStr for Freeze {
    type Err = Refusal;

    /// Parses a text such as `Fri 16:00-Mon 08:00`; the hyphen may be a dash, and spaces may
    /// surround it.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let wrong = || {
            Refusal::invalid(
                "freeze",
                "has a time that is not like `Fri 16:00-Mon 08:00`",
            )
        };
        let (start, end) = text.split_once(['-', '–']).ok_or_else(wrong)?;
        let start = WeekMinute::parse(start).ok_or_else(wrong)?;
        let end = WeekMinute::parse(end).ok_or_else(wrong)?;
        if start == end {
            return Err(Refusal::invalid(
                "freeze",
                "has a time that ends where it begins",
            ));
        }
        Ok(Self { start, end })
    }
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, end } = self;
        write!(f, "{start}-{end}")
    }
}

impl WeekMinute {
    fn parse(text: &str) -> Option<Self> {
        let (day, time) = text.trim().split_once(' ')?;
        let day = DAYS
            .iter()
            .position(|name| name.eq_ignore_ascii_case(day))?;
        let (hour, minute) = time.trim().split_once(':')?;
        let number = |digits: &str| -> Option<u16> {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten()
        };
        let (hour, minute) = (number(hour)?, number(minute)?);
        let day = u16::try_from(day).ok()?;
        let is_time = hour < 24 && minute < 60;
        is_time.then(|| Self(day * DAY_MINUTES + hour * 60 + minute))
    }

    /// Minutes from `earlier` to this one, wrapping at the end of the week.
    fn since(self, earlier: Self) -> u16 {
        (self.0 + WEEK_MINUTES - earlier.0) % WEEK_MINUTES
    }
}

impl From<Timestamp> for WeekMinute {
    fn from(time: Timestamp) -> Self {
        let minute = time.as_second().div_euclid(60) + EPOCH_MINUTE;
        let minute = minute.rem_euclid(i64::from(WEEK_MINUTES));
        Self(u16::try_from(minute).unwrap_or_default())
    }
}

impl fmt::Display for WeekMinute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = DAYS
            .get(usize::from(self.0 / DAY_MINUTES))
            .unwrap_or(&"Mon");
        let minute = self.0 % DAY_MINUTES;
        write!(f, "{day} {:02}:{:02}", minute / 60, minute % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(texts: &[&str], now: &str) -> Option<String> {
        let freezes = Freezes::parse(texts.iter().copied()).unwrap();
        let end = freezes.end(now.parse().unwrap());
        end.map(|end| end.to_string())
    }

    #[test]
    fn a_freeze_holds_from_its_first_minute_to_before_its_last() {
        let weekend = ["Fri 16:00-Mon 08:00"];
        let monday = Some("2026-11-30T08:00:00Z".to_owned());
        for (now, expected) in [
            ("2026-11-27T15:59:59Z", None),
            ("2026-11-27T16:00:00Z", monday.clone()),
            ("2026-11-29T23:59:59Z", monday.clone()),
            ("2026-11-30T07:59:59Z", monday),
            ("2026-11-30T08:00:00Z", None),
        ] {
            assert_eq!(end(&weekend, now), expected, "{now}");
        }
    }

    #[test]
    fn freezes_that_follow_each_other_end_together() {
        let nights = [
            "Mon 22:00-Tue 06:00",
            "Tue 06:00-Tue 07:00",
            "Mon 20:00-Mon 23:00",
        ];
        let expected = Some("2026-11-24T07:00:00Z".to_owned());
        assert_eq!(end(&nights, "2026-11-23T21:30:15Z"), expected);
        let all = ["Mon 00:00-Thu 00:00", "Thu 00:00-Mon 00:00"];
        let week = Some("2026-11-30T21:30:00Z".to_owned());
        assert_eq!(end(&all, "2026-11-23T21:30:15Z"), week);
    }

    #[test]
    fn a_freeze_is_parsed_and_formatted_canonically() {
        let freezes = Freezes::parse(["fri 16:00 – MON 08:00"]).unwrap();
        assert_eq!(freezes.texts(), ["Fri 16:00-Mon 08:00"]);
        for wrong in [
            "",
            "Fri",
            "Fri 16:00",
            "Fri 16:00-Fri 16:00",
            "Fri 24:00-Mon 08:00",
            "Fri 1:00-Mon 08:00",
            "Friday 16:00-Mon 08:00",
            "Fri 16:60-Mon 08:00",
            "Fri +6:00-Mon 08:00",
        ] {
            assert!(Freezes::parse([wrong]).is_err(), "{wrong}");
        }
        assert!(Freezes::parse(["Mon 00:00-Mon 00:01"; 17]).is_err());
    }

    #[test]
    fn a_longer_freeze_covers_a_shorter_one() {
        let [long, short, apart] = [
            "Fri 00:00-Mon 08:00",
            "Sat 00:00-Mon 08:00",
            "Tue 00:00-Tue 01:00",
        ]
        .map(|text| Freezes::parse([text]).unwrap());
        assert!(long.cover(&short));
        assert!(!short.cover(&long));
        assert!(!long.cover(&apart));
        assert!(long.cover(&Freezes::default()));
    }
}
