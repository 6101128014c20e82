//! TLS, HTTP/2 and gRPC on both sides of the real binary, over real sockets.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod support;

mod blame;
mod example_configurations;
mod five_services;
mod grpc;
mod grpc_calls;
mod health_checks;
mod http2_bodies;
mod http2_ends;
mod http2_floods;
mod http2_heads;
mod http2_policies;
mod http2_raw_paths;
mod http2_refusals;
mod http2_requests;
mod http2_targets;
mod http2_upstreams;
mod http2_websocket;
mod http3_aioquic;
mod http3_floods;
mod http3_life;
mod http3_limits;
mod http3_refusals;
mod http3_requests;
mod open_connections;
mod pages_for_operators;
mod permits;
mod silent_connections;
mod slow_clients;
mod stalled_streams;
mod static_files;
mod tls_agents;
mod tls_certificates;
mod tls_clients;
mod tls_collectors;
mod tls_faults;
mod tls_listener;
mod tls_proxy_protocol;
mod tls_relays;
mod tls_staples;
mod tls_upstreams;
mod unix_sockets;
