//! Converts certificates and TLS versions.

use super::configuration::Configuration;
use super::document::{Entry, Value};
use super::entry_points::EntryPoint;
use crate::kdl::Node;
use crate::site::Site;
use std::collections::BTreeSet;

/// Traefik's default authority.
const DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Hosts of a TLS listener's routers, by certificate resolver.
#[derive(Debug, Default)]
pub(super) struct Hosts<'d> {
    pub(super) resolver: Option<&'d str>,
    pub(super) names: BTreeSet<String>,
}

/// Adds certificates to the listener at a position. Without any, names placeholder files that the
/// operator must provide.
pub(super) fn write(
    site: &mut Site,
    configuration: &Configuration<'_>,
    position: usize,
    point: &EntryPoint<'_>,
    hosts: &[Hosts<'_>],
) {
    let mut has_certificate = false;
    let tls = || {
        configuration
            .documents
            .iter()
            .filter_map(|it| it.get("tls"))
    };
    let default = tls().find_map(|tls| tls.at(&["stores", "default", "defaultCertificate"]));
    let listed = tls().filter_map(|tls| tls.get("certificates"));
    let listed = listed.flat_map(Value::items);
    for certificate in default.into_iter().chain(listed) {
        let files = certificate
            .text_of("certFile")
            .zip(certificate.text_of("keyFile"));
        if let Some((cert, key)) = files {
            site.add_certificate(position, cert, key, []);
            has_certificate = true;
        }
    }
    for hosts in hosts {
        if let Some(node) = acme(site, configuration, hosts)
            && let Some(listener) = site.listeners.get_mut(position)
        {
            listener.tls.push(node);
            has_certificate = true;
        }
    }
    if !has_certificate {
        site.add_certificate(position, "tls.pem", "tls.key", []);
        let place = point.value.map_or_else(
            || configuration.routers.iter().next().map(Entry::place),
            |value| Some(value.place()),
        );
        if let Some(place) = place {
            site.note(
                &place,
                &format!("{}: tls", point.name),
                "Traefik makes or obtains a certificate: write its files in place of `tls.pem` and `tls.key`, or `acme`; see docs/operate/certificates.md",
            );
        }
    }
    options(site, configuration, position);
}

/// The block `acme` for routers with a resolver.
fn acme(site: &mut Site, configuration: &Configuration<'_>, hosts: &Hosts<'_>) -> Option<Node> {
    let resolver = configuration.resolvers.get(hosts.resolver?)?;
    let acme = resolver.value.get("acme")?;
    let email = acme.text_of("email")?;
    let challenge = if acme.get("tlsChallenge").is_some() {
        "tls-alpn-01"
    } else if acme.get("httpChallenge").is_some() {
        "http-01"
    } else {
        return None;
    };
    let names: Vec<&str> = hosts
        .names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.contains('*') && name.contains('.'))
        .collect();
    if names.is_empty() {
        return None;
    }
    site.note(
        &resolver.place(),
        &format!("{}: acme", resolver.key),
        "`terms-agreed` is written, as Traefik agrees by itself; accounts and certificates are created again",
    );
    let directory = acme.text_of("caServer").unwrap_or(DIRECTORY);
    Some(
        Node::new("acme")
            .child(Node::new("hosts").args(names))
            .child(Node::text("directory", directory))
            .child(Node::text("email", email))
            .child(crate::write::flag("terms-agreed"))
            .child(Node::text("challenge", challenge)),
    )
}

/// Converts the TLS options `default`, which apply to every host.
fn options(site: &mut Site, configuration: &Configuration<'_>, position: usize) {
    let Some(options) = configuration.tls_options.get("default") else {
        return;
    };
    let mut nodes = Vec::new();
    for (key, name) in [("minVersion", "min-version"), ("maxVersion", "max-version")] {
        let version = match options.value.text_of(key) {
            Some("VersionTLS12") => "1.2",
            Some("VersionTLS13") => "1.3",
            _ => continue,
        };
        nodes.push(Node::text(name, version));
    }
    if let Some((file, mode)) = client_auth(&options.value) {
        nodes.push(
            Node::new("client-auth")
                .child(Node::text("ca-file", file))
                .child(Node::text("mode", mode)),
        );
    }
    for (key, advice) in [
        (
            "cipherSuites",
            "the suites are fixed, all with forward secrecy and authenticated encryption",
        ),
        (
            "sniStrict",
            "a client without a known server name gets the first certificate",
        ),
    ] {
        if let Some(value) = options.value.get(key) {
            let shown = format!("{}: {key}", options.key);
            site.note(&value.place(), &shown, advice);
        }
    }
    if let Some(listener) = site.listeners.get_mut(position) {
        listener.tls.extend(nodes);
    }
}

/// Authority and mode of client certificates, if a listener can express them.
fn client_auth(options: &Value) -> Option<(&str, &'static str)> {
    let auth = options.get("clientAuth")?;
    let mode = match auth.text_of("clientAuthType") {
        Some("RequireAndVerifyClientCert") => "required",
        Some("VerifyClientCertIfGiven") => "optional",
        _ => return None,
    };
    match auth.texts_of("caFiles").as_slice() {
        [file] => Some((file, mode)),
        _ => None,
    }
}

/// Returns true if options request client certificates in a way that a listener cannot: for only
/// some of its hosts, or without an authority.
pub(super) fn is_unwritten_check(configuration: &Configuration<'_>, router_tls: &Value) -> bool {
    let name = router_tls.text_of("options").unwrap_or("default");
    match configuration.tls_options.get(name) {
        Some(options) => {
            let auth = options.value.get("clientAuth");
            auth.is_some() && (options.key != "default" || client_auth(&options.value).is_none())
        }
        // Traefik refuses handshakes with missing options.
        None => name != "default",
    }
}
