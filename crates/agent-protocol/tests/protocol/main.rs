//! The protocol on the wire, its schema and its page.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may fail loudly"
)]

mod messages;
mod samples;
mod schema;
