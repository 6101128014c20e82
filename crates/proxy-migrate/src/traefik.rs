//! Reads Traefik's configuration: a static one with the files that it names, or a dynamic one.

mod conditions;
mod configuration;
mod document;
mod entry_points;
mod middlewares;
mod relays;
mod routers;
mod rule;
mod services;
mod tls;
mod url;

use crate::migrated::SyntaxError;
use crate::site::Site;
use crate::source::{Included, Source};
use configuration::Configuration;
use document::Value;
use entry_points::EntryPoints;
use routers::Router;
use std::collections::{BTreeMap, HashMap, HashSet};
use tls::Hosts;

/// Reads a file, and the files of its provider `file`.
pub(crate) fn read(source: &Source, included: Included<'_>) -> Result<Site, SyntaxError> {
    let mut site = Site::default();
    let main = document::parse(source)?;
    let mut documents = Vec::new();
    for file in provided(&mut site, &main, included) {
        documents.push(document::parse(&file)?);
    }
    documents.insert(0, main);
    note_parts(&mut site, &documents);
    let configuration = Configuration::new(&documents);
    let points = EntryPoints::read(&mut site, &configuration);
    let routers = Router::read_all(&mut site, &configuration, &points);
    let mut by_point: HashMap<&str, Vec<&Router<'_>>> = HashMap::new();
    for router in &routers {
        for name in &router.listeners {
            by_point.entry(name).or_default().push(router);
        }
    }
    let mut http_points: HashSet<&str> = HashSet::new();
    for point in &points.all {
        let own = by_point.remove(point.name).unwrap_or_default();
        let redirects = point.value.and_then(|it| it.at(&["http", "redirections"]));
        if own.is_empty() && redirects.is_none() {
            continue;
        }
        http_points.insert(point.name);
        let position = site.listeners.len();
        points.listen(&mut site, point);
        if point.is_tls {
            let hosts = hosts(&own, point);
            tls::write(&mut site, &configuration, position, point, &hosts);
        }
    }
    routers::write(&mut site, &configuration, &routers);
    site.shorten_listeners();
    relays::read(&mut site, &configuration, &points, &http_points);
    Ok(site)
}

/// Hosts of an entry point's routers, by certificate resolver.
fn hosts<'d>(routers: &[&Router<'d>], point: &entry_points::EntryPoint<'d>) -> Vec<Hosts<'d>> {
    let point_resolver = point.tls().and_then(|tls| tls.text_of("certResolver"));
    let mut by_resolver: BTreeMap<&str, Hosts<'d>> = BTreeMap::new();
    for router in routers {
        let own = router.entry.value.at(&["tls", "certResolver"]);
        let Some(resolver) = own.and_then(Value::text).or(point_resolver) else {
            continue;
        };
        let hosts = by_resolver.entry(resolver).or_default();
        hosts.resolver = Some(resolver);
        hosts.names.extend(router.hosts());
    }
    by_resolver.into_values().collect()
}

/// Files of the provider `file`.
fn provided(site: &mut Site, main: &Value, included: Included<'_>) -> Vec<Source> {
    let Some(providers) = main.get("providers") else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for provider in providers.entries() {
        if !provider.key.eq_ignore_ascii_case("file") {
            if provider.value.entries().is_empty() && provider.value.text().is_some() {
                continue;
            }
            site.note(
                &provider.place(),
                &format!("providers: {}", provider.key),
                "targets are addresses or DNS names: routers and services that it finds are not carried over",
            );
            continue;
        }
        let mut patterns: Vec<String> = Vec::new();
        let file = provider.value.text_of("filename");
        patterns.extend(file.map(str::to_owned));
        if let Some(folder) = provider.value.text_of("directory") {
            let folder = folder.trim_end_matches('/');
            patterns.extend(["yml", "yaml", "toml"].map(|end| format!("{folder}/*.{end}")));
        }
        for pattern in patterns {
            match included(&pattern) {
                Some(found) => files.extend(found),
                None => site.note(
                    &provider.place(),
                    &format!("file: {pattern}"),
                    "there is no such file here: its routers are missing",
                ),
            }
        }
    }
    files
}

/// Notes parts of the documents that are not converted.
fn note_parts(site: &mut Site, documents: &[Value]) {
    for entry in documents.iter().flat_map(Value::entries) {
        let advice = match entry.key.to_ascii_lowercase().as_str() {
            "entrypoints"
            | "certificatesresolvers"
            | "http"
            | "tcp"
            | "tls"
            | "providers"
            | "log"
            | "accesslog"
            | "global"
            | "serverstransport" => continue,
            "api" | "ping" | "metrics" => {
                "the admin interface has `/metrics`, `/status` and `/ready`"
            }
            "udp" => "UDP is not offered",
            "tracing" => {
                "write `observability { otlp { endpoint \"http://…:4318\" }; trace-context … }`"
            }
            _ => "not carried over; see docs/learn/coming-from/traefik.md",
        };
        site.note(&entry.place(), &entry.key, advice);
    }
}
