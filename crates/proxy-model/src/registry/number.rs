//! Numeric kinds: counts, ratios, sizes and times.

use super::kind::{Kind, Shape, Shaped};
use super::value_error::{Raw, ValueError};
use crate::size::{self, show_size};
use std::fmt;
use std::time::Duration;

/// A whole number with a range.
#[derive(Clone, Copy, Debug)]
pub struct Integer<T> {
    pub(super) least: T,
    pub(super) greatest: T,
    pub(super) unit: &'static str,
    pub(super) words: &'static [(&'static str, i32)],
}

/// A number with a fraction and a range.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    pub(super) least: f64,
    pub(super) greatest: f64,
    pub(super) unit: &'static str,
}

/// A number of bytes with a range.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub(super) least: u64,
    pub(super) greatest: u64,
}

/// A time with a range, written in whole seconds or milliseconds according to the name's suffix.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    pub(super) least: Duration,
    pub(super) greatest: Duration,
}

/// An integer type that [`Integer`] can hold.
pub trait WholeNumber: Copy + Ord + fmt::Display + Into<i128> + TryFrom<i128> + From<u8> {}

impl<T: Copy + Ord + fmt::Display + Into<i128> + TryFrom<i128> + From<u8>> WholeNumber for T {}

impl<T: WholeNumber> Shaped for Integer<T> {
    fn shape(&self) -> Shape {
        let Self {
            least,
            greatest,
            unit,
            words,
        } = *self;
        Shape::Integer {
            least: least.into(),
            greatest: greatest.into(),
            unit,
            words,
        }
    }
}

impl<T: WholeNumber> Kind for Integer<T> {
    type Value = T;
    type DefaultValue = T;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<T, ValueError> {
        let number = match raw {
            Raw::Integer(number) => number,
            Raw::Text(text) if !self.words.is_empty() => self.word(text)?,
            Raw::Text(_) | Raw::Decimal(_) | Raw::Flag(_) | Raw::Null => {
                return Err(raw.is_not("a whole number"));
            }
        };
        let in_range = |value: &T| (self.least..=self.greatest).contains(value);
        let value = T::try_from(number).ok().filter(in_range);
        value.ok_or_else(|| ValueError::Range {
            least: self.least.to_string(),
            greatest: self.greatest.to_string(),
        })
    }

    fn default_value(&self, default: T) -> T {
        default
    }

    fn show(&self, _name: &str, default: T) -> String {
        default.to_string()
    }
}

impl<T> Integer<T> {
    fn word(&self, text: &str) -> Result<i128, ValueError> {
        let known = self.words.iter().find(|(word, _)| *word == text);
        let words = || self.words.iter().map(|(word, _)| *word).collect();
        known
            .map(|(_, number)| i128::from(*number))
            .ok_or_else(|| ValueError::Word { known: words() })
    }
}

impl Shaped for Decimal {
    fn shape(&self) -> Shape {
        let Self {
            least,
            greatest,
            unit,
        } = *self;
        Shape::Decimal {
            least,
            greatest,
            unit,
        }
    }
}

impl Kind for Decimal {
    type Value = f64;
    type DefaultValue = f64;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<f64, ValueError> {
        let number = match raw {
            Raw::Decimal(number) => number,
            #[expect(clippy::cast_precision_loss, reason = "ranges end far below 2^53")]
            Raw::Integer(number) => number as f64,
            Raw::Text(_) | Raw::Flag(_) | Raw::Null => return Err(raw.is_not("a number")),
        };
        if (self.least..=self.greatest).contains(&number) {
            return Ok(number);
        }
        Err(ValueError::Range {
            least: format!("{:?}", self.least),
            greatest: format!("{:?}", self.greatest),
        })
    }

    fn default_value(&self, default: f64) -> f64 {
        default
    }

    fn show(&self, _name: &str, default: f64) -> String {
        format!("{default:?}")
    }
}

impl Shaped for Size {
    fn shape(&self) -> Shape {
        let Self { least, greatest } = *self;
        Shape::Size { least, greatest }
    }
}

impl Kind for Size {
    type Value = u64;
    type DefaultValue = u64;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<u64, ValueError> {
        let out_of_range = || ValueError::Range {
            least: show_size(self.least),
            greatest: show_size(self.greatest),
        };
        let bytes = match raw {
            Raw::Integer(number) => u64::try_from(number).map_err(|_| out_of_range())?,
            Raw::Text(text) => size::parse(text).map_err(|fault| ValueError::Form {
                what: "a size such as `500MB` or `512KiB`",
                reason: fault.to_string(),
            })?,
            Raw::Decimal(_) | Raw::Flag(_) | Raw::Null => {
                return Err(raw.is_not("a number of bytes or a size such as `500MB`"));
            }
        };
        if (self.least..=self.greatest).contains(&bytes) {
            return Ok(bytes);
        }
        Err(out_of_range())
    }

    fn default_value(&self, default: u64) -> u64 {
        default
    }

    fn show(&self, _name: &str, default: u64) -> String {
        default.to_string()
    }
}

impl Shaped for Time {
    fn shape(&self) -> Shape {
        let Self { least, greatest } = *self;
        Shape::Time {
            least_ms: millis(least),
            greatest_ms: millis(greatest),
        }
    }

    /// Every time may be written in seconds or in milliseconds.
    fn alias(&self, name: &'static str) -> Option<String> {
        let stem = |suffix| name.strip_suffix(suffix);
        let in_millis = stem("-secs").or(stem("-seconds"));
        in_millis
            .map(|stem| format!("{stem}-ms"))
            .or_else(|| stem("-ms").map(|stem| format!("{stem}-secs")))
    }
}

impl Kind for Time {
    type Value = Duration;
    type DefaultValue = Duration;

    fn read(&self, name: &str, raw: Raw<'_>) -> Result<Duration, ValueError> {
        let Raw::Integer(number) = raw else {
            let unit = if is_millis(name) {
                "milliseconds"
            } else {
                "seconds"
            };
            return Err(raw.is_not(format!("a whole number of {unit}")));
        };
        let duration = u64::try_from(number).ok().map(|number| {
            if is_millis(name) {
                Duration::from_millis(number)
            } else {
                Duration::from_secs(number)
            }
        });
        let in_range = |value: &Duration| (self.least..=self.greatest).contains(value);
        duration.filter(in_range).ok_or_else(|| ValueError::Range {
            least: in_unit(name, self.least, Rounding::Up),
            greatest: in_unit(name, self.greatest, Rounding::Down),
        })
    }

    fn default_value(&self, default: Duration) -> Duration {
        default
    }

    fn show(&self, name: &str, default: Duration) -> String {
        in_unit(name, default, Rounding::Up)
    }
}

fn is_millis(name: &str) -> bool {
    name.ends_with("-ms")
}

/// Rounding of a duration to whole seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Up,
    Down,
}

/// The number that is written for `duration` in the unit of the setting `name`.
fn in_unit(name: &str, duration: Duration, rounding: Rounding) -> String {
    if is_millis(name) {
        return duration.as_millis().to_string();
    }
    let part = u64::from(rounding == Rounding::Up && duration.subsec_nanos() > 0);
    (duration.as_secs() + part).to_string()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
