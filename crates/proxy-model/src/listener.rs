//! Listeners: address, protocol, TLS and client timeouts.

mod access;
mod acme;
mod error_pages;

pub use access::{Access, NetworkFile};
pub use acme::{Acme, AcmeChallenge, AcmeKeyType, ExternalAccount};
pub use error_pages::{ErrorPage, ErrorPages, ErrorStatuses, PagePart, PageTemplate, PageValue};

use crate::address::BindAddress;
use crate::index::RouteIndex;
use crate::place::{Place, Setting};
use ipnet::IpNet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A listener.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Name, unique among listeners.
    pub name: String,
    /// Place of the block.
    pub place: Place,
    /// Address to bind.
    pub address: Setting<BindAddress>,
    /// Protocol of the listener's connections.
    pub protocol: Setting<ListenerProtocol>,
    /// Route for requests that match no route; `None` answers 404.
    pub default_route: Option<Setting<RouteIndex>>,
    /// Networks of the peers with trusted forwarding headers.
    pub trusted_proxies: Vec<Setting<IpNet>>,
    /// Treatment of ambiguous paths.
    pub path_policy: Setting<PathPolicy>,
    /// True if requests to upstreams get a `Via` header. [RFC 9110 §7.6.3]
    pub via: Setting<bool>,
    /// True if the proxy's own errors carry `Proxy-Status` with the reason. [RFC 9209]
    pub expose_reasons: Setting<bool>,
    /// HTTP/2 with prior knowledge is accepted without TLS.
    pub h2c: Setting<bool>,
    /// True if every connection begins with a PROXY protocol header, v1 or v2.
    pub proxy_protocol: Setting<bool>,
    /// HTTP/3 is accepted on the UDP port of the same address.
    pub http3: Setting<bool>,
    /// Time for which clients may use HTTP/3 after a response over another version; `None`
    /// advertises nothing.
    pub alt_svc_max_age: Option<Setting<Duration>>,
    /// The advertised UDP port; `None` is the port that the client connected to.
    pub alt_svc_port: Option<Setting<u16>>,
    /// Maximum number of concurrent streams on one HTTP/2 or HTTP/3 connection.
    pub max_concurrent_streams: Setting<u32>,
    /// Burst of streams that a client may reset before they were forwarded or answered.
    pub max_stream_resets: Setting<u32>,
    /// Maximum age of a client connection; `None` is unlimited.
    pub max_connection_age: Option<Setting<Duration>>,
    /// Maximum number of requests on one client connection; `None` is unlimited.
    pub max_requests_per_connection: Option<Setting<u32>>,
    /// Length of the kernel's queue of connections that are not yet accepted.
    pub backlog: Setting<u32>,
    /// Networks of clients.
    pub access: Access,
    /// HTML pages of errors, for requests to routes without pages.
    pub error_pages: ErrorPages,
    /// Timeouts of clients.
    pub timeouts: ListenerTimeouts,
    /// TLS settings; present exactly when the protocol is `https`, and where a `tcp` listener ends
    /// TLS.
    pub tls: Option<ListenerTls>,
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListenerProtocol {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https,
    /// Bytes of any protocol, relayed to an upstream; of TLS where the listener has a `tls` block.
    Tcp,
    /// TLS, relayed unchanged to the upstream selected by its server name.
    TlsPassthrough,
}

impl ListenerProtocol {
    /// Returns true if connections are relayed, without requests.
    #[must_use]
    pub const fn is_relayed(self) -> bool {
        match self {
            Self::Http | Self::Https => false,
            Self::Tcp | Self::TlsPassthrough => true,
        }
    }
}

/// Treatment of paths that the proxy and an upstream could read differently. Paths without `//`,
/// `;`, `\`, dot segments and escapes of reserved characters are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathPolicy {
    /// Refuses with 400 a path with a reading that matches another route, holds NUL or a broken
    /// escape, or leaves the root; forwards any other path unchanged.
    Strict,
    /// Forwards every path unchanged; matching decodes unreserved characters and removes dot
    /// segments, and takes everything else literally.
    Forward,
}

/// Timeouts of clients. A connection on which no request has begun is closed without a response.
#[derive(Clone, Debug)]
pub struct ListenerTimeouts {
    /// From the first to the last byte of a request's head.
    pub header: Setting<Duration>,
    /// Without progress in reading a request body.
    pub body_idle: Setting<Duration>,
    /// Without progress in writing a response.
    pub write_idle: Setting<Duration>,
    /// Between two requests on one connection.
    pub keep_alive: Setting<Duration>,
    /// Timeout of the TLS handshake, and of the PROXY protocol header.
    pub handshake: Setting<Duration>,
}

/// TLS of a listener.
#[derive(Clone, Debug)]
pub struct ListenerTls {
    /// Place of the block.
    pub place: Place,
    /// Certificates; the first is the default for server names that no certificate covers.
    pub certificates: Vec<Certificate>,
    /// Certificates obtained by ACME, after the ones from files.
    pub acme: Vec<Acme>,
    /// Lowest accepted version.
    pub min_version: Setting<TlsVersion>,
    /// Highest accepted version.
    pub max_version: Setting<TlsVersion>,
    /// Protocols offered by ALPN, in order of preference. [RFC 7301]
    pub alpn: Vec<Setting<Alpn>>,
    /// Client certificates; `None` requests none.
    pub client_auth: Option<ClientAuth>,
}

/// A certificate chain and its private key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// Path of the chain, leaf first, PEM.
    pub cert_file: Setting<PathBuf>,
    /// Path of the private key, PEM.
    pub key_file: Setting<PathBuf>,
    /// Path of an OCSP response for the certificate, DER; stapled while it is fresh. [RFC 6066 §8]
    pub ocsp_file: Option<Setting<PathBuf>>,
    /// Server names it is used for; empty for those in the certificate itself.
    pub server_names: Vec<Setting<String>>,
}

/// Authentication of clients by certificate.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    /// Path of the accepted certificate authorities, PEM.
    pub ca_file: Setting<PathBuf>,
    /// Mandatory or optional client certificates.
    pub mode: Setting<ClientAuthMode>,
}

/// Mandatory or optional client certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientAuthMode {
    /// Requests without a valid certificate are answered 495.
    Required,
    /// A client may send none; if sent, it must be valid.
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
            Self::Tcp => "tcp",
            Self::TlsPassthrough => "tls-passthrough",
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
