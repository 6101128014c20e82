//! The real binary, asked over real sockets.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod support;

mod smoke;
