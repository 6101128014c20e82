//! Certificates that Caddy obtains automatically, as blocks `acme`.

use super::parser::Directive;
use crate::kdl::Node;
use crate::migrated::Place;
use crate::site::Site;
use std::collections::HashSet;

/// Caddy's default authority.
const DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Options by which Caddy obtains certificates in ways that a block `acme` does not support.
const OTHER_WAYS: &[&str] = &[
    "acme_ca_root",
    "acme_dns",
    "acme_eab",
    "auto_https",
    "cert_issuer",
    "key_type",
    "local_certs",
    "on_demand_tls",
];

/// ACME account of the global options.
pub(super) struct Automatic {
    email: String,
    directory: String,
    place: Place,
    /// Hosts that have a block `acme` already.
    hosts: HashSet<String>,
}

impl Automatic {
    /// Reads the account from the global options; `None` without an e-mail address, or if
    /// certificates are obtained in another way.
    pub(super) fn read(options: &Directive) -> Option<Self> {
        let find = |name: &str| options.block.iter().find(|it| it.name() == name);
        let is_other = |it: &Directive| OTHER_WAYS.contains(&it.name());
        let email = find("email").filter(|it| is_plain(it.word(1)) && it.word(1).contains('@'))?;
        let directory = find("acme_ca").map_or(DIRECTORY, |it| it.word(1));
        let is_directory = directory.starts_with("https://") && is_plain(directory);
        let is_written = is_directory && !options.block.iter().any(is_other);
        is_written.then(|| Self {
            email: email.word(1).to_owned(),
            directory: directory.to_owned(),
            place: email.place.clone(),
            hosts: HashSet::new(),
        })
    }

    /// Returns true if a host has a block `acme`.
    pub(super) fn has_certificates(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Adds a block `acme` for a host to the listener at `position`. Caddy obtains a certificate
    /// per host.
    pub(super) fn obtain(&mut self, site: &mut Site, position: usize, host: &str) {
        if !self.hosts.insert(host.to_ascii_lowercase()) {
            return;
        }
        site.note(
            &self.place,
            &format!("email {}", self.email),
            "`terms-agreed` is written, as Caddy agrees by itself; accounts and certificates are created again",
        );
        let block = Node::new("acme")
            .child(Node::text("hosts", host))
            .child(Node::text("directory", &self.directory))
            .child(Node::text("email", &self.email))
            .child(crate::write::flag("terms-agreed"));
        if let Some(listener) = site.listeners.get_mut(position) {
            listener.tls.push(block);
        }
    }
}

fn is_plain(word: &str) -> bool {
    !word.contains(['{', '"', ' '])
}

/// Returns true if Caddy would obtain the host's certificate by the HTTP challenge.
pub(super) fn is_obtained(block: &Directive, host: &str) -> bool {
    let has_own = block.block.iter().any(|it| it.name() == "tls");
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    !has_own && host.contains('.') && host.chars().all(is_host)
}
