//! Components of pages, and wording of numbers and times.

pub(crate) mod asset;
pub(crate) mod chart;
pub(crate) mod component;
pub(crate) mod confirm;
pub(crate) mod diagnostic;
pub(crate) mod labels;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod phrase;
