//! Converts site addresses to listeners and hosts.

use super::automatic::{self, Automatic};
use super::parser::Directive;
use super::value::default_of;
use crate::site::{Listener, Route, Service, Site};
use std::collections::HashSet;
use std::net::IpAddr;

/// Listeners and hosts of a site.
pub(super) struct Addresses {
    pub(super) listeners: Vec<String>,
    pub(super) hosts: Vec<String>,
    /// Path of the site's only address.
    pub(super) path: Option<String>,
    /// Set if an address or its path could not be converted: the site serves nothing.
    pub(super) is_closed: bool,
}

/// Parts of an address such as `https://shop.example.com:8443/path`.
struct Parts<'w> {
    scheme: Option<&'w str>,
    host: &'w str,
    port: Option<&'w str>,
    /// Path without its leading slash.
    path: &'w str,
}

impl Parts<'_> {
    fn is_name(&self) -> bool {
        let host = self.host;
        !host.is_empty() && host != "localhost" && host.parse::<IpAddr>().is_err()
    }

    fn wants_tls(&self) -> bool {
        match self.scheme {
            Some(scheme) => scheme == "https",
            None => self.is_name() && self.port != Some("80"),
        }
    }
}

fn parts(word: &str) -> Parts<'_> {
    let (scheme, rest) = word
        .split_once("://")
        .map_or((None, word), |(scheme, rest)| (Some(scheme), rest));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, Some(port)),
        _ => (authority, None),
    };
    Parts {
        scheme,
        host,
        port,
        path,
    }
}

pub(super) fn read(
    site: &mut Site,
    block: &Directive,
    mut automatic: Option<&mut Automatic>,
) -> Addresses {
    let files = certificate(block);
    let mut listeners: Vec<String> = Vec::new();
    let mut hosts: Vec<String> = Vec::new();
    let (mut seen, mut seen_hosts) = (HashSet::new(), HashSet::new());
    let (mut path_of_site, mut is_closed) = (None, false);
    let bound = bound(site, block).unwrap_or_else(|| {
        is_closed = true;
        "0.0.0.0".to_owned()
    });
    let words = block.words.iter().flat_map(|word| word.split(','));
    let words: Vec<&str> = words.map(str::trim).filter(|it| !it.is_empty()).collect();
    for word in words.iter().copied() {
        let word = without_variables(site, block, word, &mut is_closed);
        let parts = parts(word);
        let (is_name, wants_tls) = (parts.is_name(), parts.wants_tls());
        let Parts {
            host, port, path, ..
        } = parts;
        if !path.is_empty() && words.len() == 1 {
            path_of_site = Some(format!("/{path}"));
        } else if !path.is_empty() {
            is_closed = true;
            site.note(
                &block.place,
                word,
                "write the path in `matches` of the routes; they answer 501 until then",
            );
        }
        let account = automatic.as_deref_mut().filter(|_| {
            wants_tls && matches!(port, None | Some("443")) && automatic::is_obtained(block, host)
        });
        let is_tls = wants_tls && (files.is_some() || account.is_some());
        if wants_tls && !is_tls {
            site.note(
                &block.place,
                word,
                "Caddy gets a certificate by itself: write `protocol \"https\"` and `tls` with its files or `acme` in the listener",
            );
        }
        let port = port.unwrap_or(if is_tls { "443" } else { "80" });
        // A site with a loopback address does not serve other hosts.
        let loopback = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let is_loopback = loopback.is_some_and(|it| it.is_loopback());
        let bound = if is_loopback { host } else { &bound };
        let position = listener(site, bound, port, is_tls);
        if let Some((cert, key)) = files.as_ref().filter(|_| is_tls) {
            site.add_certificate(position, cert, key, [host]);
        }
        if let Some(account) = account {
            account.obtain(site, position, host);
        }
        if is_tls {
            redirect(site, bound, host);
        }
        if seen.insert(position)
            && let Some(listener) = site.listeners.get(position)
        {
            listeners.push(listener.name.clone());
        }
        if (is_name || host == "localhost") && seen_hosts.insert(host) {
            hosts.push(host.to_owned());
        }
    }
    Addresses {
        listeners,
        hosts,
        path: path_of_site,
        is_closed,
    }
}

/// Replaces a variable in an address by its default; without a default the site is closed.
fn without_variables<'w>(
    site: &mut Site,
    block: &Directive,
    word: &'w str,
    is_closed: &mut bool,
) -> &'w str {
    if !word.contains('{') {
        return word;
    }
    let default = default_of(word);
    *is_closed |= default.is_none();
    site.note(
        &block.place,
        word,
        if default.is_some() {
            "the variable's default is written: addresses have no variables"
        } else {
            "write the address in a listener, and its host in `matches`; the routes answer 501 until then"
        },
    );
    default.unwrap_or(":80")
}

/// Address of `bind`, or all addresses without it; `None` if there are several.
fn bound(site: &mut Site, block: &Directive) -> Option<String> {
    let Some(bind) = block.block.iter().find(|it| it.name() == "bind") else {
        return Some("0.0.0.0".to_owned());
    };
    let address = match bind.arguments() {
        [word] => word.trim_matches(['[', ']']).parse::<IpAddr>().ok(),
        _ => None,
    };
    if address.is_none() {
        site.note(
            &bind.place,
            &bind.shown(),
            "write the addresses in listeners; the routes answer 501 until then",
        );
    }
    Some(match address? {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    })
}

/// Certificate and key files of `tls CERT KEY`.
fn certificate(block: &Directive) -> Option<(String, String)> {
    let tls = block.block.iter().find(|it| it.name() == "tls")?;
    let (cert, key) = (tls.words.get(1)?, tls.words.get(2)?);
    Some((cert.clone(), key.clone()))
}

/// Position of the listener for an address, which is added if necessary.
fn listener(site: &mut Site, bound: &str, port: &str, is_tls: bool) -> usize {
    let address = format!("{bound}:{port}");
    if let Some(known) = site.listener_at(&address) {
        if let Some(listener) = site.listeners.get_mut(known) {
            listener.is_tls |= is_tls;
        }
        return known;
    }
    let name = match port {
        "80" => "http".to_owned(),
        "443" => "https".to_owned(),
        port => format!("port-{port}"),
    };
    let name = site.listener_name(name);
    site.listeners.push(Listener {
        name,
        address,
        is_tls,
        ..Listener::default()
    });
    site.listeners.len() - 1
}

/// Adds the redirect from port 80 that Caddy makes for each host with a certificate.
fn redirect(site: &mut Site, bound: &str, host: &str) {
    let position = listener(site, bound, "80", false);
    let listener = site.listeners.get(position).map(|it| it.name.clone());
    let name = site.route_name(&format!("{} to https", host.replace('*', "any")));
    let mut route = Route::new(
        name,
        Service::Redirect {
            to: Some("https".to_owned()),
            status: 308,
            replace_prefix: None,
        },
    );
    route.listeners = listener.into_iter().collect();
    route.hosts = vec![host.to_owned()];
    site.push_route(route);
}
