//! Networks of clients that may send requests.

use crate::place::Setting;
use ipnet::IpNet;
use std::path::PathBuf;

/// Networks of clients that may, and may not, send requests. Empty lists admit all clients.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Admitted networks; if not empty, clients outside of all of them are refused.
    pub allow: Vec<Setting<IpNet>>,
    /// Files with such networks.
    pub allow_files: Vec<Setting<NetworkFile>>,
    /// Refused networks, with precedence over admitted ones.
    pub deny: Vec<Setting<IpNet>>,
    /// Files with such networks.
    pub deny_files: Vec<Setting<NetworkFile>>,
}

/// A file with one network per line, as read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NetworkFile {
    /// Path, absolute or relative to the file that names it.
    pub path: PathBuf,
    /// Networks of the file, in its order.
    pub networks: Vec<IpNet>,
}

impl Access {
    /// Returns true if every client is admitted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let Self {
            allow,
            allow_files,
            deny,
            deny_files,
        } = self;
        allow.is_empty() && allow_files.is_empty() && deny.is_empty() && deny_files.is_empty()
    }
}
