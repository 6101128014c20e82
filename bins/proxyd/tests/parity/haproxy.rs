//! `HAProxy`.

mod differences;
mod requests;

use crate::peer::Peer;
use proxy_migrate::Language;
use std::path::Path;
use std::process::Command;

pub(crate) const HAPROXY: Peer = Peer {
    program: "haproxy",
    language: Language::Haproxy,
    page: "haproxy-differences.md",
    min_requests: 300,
    sites: SITES,
    requests: requests::site_requests,
    rules: differences::RULES,
    migrated: |site| format!("{DEFAULTS}{site}"),
    configuration: |site, _| format!("{DEFAULTS}{site}"),
    command,
};

const DEFAULTS: &str = "global\n  maxconn 200\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 5s\n  timeout server 5s\n";

const SITES: &[(&str, &str)] = &[
    ("access", include_str!("haproxy/sites/access.cfg")),
    ("compression", include_str!("haproxy/sites/compression.cfg")),
    ("errors", include_str!("haproxy/sites/errors.cfg")),
    ("headers", include_str!("haproxy/sites/headers.cfg")),
    ("hosts", include_str!("haproxy/sites/hosts.cfg")),
    ("office", include_str!("haproxy/sites/office.cfg")),
    ("paths", include_str!("haproxy/sites/paths.cfg")),
    ("redirects", include_str!("haproxy/sites/redirects.cfg")),
    ("rewrites", include_str!("haproxy/sites/rewrites.cfg")),
    ("servers", include_str!("haproxy/sites/servers.cfg")),
];

fn command(file: &Path, _: &Path) -> Command {
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(file);
    command
}
