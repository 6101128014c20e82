//! The admin interface.

use crate::place::Setting;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The `admin` block. Off loopback there is always a token file.
#[derive(Clone, Debug)]
pub struct Admin {
    /// Where it listens; none when it is `"off"`.
    pub address: Setting<Option<SocketAddr>>,
    /// The file that holds the bearer token callers must send; none asks for none.
    pub token_file: Option<Setting<PathBuf>>,
    /// A Unix socket where it listens too; who may open the file may ask.
    pub unix_socket: Option<Setting<PathBuf>>,
}
