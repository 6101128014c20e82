//! The real binary, asked over real sockets.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod support;

mod bodies;
mod correlation;
mod error_forms;
mod expectations;
mod forwarding;
mod header_edits;
mod keep_alive;
mod limits;
mod paths;
mod routing;
mod streaming;
mod timeouts;
mod upstream_failures;
mod versions;
