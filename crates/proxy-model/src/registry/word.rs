//! Kinds that are words: switches and choices.

use super::kind::{Kind, Shape, Shaped, Word};
use super::value_error::{Raw, ValueError};
use std::borrow::Cow;

/// `#true` or `#false`.
#[derive(Clone, Copy, Debug)]
pub struct Flag;

/// One of a list of words. `-` and `_` are equivalent; a word that is a number, such as a version,
/// may be written without quotes.
#[derive(Clone, Copy, Debug)]
pub struct Choice<T: 'static> {
    pub(super) words: &'static [ChoiceWord<T>],
}

/// A word of a [`Choice`] with its value.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceWord<T> {
    pub(super) name: &'static str,
    pub(super) stands: T,
    pub(super) doc: &'static str,
}

impl<T: Copy + PartialEq> ChoiceWord<T> {
    fn is(&self, value: T) -> bool {
        self.stands == value
    }
}

impl Shaped for Flag {
    fn shape(&self) -> Shape {
        Shape::Flag
    }
}

impl Kind for Flag {
    type Value = bool;
    type DefaultValue = bool;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<bool, ValueError> {
        match raw {
            Raw::Flag(flag) => Ok(flag),
            Raw::Text(_) | Raw::Integer(_) | Raw::Decimal(_) | Raw::Null => {
                Err(raw.is_not("`#true` or `#false`"))
            }
        }
    }

    fn give(&self, given: bool) -> bool {
        given
    }

    fn show(&self, _name: &str, given: bool) -> String {
        format!("#{given}")
    }
}

impl<T: Copy + PartialEq> Shaped for Choice<T> {
    fn shape(&self) -> Shape {
        let words = self.words.iter().map(|meaning| Word {
            name: meaning.name,
            doc: meaning.doc,
        });
        Shape::Choice(words.collect())
    }
}

impl<T: Copy + PartialEq> Kind for Choice<T> {
    type Value = T;
    type DefaultValue = T;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<T, ValueError> {
        let known = || self.words.iter().map(|meaning| meaning.name).collect();
        let Some(text) = self.written(raw) else {
            let words: Vec<String> = self
                .words
                .iter()
                .map(|word| format!("`{}`", word.name))
                .collect();
            return Err(raw.is_not(format!("one of {}", words.join(", "))));
        };
        let meaning = self
            .words
            .iter()
            .find(|meaning| is_same(meaning.name, &text));
        meaning
            .map(|meaning| meaning.stands)
            .ok_or_else(|| ValueError::Word { known: known() })
    }

    fn give(&self, given: T) -> T {
        given
    }

    fn show(&self, _name: &str, given: T) -> String {
        let meaning = self.words.iter().find(|meaning| meaning.is(given));
        meaning.map_or_else(String::new, |meaning| format!("\"{}\"", meaning.name))
    }
}

impl<T> Choice<T> {
    /// The word that is written; `None` if the value cannot be a word.
    fn written<'t>(&self, raw: Raw<'t>) -> Option<Cow<'t, str>> {
        let is_number = |meaning: &ChoiceWord<T>| meaning.name.parse::<f64>().is_ok();
        match raw {
            Raw::Text(text) => Some(text.into()),
            Raw::Decimal(number) if self.words.iter().any(is_number) => {
                Some(number.to_string().into())
            }
            Raw::Integer(number) if self.words.iter().any(is_number) => {
                Some(number.to_string().into())
            }
            Raw::Decimal(_) | Raw::Integer(_) | Raw::Flag(_) | Raw::Null => None,
        }
    }
}

fn is_same(name: &str, written: &str) -> bool {
    let plain = |c| if c == '-' { '_' } else { c };
    name.chars().map(plain).eq(written.chars().map(plain))
}
