//! Converts the block `stream`, which relays connections.

use super::listen::{address, time};
use super::parser::Directive;
use super::policies::{self, Networks};
use super::scope::Scope;
use super::server_names::{self, Case};
use super::{advice, upstream};
use crate::kdl::Node;
use crate::site::{Listener, Relay, Route, Service, Site, Upstream};
use crate::units;
use std::collections::HashMap;

/// Directives that refuse no connections, or are read here.
const PASSIVE: &[&str] = &[
    "access_log",
    "allow",
    "deny",
    "error_log",
    "listen",
    "log_format",
    "map",
    "map_hash_bucket_size",
    "map_hash_max_size",
    "open_log_file_cache",
    "preread_buffer_size",
    "preread_timeout",
    "proxy_buffer_size",
    "proxy_connect_timeout",
    "proxy_next_upstream",
    "proxy_next_upstream_timeout",
    "proxy_next_upstream_tries",
    "proxy_pass",
    "proxy_protocol",
    "proxy_socket_keepalive",
    "proxy_timeout",
    "resolver",
    "resolver_timeout",
    "server",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_ciphers",
    "ssl_conf_command",
    "ssl_dhparam",
    "ssl_ecdh_curve",
    "ssl_handshake_timeout",
    "ssl_prefer_server_ciphers",
    "ssl_preread",
    "ssl_protocols",
    "ssl_session_cache",
    "ssl_session_ticket_key",
    "ssl_session_tickets",
    "ssl_session_timeout",
    "tcp_nodelay",
    "upstream",
    "variables_hash_bucket_size",
    "variables_hash_max_size",
];

/// Directives that limit connections and bytes. They are noted, and the connections are relayed.
const LIMITS: &[&str] = &[
    "limit_conn",
    "limit_conn_dry_run",
    "limit_conn_log_level",
    "limit_conn_zone",
    "proxy_download_rate",
    "proxy_upload_rate",
];

/// A `stream` block during the conversion of its servers.
struct Stream<'d> {
    scope: Scope<'d>,
    /// `upstream` blocks of this block; those of `http` have a separate namespace.
    definitions: HashMap<&'d str, &'d Directive>,
    /// Names of converted upstreams, by original name and whether connections begin with a PROXY
    /// header.
    upstreams: HashMap<(&'d str, bool), String>,
    /// `map` blocks by their variables.
    maps: HashMap<&'d str, &'d Directive>,
}

