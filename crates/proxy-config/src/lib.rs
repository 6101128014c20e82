//! KDL text to a model, or every fault with its place and a way to mend it.
//!
//! [`load`] reads a file and what it includes, [`parse`] a text, [`load_from`] files in memory.
//! Each gives a [`Loaded`] model with warnings, or a [`Report`] of everything that is wrong.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod fault;
mod fault_code;
mod faults;
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

pub use fault::Fault;
pub use fault_code::{FaultCode, Severity};
pub use files::Files;
pub use load::{Loaded, embedded, load, load_from, parse};
pub use migrate::{Migrated, migrate};
pub use report::Report;
