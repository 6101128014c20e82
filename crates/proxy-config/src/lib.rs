//! KDL text to a model, or every fault with its place and a way to mend it.
//!
//! [`load`] reads a file and what it includes, [`parse`] a text, [`load_from`] files in memory.
//! Each gives a [`Loaded`] model with warnings, or a [`Report`] of everything that is wrong.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod diagnostic;
mod diagnostic_code;
mod diagnostics;
mod files;
mod kdl;
mod lines;
mod load;
mod migrate;
mod render;
mod report;

mod decode;
mod read;
mod warnings;

pub mod reference;

pub use diagnostic::Diagnostic;
pub use diagnostic_code::{DiagnosticCode, Severity};
pub use files::Files;
pub use load::{Loaded, embedded, load, load_from, parse};
pub use migrate::{Migrated, migrate};
pub use report::Report;
