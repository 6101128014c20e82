//! Certificates, clients and upstreams that speak what this suite is about.

mod certificates;
mod client;
mod config;
mod runtime;

pub(crate) use certificates::{Authority, Identity};
pub(crate) use client::{Secure, TlsClient};
pub(crate) use config::{BINARY, over_tls, start, to};
pub(crate) use runtime::live;
