//! nginx.

mod differences;
mod requests;

use crate::peer::Peer;
use proxy_migrate::Language;
use std::path::Path;
use std::process::Command;

pub(crate) const NGINX: Peer = Peer {
    program: "nginx",
    language: Language::Nginx,
    page: "nginx-differences.md",
    min_requests: 500,
    sites: SITES,
    requests: requests::site_requests,
    rules: differences::RULES,
    migrated: |site| format!("default_type application/octet-stream;\n{site}"),
    configuration,
    command,
};

const SITES: &[(&str, &str)] = &[
    ("access", include_str!("nginx/sites/access.conf")),
    ("application", include_str!("nginx/sites/application.conf")),
    ("cache", include_str!("nginx/sites/cache.conf")),
    ("errors", include_str!("nginx/sites/errors.conf")),
    ("files", include_str!("nginx/sites/files.conf")),
    ("gzip", include_str!("nginx/sites/gzip.conf")),
    ("headers", include_str!("nginx/sites/headers.conf")),
    ("limits", include_str!("nginx/sites/limits.conf")),
    ("locations", include_str!("nginx/sites/locations.conf")),
    ("real-ip", include_str!("nginx/sites/real-ip.conf")),
    ("redirects", include_str!("nginx/sites/redirects.conf")),
    ("rewrites", include_str!("nginx/sites/rewrites.conf")),
    ("upstreams", include_str!("nginx/sites/upstreams.conf")),
];

fn configuration(site: &str, folder: &Path) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|name| format!("{name}_temp_path {};\n", path(name)));
    let temporary = temporary.concat();
    format!(
        "daemon off; worker_processes 1; pid {}; error_log {} warn;\nevents {{ }}\nhttp {{\n\
         types {{ text/html html; text/css css; application/javascript js; application/json json; text/plain txt; image/x-icon ico; }}\n\
         default_type application/octet-stream; access_log off;\n{temporary}{site}\n}}\n",
        path("pid"),
        path("log"),
    )
}

fn command(file: &Path, folder: &Path) -> Command {
    let mut command = Command::new("nginx");
    command
        .arg("-c")
        .arg(file)
        .arg("-e")
        .arg(folder.join("log"));
    command
}
