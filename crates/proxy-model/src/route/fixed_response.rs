//! Responses with a fixed status and text.

use crate::place::{Place, Setting};
use http::HeaderValue;

/// The response to every request of a route.
#[derive(Clone, Debug)]
pub struct FixedResponse {
    /// Place of the block.
    pub place: Place,
    /// Status, 200 to 299 or 400 to 599.
    pub status: Setting<u16>,
    /// Body; `None` for an empty one or, for a status of 400 and above, the proxy's own error.
    pub body: Option<Setting<String>>,
    /// `Content-Type` of the body.
    pub content_type: Setting<HeaderValue>,
}
