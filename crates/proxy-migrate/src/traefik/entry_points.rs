//! Converts entry points to listeners.

use super::configuration::Configuration;
use super::document::{Entry, Value};
use crate::kdl::Node;
use crate::site::{Listener, Relay, Route, Service, Site};
use crate::units;
use crate::write::flag;
use std::collections::{HashMap, HashSet};

/// Conventional addresses of entry points that a file uses without defining them, from Traefik's
/// documentation.
const CONVENTIONAL: &[(&str, &str)] = &[("web", "0.0.0.0:80"), ("websecure", "0.0.0.0:443")];
/// Priority of the redirect of a whole entry point.
const REDIRECT_PRIORITY: u32 = 1_000_000;

/// An entry point with its listener.
#[derive(Debug)]
pub(super) struct EntryPoint<'d> {
    /// Name of the entry point and of its listener.
    pub(super) name: &'d str,
    pub(super) address: String,
    pub(super) is_tls: bool,
    /// Set if TLS applies also to routers without `tls`.
    pub(super) has_tls_for_all: bool,
    /// Middlewares that apply to all routers.
    pub(super) middlewares: Vec<&'d str>,
    pub(super) is_default: bool,
    pub(super) value: Option<&'d Value>,
}

impl<'d> EntryPoint<'d> {
    /// Returns true if `proxyProtocol` trusts other peers than `forwardedHeaders`: a listener has one
    /// list for both, so that clients could choose the address that lists of networks are compared
    /// with.
    pub(super) fn has_mixed_trust(&self) -> bool {
        self.value.is_some_and(has_mixed_trust)
    }

    /// TLS settings that apply to all routers.
    pub(super) fn tls(&self) -> Option<&'d Value> {
        self.value?.get("http")?.block("tls")
    }
}

/// Entry points by name, in file order.
#[derive(Debug, Default)]
pub(super) struct EntryPoints<'d> {
    pub(super) all: Vec<EntryPoint<'d>>,
    positions: HashMap<&'d str, usize>,
}

/// Names of entry points in use, by whether their routers have TLS.
struct Uses<'d> {
    tls: HashSet<&'d str>,
    plain: HashSet<&'d str>,
    /// Set if a router with TLS names no entry point.
    has_tls_anywhere: bool,
    has_plain_anywhere: bool,
}

impl<'d> Uses<'d> {
    fn from_routers(configuration: &Configuration<'d>) -> Self {
        let mut uses = Self {
            tls: HashSet::new(),
            plain: HashSet::new(),
            has_tls_anywhere: false,
            has_plain_anywhere: false,
        };
        for router in configuration.routers.iter() {
            let names = router.value.texts_of("entryPoints");
            let is_tls = router.value.block("tls").is_some();
            if is_tls {
                uses.has_tls_anywhere |= names.is_empty();
                uses.tls.extend(names);
            } else {
                uses.has_plain_anywhere |= names.is_empty();
                uses.plain.extend(names);
            }
        }
        uses
    }
}

impl<'d> EntryPoints<'d> {
    pub(super) fn read(site: &mut Site, configuration: &Configuration<'d>) -> Self {
        let uses = Uses::from_routers(configuration);
        let mut points = Self::default();
        for entry in configuration.entry_points.iter() {
            if let Some(address) = address(site, entry) {
                points.add(&entry.key, address, Some(&entry.value), &uses);
            }
        }
        if configuration.entry_points.is_empty() {
            for (name, address) in CONVENTIONAL {
                let is_anywhere = match *name {
                    "web" => uses.has_plain_anywhere,
                    _ => uses.has_tls_anywhere,
                };
                let relayed = configuration.tcp_routers.iter();
                let mut relayed = relayed.flat_map(|it| it.value.texts_of("entryPoints"));
                let is_used = uses.tls.contains(name)
                    || uses.plain.contains(name)
                    || relayed.any(|it| it == *name);
                if is_used || is_anywhere {
                    points.add(name, (*address).to_owned(), None, &uses);
                }
            }
        }
        let has_default = points.all.iter().any(|it| it.is_default);
        for point in &mut points.all {
            point.is_default |= !has_default;
        }
        points
    }

