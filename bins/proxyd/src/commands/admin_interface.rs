//! The admin interface of a running proxy, by the command line or a configuration.

use crate::cli::AdminInterface;
use crate::terminal::{print_error, print_report};
use proxy_config::Loaded;
use proxy_top::AdminAddress;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Address of an admin interface that no configuration names.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

/// An admin interface.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) address: AdminAddress,
    /// The file of its token in the configuration.
    pub(super) token_file: Option<PathBuf>,
}

impl Endpoint {
    /// The endpoint that the command line names; `None` after the fault was printed.
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

    /// The endpoint of the configuration `file`: its address, or the Unix socket if it has no address.
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
