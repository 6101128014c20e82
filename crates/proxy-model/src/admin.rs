//! The admin interface.

use crate::place::Setting;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The `admin` block. An address other than loopback requires a token file.
#[derive(Clone, Debug)]
pub struct Admin {
    /// The address of the interface's listener; `None` for `"off"`.
    pub address: Setting<Option<SocketAddr>>,
    /// The file with the bearer token that clients must send; `None` requires no token.
    pub token_file: Option<Setting<PathBuf>>,
    /// A Unix socket in addition to the address; access to the socket's file is the only
    /// authorization.
    pub unix_socket: Option<Setting<PathBuf>>,
}
