//! Kinds of settings that are written as words: flags and choices.

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
    pub(super) value: T,
    pub(super) doc: &'static str,
}

impl<T: Copy + PartialEq> ChoiceWord<T> {
    fn is(&self, value: T) -> bool {
        self.value == value
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

    fn default_value(&self, default: bool) -> bool {
        default
    }

    fn show(&self, _name: &str, default: bool) -> String {
        format!("#{default}")
    }
}

impl<T: Copy + PartialEq> Shaped for Choice<T> {
    fn shape(&self) -> Shape {
        let words = self.words.iter().map(|word| Word {
            name: word.name,
            doc: word.doc,
        });
        Shape::Choice(words.collect())
    }
}

impl<T: Copy + PartialEq> Kind for Choice<T> {
    type Value = T;
    type DefaultValue = T;

    fn read(&self, _name: &str, raw: Raw<'_>) -> Result<T, ValueError> {
        let known = || self.words.iter().map(|word| word.name).collect();
        let Some(text) = self.written(raw) else {
            let words: Vec<String> = self
                .words
                .iter()
                .map(|word| format!("`{}`", word.name))
                .collect();
            return Err(raw.is_not(format!("one of {}", words.join(", "))));
        };
        let word = self.words.iter().find(|word| is_same(word.name, &text));
        word.map(|word| word.value)
            .ok_or_else(|| ValueError::Word { known: known() })
    }

    fn default_value(&self, default: T) -> T {
        default
    }

    fn show(&self, _name: &str, default: T) -> String {
        let word = self.words.iter().find(|word| word.is(default));
        word.map_or_else(String::new, |word| format!("\"{}\"", word.name))
    }
}

impl<T> Choice<T> {
    /// The word as written; `None` if the value cannot be a word.
    fn written<'t>(&self, raw: Raw<'t>) -> Option<Cow<'t, str>> {
        let is_number = |word: &ChoiceWord<T>| word.name.parse::<f64>().is_ok();
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

/// Compares words; `-` and `_` are equal.
fn is_same(name: &str, written: &str) -> bool {
    let plain = |c| if c == '-' { '_' } else { c };
    name.chars().map(plain).eq(written.chars().map(plain))
}
