//! Loading of KDL configuration: text to model, or every fault with its place and its correction.
//!
//! [`load`] reads a file and its includes, [`parse`] a text, [`load_from`] files in memory. Each
//! returns a [`Loaded`] model with warnings, or a [`Report`] of all faults.

mod aliases;
mod diagnostic;
mod diagnostic_code;
mod diagnostics;
mod files;
mod format;
mod kdl;
mod load;
mod migrate;
mod report;

mod bundle_reach;
mod decode;
mod read;
mod warnings;

pub mod reference;

pub use diagnostic::Diagnostic;
pub use diagnostic_code::{DiagnosticCode, Severity};
pub use files::Files;
pub use format::format;
pub use load::loaded::Loaded;
pub use load::{embedded, load, load_bundle, load_from, load_over, parse};
pub use migrate::{Migrated, migrate, route_order_notes};
pub use report::Report;
