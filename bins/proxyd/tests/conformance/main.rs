//! Attacks and conformance, in tables, against the real binary.

mod alone;
mod attacks;
mod bystander;
mod floods;
mod frames;
mod responses;
mod rows;
mod slow;
mod table;
