//! Attacks and conformance, in tables, against the real binary.
#![expect(clippy::panic, reason = "tests may fail loudly")]

mod responses;
mod rows;
mod table;
