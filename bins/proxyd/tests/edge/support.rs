//! Certificates, clients and upstreams for this suite.

mod aioquic;
mod certificates;
mod client;
mod config;
mod curl;
mod frames;
mod grpc_service;
mod held_handshakes;
mod http2;
mod http2_upstream;
mod http3;
mod runtime;
mod staples;
mod tls_upstream;

pub(crate) use aioquic::Aioquic;
pub(crate) use certificates::{Authority, Identity};
pub(crate) use client::TlsClient;
pub(crate) use config::{BINARY, over_tls, start, to, to_http2};
pub(crate) use curl::curl;
pub(crate) use frames::{
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frames, GET, GOAWAY,
    HEADERS, INITIAL_WINDOW, PING, POST, PRIORITY, PROTOCOL_ERROR, REFUSED_STREAM, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, frame, literal,
};
pub(crate) use grpc_service::{GrpcService, Plain, caller, ready};
pub(crate) use held_handshakes::HeldHandshakes;
pub(crate) use http2::{Answer, Http2, ask, get, plain, send_all, send_some};
pub(crate) use http2_upstream::{Http2Upstream, UpstreamOptions};
pub(crate) use http3::{Http3, Http3Answer, Http3Client, Site, frame_of, head_of, section_of};
pub(crate) use runtime::block_on;
pub(crate) use staples::{Staples, ocsp_response};
pub(crate) use tls_upstream::{TlsUpstream, server_config};
