//! Rendering of explanations and settings, as text and JSON.

mod json;
mod text;

pub use json::{json, setting};
pub use text::{in_force, text};
