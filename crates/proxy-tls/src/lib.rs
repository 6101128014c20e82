//! TLS of listeners and upstreams: from certificate files to rustls configurations.
//!
//! [`ServerTls`] is the TLS of a listener, [`ClientTls`] that of an upstream. Each is loaded from
//! plain settings, returns a shared rustls configuration for the next connection, and is updated at
//! run time when a [`Watcher`] finds changed files. The crate opens no sockets, starts no threads,
//! reads no clock, and installs no process-wide provider.

mod certificate;
mod challenges;
mod classify;
mod client;
mod client_hello;
mod close_notify;
mod error;
mod expiry;
mod file;
mod provider;
mod roots;
mod server;
mod settings;
mod watch;

pub use certificate::info::{CertificateInfo, ChainInfo};
pub use challenges::{CHALLENGE_PROTOCOL, ChallengeCertificates};
pub use classify::{TlsFailure, VerifyFailure, classify, classify_io, io_error_text};
pub use client::own_listener::{days_left, own_listener_config};
pub use client::{BadServerName, ClientTls, server_name};
pub use client_hello::{ClientHello, ClientHelloError, ClientHelloReader, MAX_CLIENT_HELLO_BYTES};
pub use close_notify::send_close_notify;
pub use error::{StapleError, TlsError, TlsWarning};
pub use expiry::EXPIRY_WARNING;
pub use roots::PlatformRoots;
pub use server::ServerTls;
pub use server::client_auth::ClientAuthVerdict;
pub use server::tickets::TicketKeys;
pub use settings::{
    Alpn, CertificateSource, ClientAuth, ClientTlsSettings, HeldCertificate, ServerTlsSettings,
    TlsVersion, TlsVersionError,
};
pub use watch::{Change, Watcher};
