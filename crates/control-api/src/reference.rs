//! The interface's reference: the `OpenAPI` document, parsed once and rendered as an HTML page and
//! as Markdown.

mod access;
pub(crate) mod constraints;
pub(crate) mod docs;
mod headers;
mod html;
mod markdown;
mod model;
pub(crate) mod openapi;

pub use access::access_md;
pub(crate) use html::{STYLE, page};
pub use markdown::reference_md;
