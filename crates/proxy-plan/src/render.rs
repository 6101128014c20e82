//! Explanations and settings, for people and for programs.

mod json;
mod text;

pub use json::{json, setting};
pub use text::{in_force, text};