impl<'d> Stream<'d> {
    /// The map for a variable, if it depends on the server name of the handshake.
    fn map_of(&self, scope: &Scope<'_>, variable: &str, has_tls: bool) -> Option<&'d Directive> {
        let reads_names = scope.word("ssl_preread") == Some("on");
        let source = match (has_tls, reads_names) {
            (true, false) => "$ssl_server_name",
            (false, true) => "$ssl_preread_server_name",
            _ => return None,
        };
        let map = self.maps.get(variable).copied();
        map.filter(|map| map.word(0) == Some(source))
    }

    /// Returns true if a value is the name of an upstream, or host and port.
    fn is_target(&self, value: &str) -> bool {
        let port = value.rsplit_once(':').map(|(_, port)| port);
        let is_address = port.is_some_and(|port| port.parse::<u16>().is_ok());
        let is_plain = is_address && !value.contains('$') && !value.starts_with("unix:");
        self.definitions.contains_key(value) || is_plain
    }

    /// Converted name of an upstream, which is added when the first server uses it; `None` if it
    /// does not exist.
    fn upstream(&mut self, site: &mut Site, name: &str, sends_header: bool) -> Option<String> {
        let (name, definition) = self.definitions.get_key_value(name)?;
        let known = self.upstreams.entry((*name, sends_header));
        let ours = known.or_insert_with(|| {
            let ours = site.upstream_name(name);
            upstream::read_as(site, definition, &ours, send_proxy_setting(sends_header));
            ours
        });
        Some(ours.clone())
    }
}

/// Setting of an upstream for `proxy_protocol on`, which sends version 1.
fn send_proxy_setting(sends_header: bool) -> Option<Node> {
    sends_header.then(|| Node::text("send-proxy", "v1"))
}

/// Converts the upstreams and servers of a `stream` block.
pub(super) fn read(site: &mut Site, block: &[Directive]) {
    let mut stream = Stream {
        scope: Scope::new(block),
        definitions: HashMap::new(),
        upstreams: HashMap::new(),
        maps: HashMap::new(),
    };
    for directive in block {
        let name = &*directive.name;
        match (name, directive.word(0), directive.word(1)) {
            ("upstream", Some(name), _) => {
                stream.definitions.insert(name, directive);
            }
            ("map", Some(_), Some(variable)) => {
                stream.maps.insert(variable, directive);
            }
            _ if LIMITS.contains(&name) => advice::note(site, directive),
            _ => {}
        }
    }
    let outer = block.iter().find(|it| !is_known(it));
    for server in block.iter().filter(|it| it.name == "server") {
        read_server(site, &mut stream, server, outer);
    }
    let definitions = block.iter().filter(|it| it.name == "upstream");
    for name in definitions.filter_map(|it| it.word(0)) {
        let is_used = |sends_header| stream.upstreams.contains_key(&(name, sends_header));
        if !is_used(false) && !is_used(true) {
            stream.upstream(site, name, false);
        }
    }
}

/// Returns true if a directive refuses no connections, or is converted.
fn is_known(directive: &Directive) -> bool {
    let name = &*directive.name;
    let is_off = directive.word(0) == Some("off");
    // TLS to targets, PROXY headers and client certificates may be disabled explicitly.
    is_off || PASSIVE.contains(&name) || LIMITS.contains(&name)
}

fn read_server<'d>(
    site: &mut Site,
    stream: &mut Stream<'d>,
    server: &'d Directive,
    outer: Option<&Directive>,
) {
    let scope = stream.scope.within(server.children());
    let children = server.children();
    for directive in children.iter().filter(|it| LIMITS.contains(&&*it.name)) {
        advice::note(site, directive);
    }
    let unknown = children.iter().find(|it| !is_known(it)).or(outer);
    if let Some(directive) = unknown {
        return note_unconverted(site, directive);
    }
    let Some((pass, to)) = scope
        .last("proxy_pass")
        .and_then(|pass| Some((pass, pass.word(0)?)))
    else {
        return note_unconverted(site, server);
    };
    let has_tls = children
        .iter()
        .any(|it| it.name == "listen" && it.words.iter().any(|word| word == "ssl"));
    let map = stream.map_of(&scope, to, has_tls);
    if to.starts_with('$') && map.is_none() {
        return note_unconverted(site, pass);
    }
    let Some(networks) = policies::access(site, &scope) else {
        return site.note(
            &server.place,
            "server",
            "it refuses every client, so it has no listener",
        );
    };
    if networks.is_closed {
        return note_unconverted(site, server);
    }
    let relay = if map.is_some() && !has_tls {
        Relay::Passthrough
    } else {
        Relay::Tcp
    };
    let cases = match map {
        Some(map) => server_names::cases(site, map, |target| stream.is_target(target)),
        None if stream.is_target(to) => vec![Case {
            hosts: Vec::new(),
            target: to,
        }],
        None => return note_unconverted(site, pass),
    };
    if cases.is_empty() {
        return note_unconverted(site, server);
    }
    let sends_header = scope.word("proxy_protocol") == Some("on");
    let listens = children.iter().filter(|it| it.name == "listen");
    let names: Vec<String> = listens
        .filter_map(|directive| listen(site, directive, relay, &scope))
        .collect();
    if names.is_empty() {
        return;
    }
    for case in cases {
        if site.is_full() {
            return;
        }
        let mut route = case_route(site, stream, &case, sends_header);
        apply_policies(site, &mut route, &scope, &networks);
        route.listeners.clone_from(&names);
        site.push_route(route);
    }
}

/// Notes the directive that prevents the conversion of a server.
fn note_unconverted(site: &mut Site, directive: &Directive) {
    let advice = match &*directive.name {
        "proxy_pass" => "write an upstream, or a route for each server name with `host`",
        "proxy_ssl" => "relayed bytes are not encrypted again: pass TLS through to the target",
        "server_name" => "write routes with `host`",
        "ssl_verify_client" | "ssl_client_certificate" => {
            "write `tls { client-auth { ca-file … } }` in the listener"
        }
        "server" => "it has no target that could be carried over",
        _ => "it may refuse connections: see docs/operate/relays.md",
    };
    let advice = format!("{advice}; the servers that it holds for have no listener until then");
    site.note(&directive.place, &directive.shown(), &advice);
}

