//! `proxyd health`: checks the readiness of a running proxy.

use super::admin_interface::Endpoint;
use crate::cli::AdminInterface;
use crate::terminal::{print_error, print_line};
use proxy_top::AdminClient;
use std::io;
use std::process::ExitCode;

/// Requests `/ready`, which needs no token. Exit code 0: ready; 1: not ready, no response, or an
/// invalid configuration.
pub(super) fn run(interface: &AdminInterface) -> io::Result<ExitCode> {
    let Some(endpoint) = Endpoint::from_arguments(interface) else {
        return Ok(ExitCode::FAILURE);
    };
    let ready =
        AdminClient::new(endpoint.address, None).and_then(|client| proxy_top::ready(&client));
    match ready {
        Ok(()) => {
            print_line("ready")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            print_error(format_args!("proxyd: {error}"));
            Ok(ExitCode::FAILURE)
        }
    }
}
