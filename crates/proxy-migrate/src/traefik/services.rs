//! Converts services to upstreams.

use super::configuration::Configuration;
use super::document::{Entry, Value};
use super::url::Url;
use crate::kdl::Node;
use crate::site::{Site, Upstream};
use crate::units;
use std::collections::HashMap;

/// Maximum weight of a target.
const MAX_WEIGHT: u64 = 10_000;

/// Upstream of a service.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) upstream: String,
    /// `Host` to send in place of the client's.
    pub(super) host: Option<String>,
}

/// Services converted so far; `None` for one that could not be converted.
#[derive(Debug, Default)]
pub(super) struct Services {
    targets: HashMap<String, Option<Target>>,
}

/// Upstream with the `Host` for its targets.
struct Draft {
    upstream: Upstream,
    host: Option<String>,
}

impl Services {
    /// Upstream of a service, added if necessary; `None` if it cannot be converted, which is noted.
    pub(super) fn target(
        &mut self,
        site: &mut Site,
        configuration: &Configuration<'_>,
        router: &Entry,
    ) -> Option<Target> {
        let reference = router.value.text_of("service").unwrap_or_default();
        let Some(service) = configuration.services.get(reference) else {
            site.note(
                &router.place(),
                &format!("{}: service {reference}", router.key),
                "no file has the service; its routes answer 501",
            );
            return None;
        };
        if let Some(known) = self.targets.get(&service.key) {
            return known.clone();
        }
        let draft = draft(site, configuration, service);
        let target = draft.map(|draft| add(site, service, draft));
        self.targets.insert(service.key.clone(), target.clone());
        target
    }
}

fn add(site: &mut Site, service: &Entry, draft: Draft) -> Target {
    let name = site.upstream_name(&service.key);
    site.upstreams.push(Upstream {
        name: name.clone(),
        ..draft.upstream
    });
    Target {
        upstream: name,
        host: draft.host,
    }
}

fn draft(site: &mut Site, configuration: &Configuration<'_>, service: &Entry) -> Option<Draft> {
    let advice = if let Some(balancer) = service.value.get("loadBalancer") {
        match balanced(site, configuration, service, balancer) {
            Ok(draft) => return Some(draft),
            Err(advice) => advice,
        }
    } else if let Some(weighted) = service.value.get("weighted") {
        match self::weighted(site, configuration, service, weighted) {
            Ok(draft) => return Some(draft),
            Err(advice) => advice,
        }
    } else if service.value.get("mirroring").is_some() {
        "write `upstream`, and `shadow { upstream …; percent … }` in the route's policies"
    } else if service.value.get("failover").is_some() {
        "write an upstream with the targets of both services"
    } else {
        "write an upstream"
    };
    let advice = format!("{advice}; its routes answer 501 until then");
    site.note(&service.place(), &service.key, &advice);
    None
}

/// Converts a load balancer.
fn balanced(
    site: &mut Site,
    configuration: &Configuration<'_>,
    service: &Entry,
    balancer: &Value,
) -> Result<Draft, &'static str> {
    let servers = balancer.get("servers").map_or(&[][..], Value::items);
    let mut upstream = Upstream::default();
    let mut schemes: Vec<&str> = Vec::new();
    let mut hosts: Vec<String> = Vec::new();
    for server in servers {
        let url = server.text_of("url").and_then(Url::parse);
        let Some(url) = url else {
            return Err("write targets as hosts and ports");
        };
        if server.is_on("preservePath") {
            return Err("write `rewrite { replace-prefix \"/\" … }` in the routes");
        }
        schemes.push(url.scheme);
        hosts.push(url.authority.to_owned());
        let weight = server.number_of("weight").unwrap_or(1);
        upstream
            .targets
            .push((url.target(), weight.min(MAX_WEIGHT)));
    }
    let Some(scheme) = schemes.first() else {
        return Err("it has no servers");
    };
    if schemes.iter().any(|it| it != scheme) {
        return Err("write an upstream for each scheme of its servers");
    }
    match *scheme {
        "https" => upstream.tls = Some(tls(site, configuration, service, balancer)),
        "h2c" => upstream.settings.push(Node::text("protocol", "h2")),
        _ => {}
    }
    settings(site, service, balancer, &mut upstream);
    let passes_host = balancer.text_of("passHostHeader") != Some("false");
    let host = hosts.first().filter(|_| !passes_host).cloned();
    if host.is_some() && hosts.iter().any(|it| Some(it) != host.as_ref()) {
        return Err(
            "a route sends one `Host`: write `request-headers { set \"Host\" … }` in routes",
        );
    }
    Ok(Draft { upstream, host })
}

/// Converts load balancing and health checks.
fn settings(site: &mut Site, service: &Entry, balancer: &Value, upstream: &mut Upstream) {
    let note = |site: &mut Site, key: &str, advice: &str| {
        if let Some(value) = balancer.get(key) {
            let shown = format!("{}: {key}", service.key);
            site.note(&value.place(), &shown, advice);
        }
    };
    let strategy = match balancer.text_of("strategy") {
        None | Some("wrr") => None,
        Some("p2c") => Some("random_two"),
        Some("hrw") => Some("ip_hash"),
        Some(_) => {
            note(
                site,
                "strategy",
                "write `load-balancing \"peak_ewma\"` or another one",
            );
            None
        }
    };
    let sticky = balancer.get("sticky").map(|_| "sticky");
    if let Some(policy) = sticky.or(strategy) {
        upstream.settings.push(Node::text("load-balancing", policy));
    }
    let cookie = balancer.at(&["sticky", "cookie", "name"]);
    if let Some(name) = cookie.and_then(Value::text) {
        upstream
            .settings
            .push(Node::new("sticky").child(Node::text("cookie", name)));
    }
    if let Some(check) = balancer.get("healthCheck") {
        upstream.settings.extend(health_check(check));
        for key in ["headers", "port", "scheme", "method"] {
            if let Some(value) = check.get(key) {
                let shown = format!("{}: healthCheck {key}", service.key);
                site.note(
                    &value.place(),
                    &shown,
                    "checks are `GET` at the target's own port",
                );
            }
        }
    }
    note(
        site,
        "passiveHealthCheck",
        "write `outlier-detection` in the upstream",
    );
}