/// A route to an upstream, or to a target written in its place.
fn case_route(
    site: &mut Site,
    stream: &mut Stream<'_>,
    case: &Case<'_>,
    sends_header: bool,
) -> Route {
    let to = case.target;
    let named = stream.upstream(site, to, sends_header);
    let upstream = named.unwrap_or_else(|| target_upstream(site, to, sends_header));
    let part = case.hosts.first().map_or(to, String::as_str);
    let name = site.route_name(&format!("stream {}", part.replace('*', "any")));
    let mut route = Route::new(name, Service::Upstream(upstream));
    route.hosts.clone_from(&case.hosts);
    route
}

/// Returns the name of an upstream with the single target `to`, which is added if there is none.
fn target_upstream(site: &mut Site, to: &str, sends_header: bool) -> String {
    let address = to.replace("localhost:", "127.0.0.1:");
    let plain = Upstream {
        targets: vec![(address, 1)],
        settings: send_proxy_setting(sends_header).into_iter().collect(),
        ..Upstream::default()
    };
    if let Some(same) = site.upstream_like(&plain) {
        return same;
    }
    let name = site.upstream_name(to);
    site.upstreams.push(Upstream {
        name: name.clone(),
        ..plain
    });
    name
}

/// Applies networks and timeouts of a server to its route.
fn apply_policies(site: &mut Site, route: &mut Route, scope: &Scope<'_>, networks: &Networks) {
    let Networks { allow, deny, .. } = networks;
    route.policies.allow.clone_from(allow);
    route.policies.deny.clone_from(deny);
    for (theirs, ours) in [
        ("proxy_connect_timeout", "connect"),
        ("proxy_timeout", "idle"),
    ] {
        let Some(directive) = scope.last(theirs) else {
            continue;
        };
        let word = directive.word(0);
        let ms = word.and_then(|word| units::milliseconds(word, 1_000));
        if let Some(ms) = ms.filter(|ms| *ms > 0) {
            let time = site.time(&directive.place, &directive.shown(), ours, ms);
            route.policies.timeouts.push(time);
        }
    }
}

/// Adds the listener of a `listen`, and returns its name.
fn listen(
    site: &mut Site,
    directive: &Directive,
    relay: Relay,
    scope: &Scope<'_>,
) -> Option<String> {
    let has = |word: &str| directive.words.iter().skip(1).any(|it| it == word);
    let written = directive.word(0)?;
    let written_port = written.rsplit(':').next().unwrap_or_default();
    let address = address(written);
    let port = address.rsplit_once(':').map_or("", |(_, port)| port);
    let fault = if has("udp") {
        "UDP is not offered"
    } else if !address.starts_with("unix:") && written_port.parse::<u16>().is_err() {
        "write a listener for each port"
    } else if site.listener_at(&address).is_some() {
        "another listener has the address"
    } else {
        ""
    };
    if !fault.is_empty() {
        site.note(&directive.place, &directive.shown(), fault);
        return None;
    }
    let mut listener = Listener {
        name: site.listener_name(format!("stream-{}", port.replace('/', "-"))),
        address,
        is_tls: has("ssl"),
        relay: Some(relay),
        ..Listener::default()
    };
    if has("proxy_protocol") {
        listener.settings.push(crate::write::flag("proxy-protocol"));
        site.note(
            &directive.place,
            &directive.shown(),
            "name the balancers in `trusted-proxies` of the listener: without them every connection is closed",
        );
    }
    let handshake = scope.word("ssl_handshake_timeout");
    let handshake = handshake.and_then(|word| units::milliseconds(word, 1_000));
    let handshake = handshake.filter(|ms| (1_000..=300_000).contains(ms));
    listener
        .timeouts
        .extend(handshake.map(|ms| time("handshake", ms)));
    let name = listener.name.clone();
    if listener.is_tls {
        listener.tls.extend(protocols(scope));
        let files = scope
            .word("ssl_certificate")
            .zip(scope.word("ssl_certificate_key"));
        let Some((cert, key)) = files else {
            site.note(
                &directive.place,
                &directive.shown(),
                "the server names no certificate, so it has no listener",
            );
            return None;
        };
        let position = site.listeners.len();
        site.listeners.push(listener);
        site.add_certificate(position, cert, key, []);
    } else {
        site.listeners.push(listener);
    }
    Some(name)
}

/// TLS versions, if one of the two supported ones is disabled.
fn protocols(scope: &Scope<'_>) -> Option<Node> {
    let directive = scope.last("ssl_protocols")?;
    let has = |version: &str| directive.words.iter().any(|it| it == version);
    match (has("TLSv1.2"), has("TLSv1.3")) {
        (false, true) => Some(Node::text("min-version", "1.3")),
        (true, false) => Some(Node::text("max-version", "1.2")),
        _ => None,
    }
}
