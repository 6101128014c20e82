//! Caddy.

mod differences;
mod requests;

use crate::peer::Peer;
use proxy_migrate::Language;
use std::path::Path;
use std::process::Command;

pub(crate) const CADDY: Peer = Peer {
    program: "caddy",
    language: Language::Caddy,
    page: "caddy-differences.md",
    min_requests: 300,
    sites: SITES,
    requests: requests::site_requests,
    rules: differences::RULES,
    migrated: str::to_owned,
    configuration: |site, _| format!("{{\n\tadmin off\n}}\n{site}"),
    command,
};

const SITES: &[(&str, &str)] = &[
    ("access", include_str!("caddy/sites/access.caddyfile")),
    ("encode", include_str!("caddy/sites/encode.caddyfile")),
    ("errors", include_str!("caddy/sites/errors.caddyfile")),
    ("files", include_str!("caddy/sites/files.caddyfile")),
    ("headers", include_str!("caddy/sites/headers.caddyfile")),
    ("matchers", include_str!("caddy/sites/matchers.caddyfile")),
    ("paths", include_str!("caddy/sites/paths.caddyfile")),
    ("proxies", include_str!("caddy/sites/proxies.caddyfile")),
    ("redirects", include_str!("caddy/sites/redirects.caddyfile")),
    ("rewrites", include_str!("caddy/sites/rewrites.caddyfile")),
];

fn command(file: &Path, folder: &Path) -> Command {
    let mut command = Command::new("caddy");
    command
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(file)
        .env("HOME", folder)
        .env("XDG_CONFIG_HOME", folder)
        .env("XDG_DATA_HOME", folder);
    command
}
