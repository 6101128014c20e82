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

mod patience;

mod corpus;
mod gate;
mod journal;

mod fields;
mod message;
mod wire;

mod client;
mod exchanges;

mod agent;
mod agent_process;
mod demo;
mod dns_server;
mod fakes;
mod served;
mod upstream;

mod config;
mod configuration;
mod full_pipe;
mod launch;
mod log;
mod ports;
mod process;
mod proxyd;
mod redis_server;
mod silent_listener;

pub use agent::{AgentReply, FakeAgent, event_number};
pub use agent_process::AgentProcess;
pub use client::{RawClient, get, loopback_pair};
pub use config::{Config, Launcher, target};
pub use corpus::replay;
pub use demo::demo_upstream;
pub use dns_server::{DnsReply, DnsServer};
pub use exchanges::{METRICS, metric, pause, post, refusal, request};
pub use fakes::ok;
pub use fields::Fields;
pub use full_pipe::full_pipe;
pub use gate::Gate;
pub use journal::Journal;
pub use launch::Launch;
pub use log::{Log, Record};
pub use message::{Framing, Request, Response};
pub use patience::EVENT_TIMEOUT;
pub use ports::{closed_port, free_port};
pub use proxyd::{Proxyd, Reload, Upgrade};
pub use redis_server::RedisServer;
pub use served::Served;
pub use silent_listener::SilentListener;
pub use upstream::Upstream;
pub use wire::{Broken, End, Wire};
