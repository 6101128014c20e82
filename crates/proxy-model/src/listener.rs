//! Where clients connect, and how they are spoken to.

use crate::address::BindAddress;
use crate::model::RouteIndex;
use crate::place::{Place, Setting};
use ipnet::IpNet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One listening socket.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Its name, unique among listeners.
    pub name: String,
    /// Its block.
    pub place: Place,
    /// Where it binds.
    pub address: Setting<BindAddress>,
    /// What it speaks.
    pub protocol: Setting<ListenerProtocol>,
    /// The route for requests that no route matches; none answers 404.
    pub default_route: Option<Setting<RouteIndex>>,
    /// Peers whose forwarding headers are believed.
    pub trusted_proxies: Vec<Setting<IpNet>>,
    /// What happens to paths that can be read in two ways.
    pub path_policy: Setting<PathPolicy>,
    /// Whether requests that go upstream say in `Via` that they came by here. [RFC 9110 §7.6.3]
    pub via: Setting<bool>,
    /// Whether our own errors carry `Proxy-Status` with the reason. [RFC 9209]
    pub expose_reasons: Setting<bool>,
    /// Whether HTTP/2 with prior knowledge is spoken without TLS.
    pub h2c: Setting<bool>,
    /// Whether every connection begins with a PROXY protocol header, v1 or v2.
    pub proxy_protocol: Setting<bool>,
    /// Most streams at once on one HTTP/2 connection.
    pub max_concurrent_streams: Setting<u32>,
    /// Streams that a client may reset at once before they came to anything.
    pub max_stream_resets: Setting<u32>,
    /// How old a client's connection may become; none is without limit.
    pub max_connection_age: Option<Setting<Duration>>,
    /// Most requests on one client connection; none is without limit.
    pub max_requests_per_connection: Option<Setting<u32>>,
    /// Connections the system queues before they are accepted.
    pub backlog: Setting<u32>,
    /// How long clients may take.
    pub timeouts: ListenerTimeouts,
    /// Certificates and the like; present exactly when the protocol is `https`.
    pub tls: Option<ListenerTls>,
}

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListenerProtocol {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https,
}

/// What happens to paths that the proxy and an upstream could read differently. Plain paths, without
/// `//`, `;`, `\`, dot segments and escapes of characters that mean something raw, are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathPolicy {
    /// Refused with 400 where one reading leads to another route, holds NUL or a broken escape, or
    /// leaves the root; passed on as they came where all readings agree.
    Strict,
    /// Passed on as they came; matching decodes unreserved characters, removes dot segments, and
    /// sees everything else as it is.
    Forward,
}

/// How long clients may take. A timer that runs out while nothing was asked closes silently.
#[derive(Clone, Debug)]
pub struct ListenerTimeouts {
    /// From the first byte of a request's head to its last.
    pub header: Setting<Duration>,
    /// Between two reads of a request body.
    pub body_idle: Setting<Duration>,
    /// Between two writes of a response that the client takes.
    pub write_idle: Setting<Duration>,
    /// Between two requests on one connection.
    pub keep_alive: Setting<Duration>,
    /// The whole TLS handshake, or the PROXY protocol header.
    pub handshake: Setting<Duration>,
}

/// TLS towards clients.
#[derive(Clone, Debug)]
pub struct ListenerTls {
    /// Its block.
    pub place: Place,
    /// Certificates; the first answers clients whose server name no other one covers.
    pub certificates: Vec<Certificate>,
    /// Lowest version spoken.
    pub min_version: Setting<TlsVersion>,
    /// Highest version spoken.
    pub max_version: Setting<TlsVersion>,
    /// Protocols offered by ALPN, most wanted first. [RFC 7301]
    pub alpn: Vec<Setting<Alpn>>,
    /// Whether and how clients prove who they are.
    pub client_auth: Option<ClientAuth>,
}

/// A certificate chain and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The chain, leaf first, PEM.
    pub cert_file: Setting<PathBuf>,
    /// The private key, PEM.
    pub key_file: Setting<PathBuf>,
    /// An OCSP response about it, DER; stapled while it is fresh. [RFC 6066 §8]
    pub ocsp_file: Option<Setting<PathBuf>>,
    /// Server names it answers; empty means those the certificate itself names.
    pub server_names: Vec<Setting<String>>,
}

/// Client certificates.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    /// Authorities whose certificates are accepted, PEM.
    pub ca_file: Setting<PathBuf>,
    /// Whether a client must show one.
    pub mode: Setting<ClientAuthMode>,
}

/// Whether a client must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientAuthMode {
    /// Without a good certificate, requests are answered 495.
    Required,
    /// A client may show none; one that is shown must be good.
    Optional,
}

/// A protocol offered by ALPN. [RFC 7301]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alpn {
    /// HTTP/2.
    H2,
    /// HTTP/1.1.
    Http11,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.2. [RFC 5246]
    V1_2,
    /// TLS 1.3. [RFC 8446]
    V1_3,
}

impl fmt::Display for ListenerProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

impl fmt::Display for PathPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::Forward => "forward",
        })
    }
}

impl fmt::Display for ClientAuthMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Required => "required",
            Self::Optional => "optional",
        })
    }
}

impl fmt::Display for Alpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::H2 => "h2",
            Self::Http11 => "http/1.1",
        })
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        })
    }
}
