//! Text of a confirmation page.

use crate::view::link::Link;

/// Texts and form of a confirmation page.
#[derive(Clone, Debug)]
pub(crate) struct Confirm {
    /// Link to the list above.
    pub(crate) over: Link,
    pub(crate) heading: String,
    /// Effects of the operation, one sentence each.
    pub(crate) effects: Vec<String>,
    pub(crate) action: String,
    /// Path of the page to return to.
    pub(crate) back: String,
    pub(crate) csrf: String,
    pub(crate) button: String,
}
