//! Rendering of explanations, settings and differences, as text and JSON.

mod diff_json;
mod json;
mod text;

pub use diff_json::diff_json;
pub use json::{json, setting};
pub(crate) use text::shown_value;
pub use text::{diff_text, in_force, text};
