//! What a kind of value is, and the kinds without their types.

use super::value_error::{Raw, ValueError};

/// What can be said of every kind, blocks included.
pub trait Shaped: Copy {
    /// The same without its type.
    fn shape(&self) -> Shape;

    /// Another name that follows from the kind, for a setting called `name`.
    fn alias(&self, _name: &'static str) -> Option<String> {
        None
    }
}

/// What may be written as one value.
pub trait Kind: Shaped {
    /// What it becomes.
    type Value;
    /// How a row of the registry gives a default.
    type Given: Copy;

    /// Reads what was written under `name`.
    ///
    /// # Errors
    ///
    /// When `raw` is of another type, out of range, malformed, or a word that has no meaning yet.
    fn read(&self, name: &str, raw: Raw<'_>) -> Result<Self::Value, ValueError>;

    /// The value of a default.
    fn give(&self, given: Self::Given) -> Self::Value;

    /// A default as one would write it under `name`.
    fn show(&self, name: &str, given: Self::Given) -> String;
}

/// A kind without its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// `#true` or `#false`.
    Flag,
    /// A whole number.
    Integer {
        /// Least value.
        least: i128,
        /// Greatest value.
        greatest: i128,
        /// What is counted.
        unit: &'static str,
        /// Words that stand for numbers.
        words: &'static [(&'static str, i32)],
    },
    /// A number.
    Decimal {
        /// Least value.
        least: f64,
        /// Greatest value.
        greatest: f64,
        /// What is counted.
        unit: &'static str,
    },
    /// Bytes, as a whole number or as text with a unit.
    Size {
        /// Least number of bytes.
        least: u64,
        /// Greatest number of bytes.
        greatest: u64,
    },
    /// A whole number of seconds or milliseconds, as the name ends.
    Time {
        /// Shortest, in milliseconds.
        least_ms: u64,
        /// Longest, in milliseconds.
        greatest_ms: u64,
    },
    /// One of a few words.
    Choice(Vec<Word>),
    /// Text of some form.
    Text {
        /// The form, in words.
        what: &'static str,
        /// A value of that form.
        example: &'static str,
    },
    /// A name and a value, written as two arguments.
    Pair {
        /// What they are, in words.
        what: &'static str,
        /// As one would write them.
        example: &'static str,
    },
    /// Settings in braces.
    Block {
        /// What its argument is, if it takes one.
        argument: Option<&'static str>,
    },
}

/// One word of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it is written.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// The piece of work that will bring it; until then it is refused.
    pub not_yet: Option<&'static str>,
}

/// A name and a value, written as two arguments.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub(super) what: &'static str,
    pub(super) example: &'static str,
}

/// Settings in braces.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub(super) argument: Option<&'static str>,
}

impl Shaped for Pair {
    fn shape(&self) -> Shape {
        let Self { what, example } = *self;
        Shape::Pair { what, example }
    }
}

impl Shaped for Block {
    fn shape(&self) -> Shape {
        let Self { argument } = *self;
        Shape::Block { argument }
    }
}
