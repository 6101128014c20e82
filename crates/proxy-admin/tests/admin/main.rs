//! Tests of the admin interface over real sockets.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod access;
mod documents;
mod endpoints;
mod peers;
mod reference;
mod support;
