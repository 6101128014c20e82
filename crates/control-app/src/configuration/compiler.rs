//! Compiles services, upstreams and certificates to configuration files.
//!
//! The `kdl` crate writes the text from a tree, under names from the proxy's registry of settings.
//! The result is then checked like any other configuration.

pub(crate) mod block_settings;

use block_settings::{SERVICE_FIELDS, UPSTREAM_FIELDS};
use control_bundle::{ENTRY_FILE, Files, chain_file, key_file};
use control_domain::{Certificate, Refusal, Service, Target, Upstream, UpstreamTls};
use control_wire::{CertificateId, UpstreamId};
use kdl::{KdlDocument, KdlNode, KdlValue};
use proxy_model::registry::{listener_tls, listeners, matches, routes, top, upstreams};
use std::collections::{BTreeMap, BTreeSet};

const HTTP: &str = "http";
const HTTPS: &str = "https";

/// Listening addresses of the compiled configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddresses {
    /// Address without TLS.
    pub http: Option<String>,
    /// Address with TLS; required if a service has a certificate.
    pub https: Option<String>,
}

/// Definitions of a project: input of the compiler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definitions {
    pub(crate) services: Vec<Service>,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) certificates: Vec<Certificate>,
}

/// Compiles the files of a configuration that serves all services.
///
/// # Errors
///
/// [`Refusal::Invalid`] if there is no service, or an address is missing.
pub(crate) fn compile(
    definitions: &Definitions,
    listen: &ListenAddresses,
) -> Result<Files, Refusal> {
    let mut services: Vec<&Service> = definitions.services.iter().collect();
    if services.is_empty() {
        return Err(Refusal::invalid(
            "services",
            "there are none in the project",
        ));
    }
    services.sort_by_key(|service| &service.name);
    let needed: BTreeSet<CertificateId> = services
        .iter()
        .filter_map(|service| service.certificate)
        .collect();
    let mut certificates: Vec<&Certificate> = definitions
        .certificates
        .iter()
        .filter(|certificate| needed.contains(&certificate.id))
        .collect();
    certificates.sort_by_key(|certificate| &certificate.name);
    let used: BTreeSet<UpstreamId> = services.iter().map(|service| service.upstream).collect();
    let mut upstreams: Vec<&Upstream> = definitions
        .upstreams
        .iter()
        .filter(|upstream| used.contains(&upstream.id))
        .collect();
    upstreams.sort_by_key(|upstream| &upstream.name);
    let names: BTreeMap<UpstreamId, &str> = upstreams
        .iter()
        .map(|upstream| (upstream.id, upstream.name.as_str()))
        .collect();

    let mut document = KdlDocument::new();
    let routes: Result<_, _> = services
        .iter()
        .map(|service| route(service, &names))
        .collect();
    let targets: Result<_, _> = upstreams.iter().map(|one| upstream(one)).collect();
    *document.nodes_mut() = vec![
        block(top::LISTENERS.name(), listeners_of(listen, &certificates)?),
        block(top::ROUTES.name(), routes?),
        block(top::UPSTREAMS.name(), targets?),
    ];
    document.autoformat();
    let text = document.to_string().into_bytes();
    let chains = certificates.iter().map(|certificate| {
        let chain = certificate.chain_pem.clone().into_bytes();
        (chain_file(certificate.id), chain)
    });
    let mut files: Files = chains.collect();
    files.insert(ENTRY_FILE.to_owned(), text);
    Ok(files)
}

fn listeners_of(
    listen: &ListenAddresses,
    certificates: &[&Certificate],
) -> Result<Vec<KdlNode>, Refusal> {
    let mut nodes = Vec::new();
    if let Some(address) = &listen.http {
        nodes.push(named(
            listeners::LISTENER.name(),
            HTTP,
            vec![value(listeners::ADDRESS.name(), address.as_str())],
        ));
    }
    match (&listen.https, certificates) {
        (None, []) => {}
        (None, _) => {
            let reason = "is needed: a service has a certificate";
            return Err(Refusal::invalid("services.https", reason));
        }
        (Some(_), []) => {
            let reason = "no service has a certificate";
            return Err(Refusal::invalid("services.https", reason));
        }
        (Some(address), certificates) => {
            let certificates = certificates.iter().map(|each| certificate(each));
            nodes.push(named(
                listeners::LISTENER.name(),
                HTTPS,
                vec![
                    value(listeners::ADDRESS.name(), address.as_str()),
                    value(listeners::PROTOCOL.name(), HTTPS),
                    block(listener_tls::TLS.name(), certificates.collect()),
                ],
            ));
        }
    }
    if nodes.is_empty() {
        return Err(Refusal::invalid("services.http", "is needed"));
    }
    Ok(nodes)
}

