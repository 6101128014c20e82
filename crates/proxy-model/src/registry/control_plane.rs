//! The `control-plane` block.

use super::kind::Block;
use super::spec::{DefaultValue, MachinePart, Repeatable, Required, Unset};
use super::table::{block, file, flag, settings, text, words, written};
use super::text::{Text, Written};
use super::word::Flag;
use crate::address::{AddressError, BindAddress, check_authority};
use crate::control_plane::{Label, NamedPath};
use std::path::PathBuf;

const MAX_NAME_CHARS: usize = 100;

/// Parses a base URL, with a path that is the prefix of every request's path.
fn url(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .ok_or("it begins with https:// or http://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() {
        return Err("there is no host".to_owned());
    }
    if authority.contains('@') {
        return Err("a credential does not belong in it".to_owned());
    }
    if rest.contains(['?', '#', ' ']) {
        return Err("it is a base URL, without a query".to_owned());
    }
    check_authority(authority).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

fn project(text: &str) -> Result<String, String> {
    let is_id = text.len() == 36 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    is_id
        .then(|| text.to_owned())
        .ok_or_else(|| "it is a UUID".to_owned())
}

fn node_name(text: &str) -> Result<String, String> {
    let good = (1..=MAX_NAME_CHARS).contains(&text.chars().count());
    let good = good && !text.chars().any(char::is_control);
    good.then(|| text.to_owned())
        .ok_or_else(|| "it has 1 to 100 characters".to_owned())
}

/// Parses `name=/path`, or a path that is its own name.
fn named_path(text: &str) -> Result<NamedPath, String> {
    let (name, path) = match text.split_once('=') {
        _ if text.starts_with('/') => (text, text),
        Some(pair) => pair,
        None => return Err("write `name=/path`".to_owned()),
    };
    if name.is_empty() || !path.starts_with('/') {
        return Err("write `name=/path`; the path begins with `/`".to_owned());
    }
    let (name, path) = (name.to_owned(), path.into());
    Ok(NamedPath { name, path })
}

fn bind_address(text: &str) -> Result<BindAddress, String> {
    text.parse()
        .map_err(|error: AddressError| error.to_string())
}

fn agent_socket(text: &str) -> Result<NamedPath, String> {
    if text.starts_with('/') {
        return Err("write `name=/path`, with the agent's name".to_owned());
    }
    named_path(text)
}

fn label(text: &str) -> Result<Label, String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("a label is written name=value")?;
    let (name, value) = (name.to_owned(), value.to_owned());
    Ok(Label { name, value })
}

