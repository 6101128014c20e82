//! Address of a running proxy's admin interface, from the command line or a configuration.

use crate::cli::AdminInterface;
use crate::terminal::{print_error, print_report};
use proxy_config::Loaded;
use proxy_top::AdminAddress;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Address if neither the command line nor a configuration names one.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

/// Address of an admin interface.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) address: AdminAddress,
    /// Token file in the configuration.
    pub(super) token_file: Option<PathBuf>,
}

impl Endpoint {
    /// Determines the interface from the command line. Prints a fault and returns `None`.
    pub(super) fn from_arguments(interface: &AdminInterface) -> Option<Self> {
        let AdminInterface { config, admin } = interface;
        match (admin, config) {
            (Some(address), _) => Some(Self::without_token(address.clone())),
            (None, Some(file)) => Self::from_configuration(file),
            (None, None) => Some(Self::without_token(AdminAddress::Tcp(DEFAULT_ADDRESS))),
        }
    }

    fn without_token(address: AdminAddress) -> Self {
        Self {
            address,
            token_file: None,
        }
    }

    /// Determines the interface from a configuration. The Unix socket is used if there is no
    /// address.
    fn from_configuration(file: &Path) -> Option<Self> {
        let model = match proxy_config::load(file) {
            Ok(Loaded { model, .. }) => model,
            Err(report) => {
                print_report(&report);
                return None;
            }
        };
        let admin = model.admin;
        if let Some(address) = admin.address.value {
            return Some(Self {
                address: AdminAddress::Tcp(address),
                token_file: admin.token_file.map(|file| file.value),
            });
        }
        if let Some(socket) = admin.unix_socket {
            return Some(Self::without_token(AdminAddress::Unix(socket.value)));
        }
        let file = file.display();
        print_error(format_args!(
            "proxyd: {file} has no admin interface: write `admin {{ address … }}`"
        ));
        None
    }
}
