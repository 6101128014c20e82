//! Fake upstreams, a raw client and the real binary, for black-box tests.
//!
//! Everything runs on threads and plain sockets, so that a test sees every byte. All waiting has a
//! deadline, [`EVENT_TIMEOUT`]; after it the test panics with the
//! events that did arrive.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on fails loudly"
)]

mod corpus;
mod deadline;
mod gate;
mod http;
mod journal;

mod client;

mod agent;
mod dns_server;
mod upstream;

mod full_pipe;
mod pebble;
mod ports;
mod proxyd;
mod redis_server;
mod silent_listener;

pub use agent::process::AgentProcess;
pub use agent::{AgentReply, FakeAgent, event_number};
pub use client::exchanges::{METRICS, metric, pause, post, refusal, request};
pub use client::{RawClient, get, loopback_pair};
pub use corpus::replay;
pub use deadline::EVENT_TIMEOUT;
pub use dns_server::{DnsReply, DnsServer};
pub use full_pipe::full_pipe;
pub use gate::Gate;
pub use http::fields::Fields;
pub use http::message::{Framing, Request, Response};
pub use http::wire::{Broken, End, Wire};
pub use journal::Journal;
pub use pebble::curl::{CurlAnswer, fetch, http, https};
pub use pebble::{EXTERNAL_ACCOUNT, Pebble, Policy};
pub use ports::{closed_port, free_port};
pub use proxyd::config::{Config, Launcher, target};
pub use proxyd::launch::Launch;
pub use proxyd::log::{Log, Record};
pub use proxyd::{Proxyd, Reload, Upgrade};
pub use redis_server::RedisServer;
pub use silent_listener::SilentListener;
pub use upstream::Upstream;
pub use upstream::demo::demo_upstream;
pub use upstream::fakes::ok;
pub use upstream::served::Served;
