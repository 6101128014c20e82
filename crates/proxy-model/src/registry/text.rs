//! Textual kinds.

use super::kind::{Kind, Shape, Shaped};
use super::value_error::{Raw, ValueError};
use crate::health::StatusRange;
use crate::listener::ErrorStatuses;
use std::fmt;

/// Text that `T` is parsed from.
pub struct Text<T> {
    pub(super) what: &'static str,
    pub(super) example: &'static str,
    pub(super) parse: fn(&str) -> Result<T, String>,
}

/// A default of a [`Text`]: the written form and the value.
pub struct Written<T> {
    pub(super) text: &'static str,
    pub(super) value: fn() -> T,
}

impl<T> Shaped for Text<T> {
    fn shape(&self) -> Shape {
        Shape::Text {
            what: self.what,
            example: self.example,
        }
    }
}

impl<T> Kind for Text<T> {
    type Value = T;
    type DefaultValue = Written<T>;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<T, ValueError> {
        let Raw::Text(text) = raw else {
            return Err(raw.is_not(format!("{}, as in \"{}\"", self.what, self.example)));
        };
        (self.parse)(text).map_err(|reason| ValueError::Form {
            what: self.what,
            reason,
        })
    }

    fn default_value(&self, default: Written<T>) -> T {
        (default.value)()
    }

    fn show(&self, _name: &str, default: Written<T>) -> String {
        format!("\"{}\"", default.text)
    }
}

/// A status, as a number, or a range of them, as text.
#[derive(Clone, Copy, Debug)]
pub struct Statuses;

impl Shaped for Statuses {
    fn shape(&self) -> Shape {
        Shape::Text {
            what: "a status, or a range of them",
            example: "200-399",
        }
    }
}

impl Kind for Statuses {
    type Value = StatusRange;
    type DefaultValue = StatusRange;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<StatusRange, ValueError> {
        let what = "a status, or a range of them";
        let text = match raw {
            Raw::Integer(number) => number.to_string(),
            Raw::Text(text) => text.to_owned(),
            Raw::Decimal(_) | Raw::Flag(_) | Raw::Null => {
                return Err(raw.is_not(format!("{what}, as in 200 or \"200-399\"")));
            }
        };
        text.parse()
            .map_err(|reason| ValueError::Form { what, reason })
    }

    fn default_value(&self, default: StatusRange) -> StatusRange {
        default
    }

    fn show(&self, _name: &str, default: StatusRange) -> String {
        default.to_string()
    }
}

/// A status of an error, as a number or as text, or a class of them, as text.
#[derive(Clone, Copy, Debug)]
pub struct PageStatuses;

impl Shaped for PageStatuses {
    fn shape(&self) -> Shape {
        Shape::Text {
            what: "a status of an error, or a class of them",
            example: "5xx",
        }
    }
}

impl Kind for PageStatuses {
    type Value = ErrorStatuses;
    type DefaultValue = ErrorStatuses;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<ErrorStatuses, ValueError> {
        let what = "a status of an error, or a class of them";
        let text = match raw {
            Raw::Integer(number) => number.to_string(),
            Raw::Text(text) => text.to_owned(),
            Raw::Decimal(_) | Raw::Flag(_) | Raw::Null => {
                return Err(raw.is_not(format!("{what}, as in 404 or \"5xx\"")));
            }
        };
        text.parse().map_err(|reason: &str| ValueError::Form {
            what,
            reason: reason.to_owned(),
        })
    }

    fn default_value(&self, default: ErrorStatuses) -> ErrorStatuses {
        default
    }

    fn show(&self, _name: &str, default: ErrorStatuses) -> String {
        format!("\"{default}\"")
    }
}

// Derived implementations would require the same of `T`, which occurs only in function types.
impl<T> Clone for Text<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Text<T> {}

impl<T> Clone for Written<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Written<T> {}

impl<T> fmt::Debug for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.what).finish()
    }
}

impl<T> fmt::Debug for Written<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Written").field(&self.text).finish()
    }
}
