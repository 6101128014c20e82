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
mod expiry;
mod fault;
mod file;
mod goodbye;
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
pub use expiry::{CertificateInfo, EXPIRY_WARNING};
pub use fault::{StapleFault, TlsFault, TlsWarning};
pub use goodbye::say_goodbye;
pub use roots::PlatformRoots;
pub use server::ServerTls;
pub use settings::{
    Alpn, CertificateSource, ClientAuth, ClientTlsSettings, ServerTlsSettings, TlsVersion,
    TlsVersionFault,
};
pub use tickets::TicketKeys;
pub use watch::{Change, Watcher};
