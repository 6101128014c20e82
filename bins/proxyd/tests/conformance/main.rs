//! Attacks and conformance, in tables, against the real binary.

mod responses;
mod rows;
mod slow;
mod table;