fn certificate(certificate: &Certificate) -> KdlNode {
    let files = vec![
        value(
            listener_tls::CERTIFICATE_CERT_FILE.name(),
            chain_file(certificate.id),
        ),
        value(
            listener_tls::CERTIFICATE_KEY_FILE.name(),
            key_file(certificate.id),
        ),
    ];
    block(listener_tls::CERTIFICATE.name(), files)
}

fn route(service: &Service, upstreams: &BTreeMap<UpstreamId, &str>) -> Result<KdlNode, Refusal> {
    let Service {
        id: _,
        tenant: _,
        name,
        host,
        path_prefix,
        priority,
        upstream,
        certificate: _, // The listener has it.
        settings: further,
        created_at: _,
    } = service;
    let mut settings = vec![value(
        routes::PRIORITY.name(),
        KdlValue::Integer(i128::from(*priority)),
    )];
    let host = host
        .as_deref()
        .map(|host| value(matches::HOST.name(), host));
    let path = path_prefix
        .as_deref()
        .map(|path| value(matches::PATH_PREFIX.name(), path));
    let conditions: Vec<KdlNode> = host.into_iter().chain(path).collect();
    if !conditions.is_empty() {
        settings.push(block(matches::MATCHES.name(), conditions));
    }
    let upstream = upstreams.get(upstream).copied().unwrap_or_default();
    settings.push(value(routes::UPSTREAM.name(), upstream));
    settings.append(&mut further_nodes(further, SERVICE_FIELDS)?);
    Ok(named(routes::ROUTE.name(), name.as_str(), settings))
}

/// Nodes of the additional settings, which were checked when they were stored.
fn further_nodes(settings: &str, fields: &[&str]) -> Result<Vec<KdlNode>, Refusal> {
    let nodes = block_settings::nodes(settings, fields);
    nodes.map_err(|_| Refusal::invalid("services", "have settings that no longer exist"))
}

fn upstream(upstream: &Upstream) -> Result<KdlNode, Refusal> {
    let Upstream {
        id: _,
        tenant: _,
        name,
        load_balancing,
        targets,
        tls,
        settings: further,
        created_at: _,
    } = upstream;
    let mut settings = vec![
        value(upstreams::LOAD_BALANCING.name(), load_balancing.name()),
        block(
            upstreams::TARGETS.name(),
            targets.iter().map(target).collect(),
        ),
    ];
    if let Some(UpstreamTls { server_name }) = tls {
        let server_name = server_name.as_deref();
        let server_name = server_name.map(|name| value(upstreams::SNI.name(), name));
        settings.push(block(
            upstreams::TLS.name(),
            server_name.into_iter().collect(),
        ));
    }
    settings.append(&mut further_nodes(further, UPSTREAM_FIELDS)?);
    Ok(named(upstreams::UPSTREAM.name(), name.as_str(), settings))
}

fn target(Target { address, weight }: &Target) -> KdlNode {
    let mut target = value(upstreams::TARGET.name(), address.as_str());
    // The default weight is not written.
    if *weight != 1 {
        let weight = KdlValue::Integer(i128::from(*weight));
        let weight = value(upstreams::WEIGHT.name(), weight);
        target.ensure_children().nodes_mut().push(weight);
    }
    target
}

fn value(name: &str, value: impl Into<KdlValue>) -> KdlNode {
    let mut node = KdlNode::new(name);
    node.push(value.into());
    node
}

fn block(name: &str, children: Vec<KdlNode>) -> KdlNode {
    let mut node = KdlNode::new(name);
    *node.ensure_children().nodes_mut() = children;
    node
}

fn named(name: &str, argument: &str, children: Vec<KdlNode>) -> KdlNode {
    let mut node = block(name, children);
    node.insert(0, argument);
    node
}

#[cfg(test)]
mod tests;
