//! Converts `listen` directives to listeners.

pub(super) mod real_ip;

use super::advice;
use super::parser::Directive;
use super::scope::Scope;
use super::value::has_variables;
use crate::kdl::Node;
use crate::site::{Listener, Site};
use crate::units;
use std::collections::HashSet;
use std::net::SocketAddr;

/// Client timeouts, with the corresponding settings of a listener.
const CLIENT_TIMEOUTS: &[(&str, &str)] = &[
    ("client_header_timeout", "header"),
    ("client_body_timeout", "body-idle"),
    ("send_timeout", "write-idle"),
    ("keepalive_timeout", "keep-alive"),
];

pub(super) fn is_client_timeout(name: &str) -> bool {
    CLIENT_TIMEOUTS
        .iter()
        .any(|(directive, _)| *directive == name)
}

/// Sets the client timeouts of all listeners.
pub(super) fn write_client_timeouts(site: &mut Site, block: &[Directive]) {
    let mut timeouts = Vec::new();
    for (directive_name, setting) in CLIENT_TIMEOUTS {
        let mut found = block.iter().filter(|it| it.name == *directive_name);
        let Some(directive) = found.next_back() else {
            continue;
        };
        match directive
            .word(0)
            .and_then(|word| units::milliseconds(word, 1_000))
        {
            Some(ms) if ms >= 1_000 => {
                timeouts.push(site.time(&directive.place, &directive.shown(), setting, ms));
            }
            _ => site.note(
                &directive.place,
                &directive.shown(),
                "connections are kept; `max-requests-per-connection 1` in the listener ends them",
            ),
        }
    }
    for listener in &mut site.listeners {
        listener.timeouts.extend(timeouts.iter().cloned());
    }
}

/// A timeout of at least a second, in seconds if it is whole.
pub(super) fn time(name: &str, ms: u64) -> Node {
    if ms.is_multiple_of(1_000) {
        Node::number(&format!("{name}-secs"), ms / 1_000)
    } else {
        Node::number(&format!("{name}-ms"), ms)
    }
}

/// A `listen` directive of a server.
pub(super) struct Listen {
    /// Name of the listener.
    pub(super) name: String,
    pub(super) is_default: bool,
}

/// Adds the listeners of a server to the site.
pub(super) fn read(
    site: &mut Site,
    server: &Directive,
    scope: &Scope<'_>,
    hosts: &[String],
) -> Vec<Listen> {
    let listens = server.children().iter();
    let listens = listens.filter(|it| it.name == "listen" && !is_quic(it));
    let is_written = server.children().iter().any(|it| it.name == "listen");
    let mut found: Vec<Listen> = Vec::new();
    let mut names = HashSet::new();
    for directive in listens {
        if let Some(listen) = read_listen(site, directive, scope, hosts)
            && names.insert(listen.name.clone())
        {
            found.push(listen);
        }
    }
    for directive in server.children().iter().filter(|it| is_quic(it)) {
        quic(site, directive, scope);
    }
    if !is_written {
        let (_, listen) = add(site, "0.0.0.0:80".to_owned(), Options::default());
        found.push(listen);
    }
    found
}

fn read_listen(
    site: &mut Site,
    directive: &Directive,
    scope: &Scope<'_>,
    hosts: &[String],
) -> Option<Listen> {
    let address = address(directive.word(0)?);
    if !is_address(&address) {
        site.note(
            &directive.place,
            &directive.shown(),
            "write a listener with an IP address and a port; the server does not listen there until then",
        );
        return None;
    }
    let has = |word: &str| directive.words.iter().skip(1).any(|it| it == word);
    let options = Options {
        is_tls: has("ssl"),
        is_default: has("default_server"),
    };
    let (position, listen) = add(site, address, options);
    if options.is_tls {
        let file = |name: &str| scope.word(name).filter(|it| !has_variables(it));
        let files = file("ssl_certificate").zip(file("ssl_certificate_key"));
        let Some((cert, key)) = files else {
            site.note(
                &directive.place,
                &directive.shown(),
                "write `tls { cert-file …; key-file … }`: the server names no file of a certificate",
            );
            return Some(listen);
        };
        let names = hosts.iter().map(String::as_str);
        site.add_certificate(position, cert, key, names);
        protocols(site.listeners.get_mut(position)?, scope);
    }
    if has("proxy_protocol") {
        let listener = site.listeners.get_mut(position)?;
        if listener.settings.is_empty() {
            listener.settings.push(crate::write::flag("proxy-protocol"));
        }
        if scope.last("set_real_ip_from").is_none() {
            site.note(
                &directive.place,
                &directive.shown(),
                "name the balancers in `trusted-proxies` of the listener: without them every connection is closed",
            );
        }
    }
    Some(listen)
}

fn is_quic(directive: &Directive) -> bool {
    directive.name == "listen" && directive.words.iter().skip(1).any(|word| word == "quic")
}

