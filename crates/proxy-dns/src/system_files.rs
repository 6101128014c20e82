//! The resolver's files of the system: `/etc/hosts` and `/etc/resolv.conf`.

use crate::error::LookUpError;
use crate::settings::ResolverSettings;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, TokioResolver};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Contents of the files at the last read.
#[derive(Clone)]
pub(crate) struct SystemFiles {
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) resolver: Result<TokioResolver, LookUpError>,
    /// Maximum time of one attempt to ask a name server.
    pub(crate) attempt_timeout: Duration,
    stamps: [Option<Stamp>; 2],
}

/// Metadata of a file, which a write or a replacement changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size_bytes: u64,
    /// Time of the last change of contents or metadata, since 1970.
    changed_secs: i64,
    changed_nanos: i64,
}

impl SystemFiles {
    /// Reads the files. Blocks.
    pub(crate) fn read(settings: &ResolverSettings) -> Self {
        Self {
            stamps: stamps(settings),
            hosts: Arc::new(Hosts::from_system().unwrap_or_default()),
            resolver: resolver(settings),
            attempt_timeout: settings.timeout / 2,
        }
    }

    /// Returns true if a file has changed since. Blocks.
    pub(crate) fn are_stale(&self, settings: &ResolverSettings) -> bool {
        self.stamps != stamps(settings)
    }
}

fn stamps(settings: &ResolverSettings) -> [Option<Stamp>; 2] {
    let reads_resolv_conf = settings.name_servers.is_empty();
    let resolv_conf = reads_resolv_conf.then(|| stamp(RESOLV_CONF)).flatten();
    [stamp(HOSTS), resolv_conf]
}

fn stamp(path: &str) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some(Stamp {
        device: file.dev(),
        inode: file.ino(),
        size_bytes: file.len(),
        changed_secs: file.ctime(),
        changed_nanos: file.ctime_nsec(),
    })
}

fn resolver(settings: &ResolverSettings) -> Result<TokioResolver, LookUpError> {
    let no_server = |error: String| LookUpError::NoNameServer(error);
    let (config, options) = if settings.name_servers.is_empty() {
        read_system_conf().map_err(|error| no_server(error.to_string()))?
    } else {
        let servers = settings.name_servers.iter().map(name_server);
        let config = ResolverConfig::from_name_servers(servers.collect());
        (config, ResolverOpts::default())
    };
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let mut builder = builder.with_options(options);
    let options = builder.options_mut();
    // Two attempts fit into the timeout of the whole.
    options.timeout = options.timeout.min(settings.timeout / 2);
    options.attempts = 1;
    // Caching is the caller's: each look-up queries the servers.
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.try_tcp_on_error = true;
    builder
        .build()
        .map_err(|error| no_server(error.to_string()))
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
    let connections = connections.map(|mut connection| {
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}
