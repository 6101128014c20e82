//! `proxyd top`: live view of a running proxy.

use super::admin_interface::Endpoint;
use crate::cli::Top;
use crate::terminal::{print_error, print_line};
use proxy_top::AdminClient;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

/// Maximum size of a token file.
const MAX_TOKEN_BYTES: u64 = 4096;

/// Shows the proxy until a key is pressed or a signal arrives, or prints a page. Exit code 0:
/// shown; 1: invalid configuration, or no response.
pub(super) fn run(arguments: &Top) -> io::Result<ExitCode> {
    let Some(client) = client(arguments) else {
        return Ok(ExitCode::FAILURE);
    };
    let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let shown = if arguments.once || !has_terminal {
        proxy_top::page(&client).map(Some)
    } else {
        proxy_top::watch(client).map(|()| None)
    };
    match shown {
        Ok(page) => {
            if let Some(page) = page {
                print_line(page.trim_end())?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            print_error(format_args!("proxyd: {error}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Creates the client of the admin interface. Prints a fault and returns `None`.
fn client(arguments: &Top) -> Option<AdminClient> {
    let Endpoint {
        address,
        token_file,
    } = Endpoint::from_arguments(&arguments.interface)?;
    let token_file = arguments.token_file.clone().or(token_file);
    let token = match &token_file {
        None => None,
        Some(file) => match read_token(file) {
            Ok(token) => Some(token),
            Err(error) => {
                print_error(format_args!(
                    "proxyd: cannot read {}: {error}",
                    file.display()
                ));
                return None;
            }
        },
    };
    let client = AdminClient::new(address, token.as_deref());
    client
        .map_err(|error| print_error(format_args!("proxyd: {error}")))
        .ok()
}

fn read_token(file: &Path) -> io::Result<String> {
    let mut token = String::new();
    File::open(file)?
        .take(MAX_TOKEN_BYTES)
        .read_to_string(&mut token)?;
    Ok(token)
}
