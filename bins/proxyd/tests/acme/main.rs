//! ACME with the real program, and Pebble, the test authority of Let's Encrypt.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

mod site;

mod challenges;
mod failures;
mod http_01;
mod sharing;
