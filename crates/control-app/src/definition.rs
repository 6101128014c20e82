//! Checks of services and upstreams when they are written: an invalid one would make every bundle
//! of its project invalid.

pub(crate) mod certificate;
pub(crate) mod managed_certificate;
pub(crate) mod service;
pub(crate) mod upstream;

use crate::configuration::check;
use crate::configuration::compiler::block_settings::{self, SERVICE_FIELDS, UPSTREAM_FIELDS};
use crate::configuration::compiler::{Definitions, ListenAddresses, compile};
use crate::error::Error;
use control_domain::{LoadBalancing, Name, Service, Target, Upstream};
use control_wire::ServiceId;

/// JSON object without settings.
const NONE: &str = "{}";
/// Placeholder address for the checked configuration.
const LISTEN: &str = "127.0.0.1:80";

/// Checks that the proxy's configuration accepts the service.
///
/// # Errors
///
/// [`Error::Definition`] with the faulty field.
pub(crate) fn check_service(service: &Service) -> Result<(), Error> {
    check_form(&service.settings, SERVICE_FIELDS)?;
    let upstream = Upstream {
        id: service.upstream,
        tenant: service.tenant,
        name: Name::stored("upstream".to_owned()),
        load_balancing: LoadBalancing::RoundRobin,
        targets: vec![any_target()],
        tls: None,
        settings: NONE.to_owned(),
        created_at: service.created_at,
    };
    let whole = Service {
        certificate: None,
        ..service.clone()
    };
    if read("service", whole, upstream.clone()).is_ok() {
        return Ok(());
    }
    let plain = Service {
        host: None,
        path_prefix: None,
        priority: 0,
        certificate: None,
        settings: NONE.to_owned(),
        ..service.clone()
    };
    let settings = Service {
        settings: service.settings.clone(),
        ..plain.clone()
    };
    let host = Service {
        host: service.host.clone(),
        ..plain.clone()
    };
    let path_prefix = Service {
        path_prefix: service.path_prefix.clone(),
        ..plain.clone()
    };
    let priority = Service {
        priority: service.priority,
        ..plain.clone()
    };
    let fields = [
        ("name", plain),
        ("host", host),
        ("path_prefix", path_prefix),
        ("priority", priority),
        ("settings", settings),
    ];
    for (field, service) in fields {
        read(field, service, upstream.clone())?;
    }
    Ok(())
}

/// Checks that the proxy's configuration accepts the upstream.
///
/// # Errors
///
/// [`Error::Definition`] with the faulty field.
pub(crate) fn check_upstream(upstream: &Upstream) -> Result<(), Error> {
    check_form(&upstream.settings, UPSTREAM_FIELDS)?;
    let service = Service {
        id: ServiceId(upstream.id.0),
        tenant: upstream.tenant,
        name: Name::stored("service".to_owned()),
        host: None,
        path_prefix: None,
        priority: 0,
        upstream: upstream.id,
        certificate: None,
        settings: NONE.to_owned(),
        created_at: upstream.created_at,
    };
    if read("upstream", service.clone(), upstream.clone()).is_ok() {
        return Ok(());
    }
    let plain = Upstream {
        targets: vec![any_target()],
        tls: None,
        settings: NONE.to_owned(),
        ..upstream.clone()
    };
    let settings = Upstream {
        settings: upstream.settings.clone(),
        ..plain.clone()
    };
    let targets = Upstream {
        targets: upstream.targets.clone(),
        ..plain.clone()
    };
    let tls = Upstream {
        tls: upstream.tls.clone(),
        ..plain.clone()
    };
    let fields = [
        ("name", plain),
        ("targets", targets),
        ("tls.server_name", tls),
        ("settings", settings),
    ];
    for (field, upstream) in fields {
        read(field, service.clone(), upstream)?;
    }
    Ok(())
}

/// Checks that the text is a JSON object of settings, and that none of them has a dedicated field.
fn check_form(settings: &str, fields: &[&str]) -> Result<(), Error> {
    let nodes = block_settings::nodes(settings, fields);
    nodes.map(drop).map_err(|reason| Error::Definition {
        field: "settings",
        reason,
    })
}

fn any_target() -> Target {
    Target {
        address: LISTEN.to_owned(),
        weight: 1,
    }
}

fn read(field: &'static str, service: Service, upstream: Upstream) -> Result<(), Error> {
    let definitions = Definitions {
        services: vec![service],
        upstreams: vec![upstream],
        certificates: Vec::new(),
    };
    let listen = ListenAddresses {
        http: Some(LISTEN.to_owned()),
        https: None,
    };
    let found = check(&compile(&definitions, &listen)?);
    if found.model.is_some() {
        return Ok(());
    }
    let mut found = found.diagnostics.into_iter();
    let first = found.find(|found| found.severity == "error");
    let reason = first.map_or_else(String::new, |found| match found.help {
        Some(help) => format!("{}: {help}", found.message),
        None => found.message,
    });
    Err(Error::Definition { field, reason })
}
