//! Certificates in, rustls configurations out.
//!
//! [`ServerTls`] is one listener's TLS and [`ClientTls`] one upstream's: each is loaded from
//! plain settings, hands out a shared rustls configuration for the next connection, and takes
//! new files while it runs when a [`Watcher`] finds them. Nothing here opens a socket, starts
//! a thread, reads a clock or installs a process-wide provider.

mod certificate;
mod classify;
mod client;
mod client_auth;
mod close_notify;
mod error;
mod expiry;
mod file;
mod leaf;
mod listed;
mod pem;
mod provider;
mod resolver;
mod roots;
mod server;
mod settings;
mod staple;
mod tickets;
mod watch;

pub use classify::{TlsFailure, VerifyFailure, classify, classify_io, io_error_text};
pub use client::{BadServerName, ClientTls, server_name};
pub use client_auth::ClientAuthVerdict;
pub use close_notify::send_close_notify;
pub use error::{StapleError, TlsError, TlsWarning};
pub use expiry::{CertificateInfo, EXPIRY_WARNING};
pub use roots::PlatformRoots;
pub use server::ServerTls;
pub use settings::{
    Alpn, CertificateSource, ClientAuth, ClientTlsSettings, ServerTlsSettings, TlsVersion,
    TlsVersionError,
};
pub use tickets::TicketKeys;
pub use watch::{Change, Watcher};
