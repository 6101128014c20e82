//! Addresses of sites, as listeners and hosts.

use super::parser::Directive;
use crate::site::{Certificate, Listener, Route, Service, Site};

/// The listeners and hosts of a site.
pub(super) struct Addresses {
    pub(super) listeners: Vec<String>,
    pub(super) hosts: Vec<String>,
}

pub(super) fn read(site: &mut Site, block: &Directive) -> Addresses {
    let files = certificate(block);
    let mut listeners: Vec<String> = Vec::new();
    let mut hosts: Vec<String> = Vec::new();
    for word in block.words.iter().flat_map(|word| word.split(',')) {
        let word = word.trim();
        if word.is_empty() {
            continue;
        }
        let (scheme, rest) = word
            .split_once("://")
            .map_or((None, word), |(a, b)| (Some(a), b));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => (host, Some(port)),
            _ => (authority, None),
        };
        if !path.is_empty() {
            site.left(
                &block.place,
                word,
                "write the path in `matches` of the routes",
            );
        }
        let is_name =
            !host.is_empty() && host != "localhost" && host.parse::<std::net::IpAddr>().is_err();
        let wants_tls =
            scheme == Some("https") || (scheme.is_none() && is_name && port != Some("80"));
        let is_tls = wants_tls && files.is_some();
        if wants_tls && files.is_none() {
            site.left(
                &block.place,
                word,
                "Caddy gets a certificate by itself: write `protocol \"https\"` and `tls` with the files in the listener",
            );
        }
        let port = port.unwrap_or(if is_tls { "443" } else { "80" });
        let name = listener(site, port, is_tls);
        if let Some((cert, key)) = files.as_ref().filter(|_| is_tls) {
            add(site, &name, cert, key, host);
            redirect(site, host);
        }
        if !listeners.contains(&name) {
            listeners.push(name);
        }
        if is_name && !hosts.iter().any(|it| it == host) {
            hosts.push(host.to_owned());
        }
    }
    Addresses { listeners, hosts }
}

/// The files of `tls CERT KEY`.
fn certificate(block: &Directive) -> Option<(String, String)> {
    let tls = block.block.iter().find(|it| it.name() == "tls")?;
    let (cert, key) = (tls.words.get(1)?, tls.words.get(2)?);
    Some((cert.clone(), key.clone()))
}

fn listener(site: &mut Site, port: &str, is_tls: bool) -> String {
    let address = format!("0.0.0.0:{port}");
    if let Some(known) = site.listeners.iter_mut().find(|it| it.address == address) {
        known.is_tls |= is_tls;
        return known.name.clone();
    }
    let name = match port {
        "80" => "http".to_owned(),
        "443" => "https".to_owned(),
        port => format!("port-{port}"),
    };
    site.listeners.push(Listener {
        name: name.clone(),
        address,
        is_tls,
        ..Listener::default()
    });
    name
}

fn add(site: &mut Site, listener: &str, cert: &str, key: &str, host: &str) {
    let Some(listener) = site.listeners.iter_mut().find(|it| it.name == listener) else {
        return;
    };
    let known = listener.certificates.iter_mut().find(|it| it.cert == cert);
    match known {
        Some(known) => known.names.push(host.to_owned()),
        None => listener.certificates.push(Certificate {
            cert: cert.to_owned(),
            key: key.to_owned(),
            names: vec![host.to_owned()],
        }),
    }
}

/// Caddy redirects a name with a certificate from port 80.
fn redirect(site: &mut Site, host: &str) {
    let listener = listener(site, "80", false);
    let name = site.route_name(&format!("{} to https", host.replace('*', "any")));
    let mut route = Route::new(
        name,
        Service::Redirect {
            to: Some("https".to_owned()),
            status: 308,
            replace_prefix: None,
        },
    );
    route.listeners = vec![listener];
    route.hosts = vec![host.to_owned()];
    site.routes.push(route);
}
