//! A parser for KDL 1 and 2: linear in time, bounded in depth, reporting every syntax error with
//! its place.
//!
//! The `kdl` crate is the oracle: tests compare every tree with its tree. It is not used for
//! loading because it takes a third of a microsecond per byte and exponential time for nested `/-`
//! blocks, and because its KDL 1 parser can panic.

#[cfg(test)]
mod agreement;
mod chars;
pub(crate) mod document;
pub(crate) mod kdl2;
mod multiline;
mod number;
mod parser;
mod recover;
mod scan;
mod string;
mod syntax_error;
mod tree;
mod value;
mod versions;

pub(crate) use chars::{is_forbidden, is_newline};
pub(crate) use parser::{MAX_ITEMS, parse, parse_with_words};
pub(crate) use string::{is_bare, quoted};
pub(crate) use syntax_error::{SyntaxError, SyntaxErrorKind};
pub(crate) use tree::{Dialect, Entry, Name, Node, Span, Value};
pub(crate) use versions::{forbidden, read};
