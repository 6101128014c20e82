//! Converts `bind` lines to listeners.

use super::routes::Frontend;
use crate::haproxy::parser::Line;
use crate::kdl::Node;
use crate::site::{Certificate, Listener, Site};
use std::net::SocketAddr;

/// Words of a `bind` with an effect but no counterpart.
const UNWRITTEN: &[&str] = &[
    "ca-ignore-err",
    "ca-verify-file",
    "ciphers",
    "ciphersuites",
    "crt-ignore-err",
    "crt-list",
    "maxconn",
    "ocsp-update",
    "severity-output",
    "ssl-max-ver",
    "strict-sni",
    "transparent",
];

/// Adds a listener for each address of a `bind`. Notes an address without a port, or of another
/// listener.
pub(in crate::haproxy) fn bind(
    site: &mut Site,
    frontend: &mut Frontend<'_>,
    line: &Line,
    timeouts: &[Node],
) {
    if is_elsewhere(site, line) {
        return;
    }
    note_words(site, frontend, line);
    for address in line.word(1).split(',') {
        let address = full_address(address);
        let port = address.rsplit_once(':').map_or("", |(_, port)| port);
        if port.parse::<u16>().is_err() {
            line.note(site, "write a listener for each port");
            continue;
        }
        if address.parse::<SocketAddr>().is_err() {
            line.note(site, "write a listener with an IP address and a port");
            continue;
        }
        if site.listener_at(&address).is_some() {
            line.note(site, "another listener has the address");
            continue;
        }
        let name = site.listener_name(match port {
            "80" => "http".to_owned(),
            "443" => "https".to_owned(),
            port => format!("port-{port}"),
        });
        let is_tls = line.has("ssl");
        if is_tls && line.option("crt").is_none() {
            line.note(
                site,
                "write a listener with `tls { cert-file …; key-file … }`: it names no certificate",
            );
            continue;
        }
        let mut listener = Listener {
            name: name.clone(),
            address,
            is_tls,
            timeouts: timeouts.to_vec(),
            ..Listener::default()
        };
        if is_tls {
            certificate(site, line, &mut listener);
            client_auth(site, frontend, line, &mut listener);
        }
        if line.option("ssl-min-ver") == Some("TLSv1.3") {
            listener.tls.push(Node::text("min-version", "1.3"));
        }
        if line.has("accept-proxy") {
            listener.settings.push(crate::write::flag("proxy-protocol"));
            line.note(
                site,
                "name the balancers in `trusted-proxies` of the listener: without them every connection is closed",
            );
        }
        site.listeners.push(listener);
        let names = if is_tls {
            &mut frontend.tls
        } else {
            &mut frontend.plain
        };
        names.push(name);
    }
}

/// Returns true if a `bind` is of one interface or namespace, which listeners do not have; notes it.
fn is_elsewhere(site: &mut Site, line: &Line) -> bool {
    let is_elsewhere = line.has("interface") || line.has("namespace");
    if is_elsewhere {
        line.note(
            site,
            "write a listener with an address of that interface; there is none until then",
        );
    }
    is_elsewhere
}

/// Notes words without a counterpart. A list of certificates closes the frontend.
fn note_words(site: &mut Site, frontend: &mut Frontend<'_>, line: &Line) {
    let words = line.words.iter().skip(2).map(String::as_str);
    let unwritten: Vec<&str> = words.filter(|word| UNWRITTEN.contains(word)).collect();
    if !unwritten.is_empty() {
        let advice = format!("not carried over: {}", unwritten.join(", "));
        line.note(site, &advice);
    }
    if line.has("crt-list") && line.has("crt") {
        frontend.is_closed = true;
        line.note(
            site,
            "the list may ask for client certificates: write `tls { client-auth … }`; its routes answer 501 until then",
        );
    }
}

/// Replaces `*` or nothing by `0.0.0.0`, and `::` by `[::]`.
fn full_address(address: &str) -> String {
    let wildcard = address.strip_prefix("*:").or(address.strip_prefix(':'));
    match (address.strip_prefix(":::"), wildcard) {
        (Some(port), _) => format!("[::]:{port}"),
        (None, Some(port)) => format!("0.0.0.0:{port}"),
        (None, None) => address.to_owned(),
    }
}

/// Adds the certificate of `crt`, a PEM file that includes the key. A folder is noted.
fn certificate(site: &mut Site, line: &Line, listener: &mut Listener) {
    let Some(file) = line.option("crt") else {
        return;
    };
    listener.certificates.push(Certificate {
        cert: file.to_owned(),
        key: file.to_owned(),
        names: Vec::new(),
    });
    if file.strip_suffix(".pem").is_none() {
        line.note(site, "write a `certificate` for each file of the folder");
    }
}

/// Converts the verification of client certificates.
fn client_auth(site: &mut Site, frontend: &mut Frontend<'_>, line: &Line, listener: &mut Listener) {
    let mode = match line.option("verify") {
        Some("required") => Some("required"),
        Some("optional") => Some("optional"),
        _ => None,
    };
    match (line.option("ca-file"), mode) {
        (Some(file), Some(mode)) => {
            let block = Node::new("client-auth").child(Node::text("ca-file", file));
            listener.tls.push(block.child(Node::text("mode", mode)));
        }
        (None, Some(_)) => {
            frontend.is_closed = true;
            line.note(
                site,
                "write `tls { client-auth { ca-file … } }` in the listener; its routes answer 501 until then",
            );
        }
        (_, None) => {}
    }
    if let Some(list) = line.option("crl-file") {
        frontend.is_closed = true;
        let shown = format!("crl-file {list}");
        site.note(
            &line.place,
            &shown,
            "revoked certificates are not looked up; its routes answer 501 until it is taken out",
        );
    }
}
