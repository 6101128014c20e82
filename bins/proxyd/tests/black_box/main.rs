//! The real binary, asked over real sockets.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod support;

mod correlation;
mod error_forms;
mod forwarding;
mod header_edits;
mod limits;
mod paths;
mod routing;
mod timeouts;
mod upstream_failures;