settings! {
    /// Base URL of the control plane. Off loopback it is `https`, unless `allow-plain-http` is set: node keys and
    /// private keys of certificates pass over it.
    URL: Text<String>, Required =
        text("control-plane.url", "a URL", "https://control.example.com", url)
            .names(MachinePart::PeerAddress)
            .enforced("control-client", "a_node_enrols_and_runs_the_bundle_of_its_order");
    /// Permits `http` in `url` off loopback, for networks that are themselves encrypted and
    /// trusted. Every host on the path can read node keys and private keys of certificates.
    ALLOW_PLAIN_HTTP: Flag, DefaultValue<bool> = flag("control-plane.allow-plain-http")
        .or(false)
        .enforced("proxy-config", "a_control_plane_without_tls_off_loopback_is_allowed_by_name_only");
    /// The project to enrol in. Not read once the node has an identity in `data-dir`.
    PROJECT: Text<String>, Unset =
        text("control-plane.project", "a project's id", "01890a5d-ac96-774b-bcce-b302099a8057", project)
            .optional("the node has an identity already")
            .enforced("control-client", "a_node_enrols_and_runs_the_bundle_of_its_order");
    /// The file with an enrolment token. Not read once the node has an identity in `data-dir`.
    ENROLMENT_TOKEN_FILE: Text<PathBuf>, Unset =
        file("control-plane.enrolment-token-file", "a file", "enrolment.token")
            .optional("the node has an identity already")
            .enforced("control-client", "a_node_enrols_and_runs_the_bundle_of_its_order");
    /// The folder in which the node stores its identity, its signing keys and its last good bundle.
    /// It is made if it is missing, and readable by its owner only.
    DATA_DIR: Text<PathBuf>, DefaultValue<Written<PathBuf>> =
        file("control-plane.data-dir", "a folder", "/var/lib/proxyd")
            .or(written("/var/lib/proxyd", || "/var/lib/proxyd".into()))
            .names(MachinePart::Folder)
            .enforced("control-client", "a_node_starts_from_its_last_good_bundle_without_the_control_plane");
    /// A file of 32 random bytes, readable by its owner only, that seals the private keys of certificates in `data-dir`:
    /// with them a node that restarts while the control plane is unreachable serves TLS. It may be a credential that systemd
    /// unseals by the TPM. A copy of `data-dir` opens no private key without it.
    MACHINE_KEY_FILE: Text<PathBuf>, Unset = file("control-plane.machine-key-file", "a file", "/run/credentials/proxyd.service/machine-key")
        .optional("`machine.key` in `data-dir`, made when it is needed")
        .enforced("control-client", "another_key_of_the_machine_opens_no_private_key");
    /// Roots for the control plane's certificate.
    CA_FILE: Text<PathBuf>, Unset = file("control-plane.ca-file", "a file", "ca.pem")
        .optional("the roots of the system")
        .enforced("control-client", "a_node_trusts_only_the_roots_of_its_ca_file");
    /// The node's name, unique in its project; given at the enrolment.
    NODE_NAME: Text<String>, Unset =
        text("control-plane.node-name", "a name", "edge-1", node_name)
            .optional("the name of the host")
            .enforced("control-client", "a_node_enrols_with_its_name_and_labels");
    /// Labels of the node, as `name=value`; given at the enrolment.
    LABELS: Text<Label>, Repeatable = text("control-plane.labels", "a label", "region=eu", label)
        .many()
        .enforced("control-client", "a_node_enrols_with_its_name_and_labels");
    /// The parts of this machine that bundles of the control plane may use. Without it, a bundle may listen
    /// on TCP ports above 1023, have targets off loopback, and read its own files.
    ALLOW: Block, Unset = block("control-plane.allow")
        .optional("only ports above 1023 and targets outside loopback")
        .enforced("proxy-config", "a_bundle_may_use_the_allowed_parts_of_the_machine");
    /// Folders with static files, as `name=/path` or `/path`. A bundle refers to a folder by name
    /// or path, as the `root` of `static-files`. A folder inside or around `data-dir` is refused.
    STATIC_ROOTS: Text<NamedPath>, Repeatable =
        text("control-plane.allow.static-roots", "a folder, as `name=/path`", "docs=/srv/docs", named_path)
            .many()
            .names(MachinePart::Folder)
            .enforced("proxy-config", "a_bundle_may_use_the_allowed_parts_of_the_machine");
    /// Sockets of agents, as `name=/path`. A bundle has an `agent` of the name, without a socket of its own.
    AGENTS: Text<NamedPath>, Repeatable =
        text("control-plane.allow.agents", "a socket, as `name=/path`", "waf=/run/waf.sock", agent_socket)
            .many()
            .names(MachinePart::Socket)
            .enforced("proxy-config", "a_bundle_may_use_the_allowed_parts_of_the_machine");
    /// Addresses of listeners: TCP ports up to 1023, and Unix sockets. `0.0.0.0:443` allows the port on each
    /// IPv4 address, `[::]:443` on each address.
    LISTENERS: Text<BindAddress>, Repeatable =
        text("control-plane.allow.listeners", "an address to listen on", "0.0.0.0:443", bind_address)
            .many()
            .names(MachinePart::LocalAddress)
            .enforced("proxy-config", "a_bundle_may_use_the_allowed_parts_of_the_machine");
    /// Servers of shared rate limits, as host and port. A store with an IP address off loopback
    /// needs no entry.
    RATE_LIMIT_STORES: Text<String>, Repeatable =
        words("control-plane.allow.rate-limit-stores", "a host and a port", "cache.internal:6379")
            .many()
            .names(MachinePart::PeerAddress)
            .enforced("proxy-config", "a_bundle_may_use_the_allowed_parts_of_the_machine");
    /// Folders in which listeners of a bundle may obtain certificates by ACME, as `name=/path` or
    /// `/path`. A bundle refers to a folder by name or path, as the `storage` of an `acme` block;
    /// its keys are generated on the node and stay there.
    ACME_STORAGES: Text<NamedPath>, Repeatable =
        text("control-plane.allow.acme-storages", "a folder, as `name=/path`", "acme=/var/lib/proxyd/acme", named_path)
            .many()
            .names(MachinePart::Folder)
            .enforced("proxy-config", "a_bundle_may_use_the_allowed_parts_of_the_machine");
    /// Programs that listeners of a bundle may run as the `dns-command` of an `acme` block, as `name=/path` or `/path`.
    DNS_COMMANDS: Text<NamedPath>, Repeatable =
        text("control-plane.allow.dns-commands", "a program, as `name=/path`", "dns=/usr/local/lib/proxyd/dns-record", named_path)
            .many()
            .names(MachinePart::File)
            .enforced("proxy-config", "a_bundle_may_use_the_allowed_parts_of_the_machine");
    /// Permits targets with loopback addresses, also by DNS. The admin interface and link-local
    /// addresses are never targets of a bundle.
    UPSTREAMS_ON_LOOPBACK: Flag, DefaultValue<bool> = flag("control-plane.allow.upstreams-on-loopback")
        .or(false)
        .enforced("proxy-config", "a_bundle_may_use_the_allowed_parts_of_the_machine");
}
