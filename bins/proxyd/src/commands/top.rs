//! `proxyd top`: traffic of a running proxy.

use crate::cli::Top;
use crate::terminal::{print_error, print_report, say};
use proxy_config::Loaded;
use proxy_top::{AdminAddress, AdminClient};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Address of an admin interface that no configuration names.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);
/// Maximum length of a token's file.
const MAX_TOKEN_BYTES: u64 = 4096;

/// Shows the proxy until a key or a signal, or prints a page. Exit code 0: shown; 1: the configuration has errors, or the
/// admin interface does not answer.
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
                say(page.trim_end())?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            print_error(format_args!("proxyd: {error}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A client of the interface; `None` after the fault was printed.
fn client(arguments: &Top) -> Option<AdminClient> {
    let (address, token_file) = match &arguments.admin {
        Some(address) => (address.clone(), None),
        None => match &arguments.config {
            Some(file) => of_configuration(file)?,
            None => (AdminAddress::Tcp(DEFAULT_ADDRESS), None),
        },
    };
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

/// The interface of the configuration `file`, and the file of its token: the address, or the Unix socket without one.
fn of_configuration(file: &Path) -> Option<(AdminAddress, Option<PathBuf>)> {
    let model = match proxy_config::load(file) {
        Ok(Loaded { model, .. }) => model,
        Err(report) => {
            print_report(&report);
            return None;
        }
    };
    let admin = model.admin;
    if let Some(address) = admin.address.value {
        let token_file = admin.token_file.map(|file| file.value);
        return Some((AdminAddress::Tcp(address), token_file));
    }
    if let Some(socket) = admin.unix_socket {
        return Some((AdminAddress::Unix(socket.value), None));
    }
    let file = file.display();
    print_error(format_args!(
        "proxyd: {file} has no admin interface: write `admin {{ address … }}`"
    ));
    None
}

fn read_token(file: &Path) -> io::Result<String> {
    let mut token = String::new();
    File::open(file)?
        .take(MAX_TOKEN_BYTES)
        .read_to_string(&mut token)?;
    Ok(token)
}