    fn add(&mut self, name: &'d str, address: String, value: Option<&'d Value>, uses: &Uses<'_>) {
        let http = value.and_then(|it| it.get("http"));
        let has_tls_for_all = http.is_some_and(|http| http.block("tls").is_some());
        let is_for_tls = address.ends_with(":443") || !uses.has_plain_anywhere;
        let is_of_https = is_for_tls && !uses.plain.contains(name);
        let is_tls =
            has_tls_for_all || uses.tls.contains(name) || (is_of_https && uses.has_tls_anywhere);
        self.positions.insert(name, self.all.len());
        self.all.push(EntryPoint {
            name,
            address,
            is_tls,
            has_tls_for_all,
            middlewares: http
                .map(|http| http.texts_of("middlewares"))
                .unwrap_or_default(),
            is_default: value.is_some_and(|it| it.is_on("asDefault")),
            value,
        });
    }

    /// Entry points of a router: those that it names, or else the default ones.
    pub(super) fn for_router<'p>(
        &'p self,
        site: &mut Site,
        router: &Entry,
    ) -> Vec<&'p EntryPoint<'d>> {
        let names = router.value.texts_of("entryPoints");
        if names.is_empty() {
            return self.all.iter().filter(|it| it.is_default).collect();
        }
        let mut found = Vec::new();
        for name in names {
            match self.positions.get(name).and_then(|at| self.all.get(*at)) {
                Some(point) => found.push(point),
                None => site.note(
                    &router.place(),
                    &format!("{}: entryPoints {name}", router.key),
                    "its address is in the static configuration: migrate that file, or write a listener; until then the router has none there",
                ),
            }
        }
        found
    }

    /// Adds an HTTP listener, and the redirect of the whole entry point if there is one.
    pub(super) fn listen(&self, site: &mut Site, point: &EntryPoint<'_>) {
        let mut listener = Listener {
            name: point.name.to_owned(),
            address: point.address.clone(),
            is_tls: point.is_tls,
            ..Listener::default()
        };
        if let Some(value) = point.value {
            settings(site, &mut listener, value);
            timeouts(site, &mut listener, value);
        }
        site.listeners.push(listener);
        if let Some(value) = point.value {
            self.redirect(site, point, value);
        }
    }

    /// Adds a listener that relays connections.
    pub(super) fn relay(site: &mut Site, point: &EntryPoint<'_>, relay: Relay, is_tls: bool) {
        let mut listener = Listener {
            name: point.name.to_owned(),
            address: point.address.clone(),
            is_tls,
            relay: Some(relay),
            ..Listener::default()
        };
        if let Some(value) = point.value {
            settings(site, &mut listener, value);
        }
        site.listeners.push(listener);
    }

    /// Adds the redirect from one entry point to another.
    fn redirect(&self, site: &mut Site, point: &EntryPoint<'_>, value: &Value) {
        let Some(redirect) = value.at(&["http", "redirections", "entryPoint"]) else {
            return;
        };
        let to = redirect.text_of("to").unwrap_or_default();
        let target = self.positions.get(to).and_then(|at| self.all.get(*at));
        let port = target.map_or(to, |it| it.address.as_str());
        let port = port.rsplit_once(':').map_or("", |(_, port)| port);
        let scheme = redirect.text_of("scheme").unwrap_or("https");
        let is_default_port = matches!((scheme, port), ("https", "443") | ("http", "80"));
        let is_permanent = redirect.text_of("permanent") != Some("false");
        let service = if is_default_port {
            Service::Redirect {
                to: Some(scheme.to_owned()),
                status: if is_permanent { 301 } else { 302 },
                replace_prefix: None,
            }
        } else {
            site.note(
                &redirect.place(),
                &format!("{}: redirections", point.name),
                "write `redirect` with a URL that has the port; its requests are answered 501 until then",
            );
            Service::not_migrated()
        };
        let name = site.route_name(&format!("{} redirect", point.name));
        let mut route = Route::new(name, service);
        route.priority = Some(REDIRECT_PRIORITY);
        route.listeners = vec![point.name.to_owned()];
        site.push_route(route);
    }
}