/// Enables HTTP/3 on the listener with the same address, because the proxy uses one listener for
/// both.
fn quic(site: &mut Site, directive: &Directive, scope: &Scope<'_>) {
    if scope.word("http3") == Some("off") {
        return;
    }
    let address = directive.word(0).map(address);
    let position = address.and_then(|address| site.listener_at(&address));
    let listener = position.and_then(|position| site.listeners.get_mut(position));
    let advice = match listener.filter(|listener| listener.is_tls) {
        Some(listener) => {
            listener.http3 = true;
            "HTTP/3 is accepted; write `alt-svc-max-age-secs` in the listener to advertise it, in place of \
             `add_header Alt-Svc`"
        }
        None => "write `http3 #true` in a listener with TLS: HTTP/3 has the address of one",
    };
    site.note(&directive.place, &directive.shown(), advice);
}

fn protocols(listener: &mut Listener, scope: &Scope<'_>) {
    let Some(directive) = scope.last("ssl_protocols") else {
        return;
    };
    let has_12 = directive.words.iter().any(|it| it == "TLSv1.2");
    let has_13 = directive.words.iter().any(|it| it == "TLSv1.3");
    let setting = match (has_12, has_13) {
        (false, true) => Some(Node::text("min-version", "1.3")),
        (true, false) => Some(Node::text("max-version", "1.2")),
        _ => None,
    };
    if listener.tls.is_empty() {
        listener.tls.extend(setting);
    }
}

/// Options of a `listen` directive.
#[derive(Clone, Copy, Default)]
struct Options {
    is_tls: bool,
    is_default: bool,
}

/// The listener for an address, with its position; added if necessary.
fn add(site: &mut Site, address: String, options: Options) -> (usize, Listen) {
    let Options { is_tls, is_default } = options;
    if let Some(position) = site.listener_at(&address)
        && let Some(listener) = site.listeners.get_mut(position)
    {
        listener.is_tls |= is_tls;
        let name = listener.name.clone();
        return (position, Listen { name, is_default });
    }
    let name = name(&address, site.listeners.len());
    site.listeners.push(Listener {
        name: name.clone(),
        address,
        is_tls,
        ..Listener::default()
    });
    let position = site.listeners.len() - 1;
    (position, Listen { name, is_default })
}

fn name(address: &str, number: usize) -> String {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let base = match port {
        "80" => "http".to_owned(),
        "443" => "https".to_owned(),
        port if port.bytes().all(|b| b.is_ascii_digit()) => format!("port-{port}"),
        _ => format!("listener-{number}"),
    };
    match host {
        "0.0.0.0" => base,
        "[::]" => format!("{base}-v6"),
        _ => format!("{base}-{number}"),
    }
}

/// Returns true if an address can be bound: IP address and port, or a Unix socket.
fn is_address(address: &str) -> bool {
    address.starts_with("unix:/") || address.parse::<SocketAddr>().is_ok()
}

/// Removes TLS listeners without a certificate, which could not start; notes their servers.
pub(super) fn remove_without_certificates(site: &mut Site) {
    let is_startable = |it: &Listener| !it.is_tls || !it.certificates.is_empty();
    let removed = site.listeners.iter().filter(|it| !is_startable(it));
    let removed: HashSet<String> = removed.map(|it| it.name.clone()).collect();
    if removed.is_empty() {
        return;
    }
    site.listeners.retain(is_startable);
    site.routes.retain_mut(|route| {
        // A route without listeners applies to all.
        let is_for_all = route.listeners.is_empty();
        route.listeners.retain(|it| !removed.contains(it));
        is_for_all || !route.listeners.is_empty()
    });
}

/// Converts `80`, `*:80`, `[::]:80`, `localhost:80` or `unix:/path`.
pub(super) fn address(word: &str) -> String {
    if word.starts_with("unix:") {
        return word.to_owned();
    }
    if word.bytes().all(|b| b.is_ascii_digit()) {
        return format!("0.0.0.0:{word}");
    }
    let word = word
        .replace("*:", "0.0.0.0:")
        .replace("localhost", "127.0.0.1");
    if word.ends_with(']') || !word.contains(':') {
        format!("{word}:80")
    } else {
        word
    }
}

/// Returns true for a directive of a server that applies to its listeners.
pub(super) fn is_listener_directive(name: &str) -> bool {
    matches!(name, "listen" | "server_name" | "ssl") || is_client_timeout(name)
}

/// Notes client timeouts of a server: a listener has one set of timeouts for all of its servers.
pub(super) fn note_client_timeouts(site: &mut Site, server: &Directive) {
    for directive in server
        .children()
        .iter()
        .filter(|it| is_client_timeout(&it.name))
    {
        site.note(
            &directive.place,
            &directive.shown(),
            "write it in `timeouts` of the listener: it holds for all routes of the listener",
        );
    }
    for directive in server.children().iter().filter(|it| it.name == "ssl") {
        advice::note(site, directive);
    }
}
