//! Attacks and conformance: tables of cases against the real binary.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod alone;
mod answers;
mod attacks;
mod bridge;
mod bystander;
#[path = "../edge/support/certificates.rs"]
#[expect(dead_code, reason = "another suite needs more of it")]
mod certificates;
mod cpu_time;
mod deliveries;
mod floods;
mod flow;
mod frame_row;
mod frame_rows;
mod frame_table;
mod frame_upstream;
mod frames;
mod hpack;
#[path = "../edge/support/http2_upstream.rs"]
#[expect(dead_code, reason = "another suite needs more of it")]
mod http2_upstream;
mod malformed_answers;
mod paths;
mod proxy_listeners;
mod received_request;
mod recorder;
mod responses;
mod rows;
mod slow;
mod surplus;
mod table;
