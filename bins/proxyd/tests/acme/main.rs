//! Certificates obtained by ACME from Pebble, the test authority of Let's Encrypt, by the real binary.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

mod site;

mod challenges;
mod failures;
mod http_01;
mod sharing;
