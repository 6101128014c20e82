//! The `OpenAPI` document as a model: one traversal for the page in the browser and the one in the
//! docs.

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
