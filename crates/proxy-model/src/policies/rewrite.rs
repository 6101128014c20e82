//! Rewriting of the path for the upstream.

use super::capture_template::CaptureTemplate;
use super::prefix_replacement::PrefixReplacement;
use crate::place::{Place, Setting};

/// The path that the upstream gets, instead of the client's; exactly one of the first four is
/// written.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// Place of the block.
    pub place: Place,
    /// The beginning of the path that is removed: a replacement by `/`.
    pub strip_prefix: Option<Setting<PrefixReplacement>>,
    /// The beginning of the path that is replaced.
    pub replace_prefix: Option<Setting<PrefixReplacement>>,
    /// The path for every request.
    pub path: Option<Setting<String>>,
    /// The path made of captures of the route's `path-regex`.
    pub captures: Option<Setting<CaptureTemplate>>,
    /// True if `Location` of responses is written back.
    pub location: Setting<bool>,
    /// True if `Path` and `Domain` of cookies in responses are written back.
    pub cookies: Setting<bool>,
}