fn health_check(check: &Value) -> Option<Node> {
    let path = check.text_of("path")?;
    let milliseconds = |key: &str| {
        let ms = units::milliseconds(check.text_of(key)?, 1_000)?;
        Some(ms.clamp(1_000, 3_600_000))
    };
    let status = check.number_of("status");
    let status = status.map(|status| Node::number("expected-status", status));
    // Traefik accepts every status below 400.
    let status = status.unwrap_or_else(|| Node::text("expected-status", "200-399"));
    let probe = Node::text("type", "http")
        .child(Node::text("path", path))
        .child(status)
        .children(
            check
                .text_of("hostname")
                .map(|host| Node::text("host", host)),
        );
    let interval = milliseconds("interval");
    let timeout = units::probe_timeout(interval, milliseconds("timeout"));
    let interval = interval.map(|ms| Node::number("interval-ms", ms));
    let timeout = timeout.map(|ms| Node::number("timeout-ms", ms));
    Some(
        Node::new("health-check")
            .child(probe)
            .children(interval)
            .children(timeout),
    )
}

/// Converts TLS settings for the servers.
fn tls(
    site: &mut Site,
    configuration: &Configuration<'_>,
    service: &Entry,
    balancer: &Value,
) -> Vec<Node> {
    let mut nodes = Vec::new();
    let name = balancer.text_of("serversTransport").unwrap_or("default");
    let transport = configuration.transports.get(name);
    let mut documents = configuration.documents.iter();
    let own = documents.find_map(|it| it.get("serversTransport"));
    let Some(transport) = transport.map(|it| &it.value).or(own) else {
        return nodes;
    };
    if let Some(name) = transport.text_of("serverName") {
        nodes.push(Node::text("sni", name));
    }
    match transport.texts_of("rootCAs").as_slice() {
        [] => {}
        [file] => nodes.push(Node::text("ca-file", file)),
        _ => site.note(
            &transport.place(),
            &format!("{}: rootCAs", service.key),
            "write one `ca-file` with all certificates",
        ),
    }
    if transport.is_on("insecureSkipVerify") {
        site.note(
            &transport.place(),
            &format!("{}: insecureSkipVerify", service.key),
            "the certificate is verified here: write `tls { ca-file … }`",
        );
    }
    let certificate = transport.get("certificates").map_or(&[][..], Value::items);
    if let Some((cert, key)) = certificate
        .first()
        .and_then(|it| it.text_of("certFile").zip(it.text_of("keyFile")))
    {
        nodes.push(Node::text("cert-file", cert));
        nodes.push(Node::text("key-file", key));
    }
    nodes
}

/// Merges the targets of several services into one upstream, with their weights.
fn weighted(
    site: &mut Site,
    configuration: &Configuration<'_>,
    service: &Entry,
    weighted: &Value,
) -> Result<Draft, &'static str> {
    const PARTS: &str = "write an upstream with the targets of its services, and weights";
    let mut parts: Vec<(Draft, u64)> = Vec::new();
    for part in weighted.get("services").map_or(&[][..], Value::items) {
        let inner = configuration
            .services
            .get(part.text_of("name").unwrap_or_default());
        let inner = inner.ok_or("no file has one of its services")?;
        let balancer = inner.value.get("loadBalancer").ok_or(PARTS)?;
        let draft = balanced(site, configuration, inner, balancer)?;
        parts.push((draft, part.number_of("weight").unwrap_or(1)));
    }
    // A service's share is divided among its targets by their weights.
    let total = |draft: &Draft| {
        let weights = draft.upstream.targets.iter().map(|(_, weight)| *weight);
        weights.sum::<u64>().max(1)
    };
    let mut common = 1_u64;
    for (draft, _) in &parts {
        let total = total(draft);
        common = common / greatest_divisor(common, total) * total;
        if common > MAX_WEIGHT {
            return Err(PARTS);
        }
    }
    let mut parts = parts.into_iter();
    let (mut first, first_weight) = parts.next().ok_or("it has no services")?;
    let scale = |draft: &mut Draft, weight: u64| {
        let factor = weight.saturating_mul(common / total(draft));
        for (_, own) in &mut draft.upstream.targets {
            *own = own.saturating_mul(factor);
        }
    };
    scale(&mut first, first_weight);
    for (mut draft, weight) in parts {
        let (a, b) = (&first.upstream, &draft.upstream);
        if a.settings != b.settings || a.tls != b.tls || first.host != draft.host {
            return Err(PARTS);
        }
        scale(&mut draft, weight);
        first.upstream.targets.extend(draft.upstream.targets);
    }
    if first
        .upstream
        .targets
        .iter()
        .any(|(_, it)| *it > MAX_WEIGHT)
    {
        return Err(PARTS);
    }
    if weighted.get("sticky").is_some() {
        let is_balanced = first
            .upstream
            .settings
            .iter()
            .any(|it| it.is("load-balancing"));
        if !is_balanced {
            let node = Node::text("load-balancing", "sticky");
            first.upstream.settings.push(node);
        }
    }
    if weighted.get("healthCheck").is_some() {
        let shown = format!("{}: healthCheck", service.key);
        site.note(&weighted.place(), &shown, "targets are checked one by one");
    }
    Ok(first)
}

fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}
