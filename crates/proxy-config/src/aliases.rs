//! Aliases: settings that have another name or place in the system that this configuration language
//! follows, replaced by ours before a configuration is decoded.
//!
//! One table has a row per alias: the foreign place, our place, and the conversion of the value.
//! `load` warns about each alias, `migrate` replaces it in the text. A setting without a
//! counterpart is a fault, with a workaround in the message.

mod alias;
mod convert;
mod document;
mod filters;
mod replace;
mod report;
mod table;
mod text_tree;
mod tree;

pub(crate) use alias::{Alias, Change};
pub(crate) use document::replace;
pub(crate) use replace::Mode;
pub(crate) use report::{by_hand, note, replace_in, root};
pub(crate) use table::all;
