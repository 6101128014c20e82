//! The `admin` block.

use super::spec::{DefaultValue, MachinePart, Unset};
use super::table::{file, settings, text, written};
use super::text::{Text, Written};
use crate::address::socket_address;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

fn address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "off" {
        return Ok(None);
    }
    let address = socket_address(text).map_err(|fault| fault.to_string())?;
    Ok(Some(address))
}

settings! {
    /// Address of the admin interface, or `"off"`. An address other than loopback requires a
    /// `token-file`.
    ADDRESS: Text<Option<SocketAddr>>, DefaultValue<Written<Option<SocketAddr>>> =
        text("admin.address", "an address to listen on, or `off`", "127.0.0.1:9090", address)
            .or(written("127.0.0.1:9090", || Some((Ipv4Addr::LOCALHOST, 9090).into())))
            .names(MachinePart::LocalAddress)
            .enforced("proxy-admin", "the_admin_interface_answers_at_its_address");
    /// The file with the token that clients must send as `Authorization: Bearer`.
    TOKEN_FILE: Text<PathBuf>, Unset = file("admin.token-file", "a file", "admin.token")
        .optional("no token is required")
        .enforced("proxy-admin", "the_admin_interface_asks_for_the_token_in_its_file");
    /// A Unix socket of the admin interface, in addition to its address. Access to the socket's
    /// file is the only authorization.
    UNIX_SOCKET: Text<PathBuf>, Unset =
        file("admin.unix-socket", "a socket", "/run/proxy-admin.sock")
            .optional("there is none")
            .names(MachinePart::Socket)
            .enforced("proxy-admin", "the_admin_interface_at_a_unix_socket_is_handed_over_too");
}
