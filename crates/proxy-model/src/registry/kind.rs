//! Kinds of values, typed and untyped.

use super::value_error::{Raw, ValueError};

/// A kind of setting: a kind of value, or a block.
pub trait Shaped: Copy {
    /// The untyped form.
    fn shape(&self) -> Shape;

    /// An alias that the kind implies for a setting named `name`.
    fn alias(&self, _name: &'static str) -> Option<String> {
        None
    }
}

/// A kind of value.
pub trait Kind: Shaped {
    /// The type of the decoded value.
    type Value;
    /// The type of a default in a row of the registry.
    type DefaultValue: Copy;

    /// Decodes `raw`, written under `name`.
    ///
    /// # Errors
    ///
    /// If `raw` has another type, is out of range or malformed, or is a word without effect.
    fn read(&self, name: &str, raw: Raw<'_>) -> Result<Self::Value, ValueError>;

    /// A default as a decoded value.
    fn default_value(&self, default: Self::DefaultValue) -> Self::Value;

    /// A default as written under `name`.
    fn show(&self, name: &str, default: Self::DefaultValue) -> String;
}

/// A kind without its Rust type.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// `#true` or `#false`.
    Flag,
    /// Integer of a range.
    Integer {
        /// Minimum.
        least: i128,
        /// Maximum.
        greatest: i128,
        /// Unit, or the noun that is counted; may be empty.
        unit: &'static str,
        /// Words for certain numbers.
        words: &'static [(&'static str, i32)],
    },
    /// A number with a fraction.
    Decimal {
        /// Minimum.
        least: f64,
        /// Maximum.
        greatest: f64,
        /// Unit, or the noun that is counted; may be empty.
        unit: &'static str,
    },
    /// A number of bytes, as a whole number or as text with a unit.
    Size {
        /// Minimum, in bytes.
        least: u64,
        /// Maximum, in bytes.
        greatest: u64,
    },
    /// A whole number of seconds or milliseconds, according to the name's suffix.
    Time {
        /// Minimum, in milliseconds.
        least_ms: u64,
        /// Maximum, in milliseconds.
        greatest_ms: u64,
    },
    /// One of a list of words.
    Choice(Vec<Word>),
    /// Text of a certain form.
    Text {
        /// Description of the form.
        what: &'static str,
        /// Example that the parser accepts.
        example: &'static str,
    },
    /// A name and a value, written as two arguments.
    Pair {
        /// Description of the two arguments.
        what: &'static str,
        /// Example that the parser accepts.
        example: &'static str,
    },
    /// Settings in braces.
    Block {
        /// Description of its argument; `None` if it takes none.
        argument: Option<&'static str>,
    },
}

/// A word of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word as written.
    pub name: &'static str,
    /// Its meaning, for the reference.
    pub doc: &'static str,
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

impl Pair {
    /// A valid name and value, as written.
    #[must_use]
    pub const fn example(&self) -> &'static str {
        self.example
    }
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
