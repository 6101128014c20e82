//! A page that announces effects, and requires a confirmation.

use crate::view::link::Link;

/// Texts and form of the page.
#[derive(Clone, Debug)]
pub(crate) struct Confirm {
    /// The list that the value belongs to.
    pub(crate) over: Link,
    pub(crate) heading: String,
    /// Effects of the operation, one sentence each.
    pub(crate) effects: Vec<String>,
    pub(crate) action: String,
    /// The page of the value.
    pub(crate) back: String,
    pub(crate) csrf: String,
    pub(crate) button: String,
}