/// Address of an entry point; `None` for UDP, or without a port.
fn address(site: &mut Site, entry: &Entry) -> Option<String> {
    let written = entry.value.text_of("address").unwrap_or_default();
    let (address, protocol) = written.split_once('/').unwrap_or((written, "tcp"));
    let (host, port) = address.rsplit_once(':').unwrap_or(("", ""));
    let advice = if protocol != "tcp" {
        "UDP is not offered"
    } else if port.parse::<u16>().is_err() {
        "write a listener with an address and a port"
    } else {
        let host = match host {
            "" => "0.0.0.0",
            "localhost" => "127.0.0.1",
            host => host,
        };
        return Some(format!("{host}:{port}"));
    };
    site.note(
        &entry.place(),
        &format!("{}: address {written}", entry.key),
        advice,
    );
    None
}

/// Peers that a block of an entry point trusts.
fn trusted<'v>(value: &'v Value, key: &str) -> Vec<&'v str> {
    value
        .get(key)
        .map(|block| block.texts_of("trustedIPs"))
        .unwrap_or_default()
}

fn has_mixed_trust(value: &Value) -> bool {
    let set = |key: &str| trusted(value, key).into_iter().collect::<HashSet<_>>();
    value.get("proxyProtocol").is_some() && set("forwardedHeaders") != set("proxyProtocol")
}

/// Converts the trusted peers.
fn settings(site: &mut Site, listener: &mut Listener, value: &Value) {
    let is_relay = listener.relay.is_some();
    let mut peers: Vec<&str> = Vec::new();
    for key in ["forwardedHeaders", "proxyProtocol"] {
        let Some(block) = value.get(key) else {
            continue;
        };
        // Relays read the header of a connection alone.
        if key == "proxyProtocol" || !is_relay {
            peers.extend(trusted(value, key));
        }
        if block.is_on("insecure") {
            site.note(
                &block.place(),
                &format!("{}: {key} insecure", listener.name),
                "name the proxies before it in `trusted-proxies`",
            );
        }
    }
    let has_header = value.get("proxyProtocol").is_some();
    if has_header {
        listener.settings.push(flag("proxy-protocol"));
        site.note(
            &value.place(),
            &format!("{}: proxyProtocol", listener.name),
            "every connection needs a `PROXY` header here, and a peer of `trusted-proxies`; others are closed",
        );
    }
    if has_mixed_trust(value) && !is_relay {
        site.note(
            &value.place(),
            &format!("{}: trustedIPs", listener.name),
            "a listener has one list of `trusted-proxies`, and these two differ: its peers are trusted for both; write the same list twice",
        );
    }
    if !peers.is_empty() {
        peers.sort_unstable();
        peers.dedup();
        let node = Node::new("trusted-proxies").args(peers);
        listener.settings.push(node);
    }
    let streams = value.at(&["http2", "maxConcurrentStreams"]);
    if let Some(streams) = streams.and_then(Value::text).filter(|_| !is_relay) {
        let number = streams.parse::<u64>().ok();
        let number = number.map(|number| Node::number("max-concurrent-streams", number));
        listener.settings.extend(number);
    }
    if value.get("http3").is_some() {
        listener.http3 = true;
        site.note(
            &value.place(),
            &format!("{}: http3", listener.name),
            "HTTP/3 is accepted where TLS ends at the listener; write `alt-svc-max-age-secs` there to advertise it",
        );
    }
}

fn timeouts(site: &mut Site, listener: &mut Listener, value: &Value) {
    let Some(timeouts) = value.at(&["transport", "respondingTimeouts"]) else {
        return;
    };
    for entry in timeouts.entries() {
        if !entry.key.eq_ignore_ascii_case("idleTimeout") {
            site.note(
                &entry.place(),
                &format!("{}: {}", listener.name, entry.key),
                "write `timeouts { header-secs; body-idle-secs; write-idle-secs }` in the listener",
            );
        }
    }
    let idle = timeouts.text_of("idleTimeout");
    let idle = idle.and_then(|text| units::milliseconds(text, 1_000));
    let idle = idle.filter(|ms| (1_000..=3_600_000).contains(ms));
    listener
        .timeouts
        .extend(idle.map(|ms| Node::number("keep-alive-ms", ms)));
}
