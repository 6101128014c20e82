//! The data of a reason.

use crate::error_type::ErrorType;
use crate::limit_type::LimitType;

/// All data of one reason.
pub(crate) struct Row {
    pub(super) name: &'static str,
    pub(super) owner: ErrorType,
    pub(super) limit_type: Option<LimitType>,
    pub(super) status: Option<u16>,
    pub(super) token: &'static str,
    pub(super) phrase: &'static str,
    pub(super) doc: &'static str,
}
