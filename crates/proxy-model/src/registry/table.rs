//! The functions that rows are written with.

use super::kind::{Block, Pair};
use super::number::{Decimal, Integer, Size, Time};
use super::spec::{MachinePart, Required, Spec, row};
use super::text::{PageStatuses, Statuses, Text, Written};
use super::word::{Choice, ChoiceWord, Flag};
use http::uri::PathAndQuery;
use std::path::PathBuf;
use std::time::Duration;

/// Declares rows as constants, and their list. A row's documentation comment is also its text in
/// the operator's reference, so that the two cannot differ.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty, $presence:ty = $row:expr;)+) => {
        $(
            $(#[doc = $doc])+
            pub const $name: $crate::registry::Spec<$kind, $presence> =
                $row.doc(concat!($($doc, "\n"),+));
        )+

        /// The rows of this file, in order.
        pub(in crate::registry) fn rows() -> Vec<$crate::registry::SettingSpec> {
            vec![$($name.describe()),+]
        }
    };
}
pub(super) use settings;

pub(super) const fn flag(path: &'static str) -> Spec<Flag, Required> {
    row(path, Flag)
}

pub(super) const fn integer<T: Copy>(
    path: &'static str,
    least: T,
    greatest: T,
    unit: &'static str,
) -> Spec<Integer<T>, Required> {
    row(
        path,
        Integer {
            least,
            greatest,
            unit,
            words: &[],
        },
    )
}

pub(super) const fn decimal(
    path: &'static str,
    least: f64,
    greatest: f64,
    unit: &'static str,
) -> Spec<Decimal, Required> {
    row(
        path,
        Decimal {
            least,
            greatest,
            unit,
        },
    )
}

pub(super) const fn size(path: &'static str, least: u64, greatest: u64) -> Spec<Size, Required> {
    row(path, Size { least, greatest })
}

/// A time of at least one millisecond.
pub(super) const fn time(path: &'static str, greatest: Duration) -> Spec<Time, Required> {
    time_from(path, Duration::from_millis(1), greatest)
}

pub(super) const fn time_from(
    path: &'static str,
    least: Duration,
    greatest: Duration,
) -> Spec<Time, Required> {
    row(path, Time { least, greatest })
}

pub(super) const fn choice<T: Copy>(
    path: &'static str,
    words: &'static [ChoiceWord<T>],
) -> Spec<Choice<T>, Required> {
    row(path, Choice { words })
}

pub(super) const fn word<T>(name: &'static str, value: T, doc: &'static str) -> ChoiceWord<T> {
    ChoiceWord { name, value, doc }
}

pub(super) const fn text<T>(
    path: &'static str,
    what: &'static str,
    example: &'static str,
    parse: fn(&str) -> Result<T, String>,
) -> Spec<Text<T>, Required> {
    row(
        path,
        Text {
            what,
            example,
            parse,
        },
    )
}

/// The path of a file or folder, relative to the folder of the file that names it.
pub(super) const fn file(
    path: &'static str,
    what: &'static str,
    example: &'static str,
) -> Spec<Text<PathBuf>, Required> {
    text(path, what, example, |text| match text {
        "" => Err("it is empty".to_owned()),
        text => Ok(text.into()),
    })
    .names(MachinePart::File)
}

/// Text without a form of its own, such as a name.
pub(super) const fn words(
    path: &'static str,
    what: &'static str,
    example: &'static str,
) -> Spec<Text<String>, Required> {
    text(path, what, example, |text| match text {
        "" => Err("it is empty".to_owned()),
        text => Ok(text.to_owned()),
    })
}

/// Parses the path of a request sent by the proxy itself, with an optional query.
pub(super) const fn origin_path(
    path: &'static str,
    example: &'static str,
) -> Spec<Text<String>, Required> {
    text(path, "a path", example, |text| {
        if !text.starts_with('/') {
            return Err("it does not begin with `/`".to_owned());
        }
        let mut escapes = text.split('%').skip(1).map(|rest| rest.get(..2));
        let is_escape = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !escapes.all(|digits| digits.is_some_and(is_escape)) {
            return Err("a `%` without two hexadecimal digits".to_owned());
        }
        let parsed = PathAndQuery::try_from(text).map_err(|error| error.to_string())?;
        if parsed.as_str() == text {
            Ok(text.to_owned())
        } else {
            Err("a fragment (`#…`) is never sent".to_owned())
        }
    })
}

pub(super) const fn statuses(path: &'static str) -> Spec<Statuses, Required> {
    row(path, Statuses)
}

pub(super) const fn page_statuses(path: &'static str) -> Spec<PageStatuses, Required> {
    row(path, PageStatuses)
}

pub(super) const fn written<T>(text: &'static str, value: fn() -> T) -> Written<T> {
    Written { text, value }
}

pub(super) const fn pair(
    path: &'static str,
    what: &'static str,
    example: &'static str,
) -> Spec<Pair, Required> {
    row(path, Pair { what, example })
}

pub(super) const fn block(path: &'static str) -> Spec<Block, Required> {
    row(path, Block { argument: None })
}

pub(super) const fn named(path: &'static str, argument: &'static str) -> Spec<Block, Required> {
    row(
        path,
        Block {
            argument: Some(argument),
        },
    )
}
