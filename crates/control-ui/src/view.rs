//! What pages are made of, and how numbers and times become words.

pub(crate) mod asset;
pub(crate) mod component;
pub(crate) mod confirm;
pub(crate) mod labels;
pub(crate) mod phrase;
