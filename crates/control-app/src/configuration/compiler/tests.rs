//! Property: compiled configurations read back as their definitions.

use super::*;
use crate::configuration::check;
use control_domain::{CertificateFacts, Labels, LoadBalancing, Name, Tenant};
use control_wire::{OrgId, ProjectId, SecretId, ServiceId};
use jiff::Timestamp;
use uuid::Uuid;

const TENANT: Tenant = Tenant::project(OrgId(Uuid::from_u128(1)), ProjectId(Uuid::from_u128(2)));
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn upstream_of(id: u128, name: &str, targets: &[&str]) -> Upstream {
    let target = |address: &&str| Target {
        address: (*address).to_owned(),
        weight: 1,
    };
    Upstream {
        id: UpstreamId(Uuid::from_u128(id)),
        tenant: TENANT,
        name: Name::stored(name.to_owned()),
        load_balancing: LoadBalancing::RoundRobin,
        targets: targets.iter().map(target).collect(),
        tls: None,
        settings: "{}".to_owned(),
        created_at: NOW,
    }
}

fn service_of(id: u128, name: &str, upstream: u128) -> Service {
    Service {
        id: ServiceId(Uuid::from_u128(id)),
        tenant: TENANT,
        name: Name::stored(name.to_owned()),
        host: None,
        path_prefix: None,
        priority: 50,
        upstream: UpstreamId(Uuid::from_u128(upstream)),
        certificate: None,
        settings: "{}".to_owned(),
        created_at: NOW,
    }
}

fn certificate_of(id: u128) -> Certificate {
    Certificate {
        id: CertificateId(Uuid::from_u128(id)),
        tenant: TENANT,
        name: Name::stored("certificate".to_owned()),
        facts: CertificateFacts {
            hosts: vec!["a.example.com".to_owned()],
            not_before: NOW,
            not_after: NOW,
            fingerprint: String::new(),
        },
        node_labels: Labels::default(),
        chain_pem: "chain".to_owned(),
        secret: SecretId(Uuid::from_u128(9)),
        created_at: NOW,
    }
}

fn http() -> ListenAddresses {
    ListenAddresses {
        http: Some("127.0.0.1:8080".to_owned()),
        https: None,
    }
}

#[test]
fn every_field_survives_a_round_trip() {
    // Names that would become code if texts were concatenated.
    let hostile = "a\" { } // \\ \u{1F600} } #true";
    let definitions = Definitions {
        services: vec![
            Service {
                host: Some("*.example.com".to_owned()),
                path_prefix: Some("/api".to_owned()),
                priority: -7,
                certificate: Some(CertificateId(Uuid::from_u128(7))),
                ..service_of(1, hostile, 10)
            },
            Service {
                host: Some("b.example.com".to_owned()),
                ..service_of(2, "b", 11)
            },
        ],
        upstreams: vec![
            Upstream {
                tls: Some(UpstreamTls {
                    server_name: Some("inner.example.com".to_owned()),
                }),
                ..upstream_of(10, hostile, &["10.0.0.1:443", "[2001:db8::1]:443"])
            },
            upstream_of(11, "true", &["localhost:80"]),
            upstream_of(12, "unused", &["localhost:81"]),
        ],
        certificates: vec![certificate_of(7), certificate_of(8)],
    };
    let listen = ListenAddresses {
        https: Some("[::1]:8443".to_owned()),
        ..http()
    };
    let files = compile(&definitions, &listen).unwrap();
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let chain = chain_file(CertificateId(Uuid::from_u128(7)));
    assert_eq!(
        names,
        [chain.as_str(), ENTRY_FILE],
        "no key, nothing unused"
    );

    let checked = check(&files);
    let text = String::from_utf8_lossy(&files[ENTRY_FILE]).into_owned();
    let codes = checked.diagnostics.iter().map(|found| found.code.as_str());
    assert!(codes.eq(["node-allowance"]), "a target on loopback: {text}");
    let model = checked.model.unwrap();
    let routes: Vec<(&str, i32)> = model
        .routes
        .iter()
        .map(|route| (route.id.as_str(), *route.priority))
        .collect();
    assert_eq!(routes, [(hostile, -7), ("b", 50)]);
    assert_eq!(model.routes[0].matches.hosts.len(), 1);
    assert_eq!(model.routes[0].matches.paths.len(), 1);
    let upstreams: Vec<(&str, usize)> = model
        .upstreams
        .iter()
        .map(|upstream| (upstream.name.as_str(), upstream.targets.len()))
        .collect();
    assert_eq!(upstreams, [(hostile, 2), ("true", 1)]);
    let sni = model.upstreams[0].tls.as_ref().unwrap().sni.as_ref();
    assert_eq!(sni.unwrap().value, "inner.example.com");
    let listeners: Vec<String> = model
        .listeners
        .iter()
        .map(|listener| listener.address.value.to_string())
        .collect();
    assert_eq!(listeners, ["127.0.0.1:8080", "[::1]:8443"]);
    let tls = model.listeners[1].tls.as_ref().unwrap();
    let cert_file = tls.certificates[0].cert_file.value.to_string_lossy();
    assert_eq!(cert_file, chain);
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let definitions = Definitions {
        services: vec![service_of(1, "a", 10), service_of(2, "b", 11)],
        upstreams: vec![
            upstream_of(10, "x", &["10.0.0.1:80"]),
            upstream_of(11, "y", &["10.0.0.2:80"]),
        ],
        certificates: Vec::new(),
    };
    let mut reversed = definitions.clone();
    reversed.services.reverse();
    reversed.upstreams.reverse();
    assert_eq!(compile(&definitions, &http()), compile(&reversed, &http()));
}

#[test]
fn a_setting_that_the_proxy_lacks_is_a_diagnostic_and_not_dropped() {
    let mut upstream = upstream_of(10, "x", &["10.0.0.1:80"]);
    upstream.targets[0].weight = 10_001;
    let definitions = Definitions {
        services: vec![service_of(1, "a", 10)],
        upstreams: vec![upstream],
        certificates: Vec::new(),
    };
    let checked = check(&compile(&definitions, &http()).unwrap());
    assert!(checked.model.is_none());
}

#[test]
fn a_missing_or_unused_address_is_refused() {
    let plain = Definitions {
        services: vec![service_of(1, "a", 10)],
        upstreams: vec![upstream_of(10, "x", &["10.0.0.1:80"])],
        certificates: Vec::new(),
    };
    let secure = Definitions {
        services: vec![Service {
            certificate: Some(CertificateId(Uuid::from_u128(7))),
            ..service_of(1, "a", 10)
        }],
        certificates: vec![certificate_of(7)],
        ..plain.clone()
    };
    let nowhere = ListenAddresses {
        http: None,
        https: None,
    };
    let both = ListenAddresses {
        https: Some("0.0.0.0:443".to_owned()),
        ..http()
    };
    for (definitions, listen, field) in [
        (&plain, &nowhere, "services.http"),
        (&plain, &both, "services.https"),
        (&secure, &http(), "services.https"),
        (&Definitions::default(), &http(), "services"),
    ] {
        let refused = compile(definitions, listen);
        let Err(Refusal::Invalid { field: found, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(found, field);
    }
}

#[test]
fn further_settings_are_those_of_the_configuration() {
    let upstream = r#"{
        "health-check": {"type": ["http", {"path": "/healthz"}], "interval-secs": 5},
        "timeouts": {"connect-secs": 2, "read-secs": 30},
        "connection-pool": {"max-connections": 7, "max-idle": 3},
        "protocol": "h2"
    }"#;
    let service = r#"{
        "policies": {"rate-limit": {"requests-per-second": 10, "burst": 20}, "max-body-size": "1MB"}
    }"#;
    let definitions = Definitions {
        services: vec![Service {
            settings: service.to_owned(),
            ..service_of(1, "a", 10)
        }],
        upstreams: vec![Upstream {
            settings: upstream.to_owned(),
            ..upstream_of(10, "u", &["10.0.0.1:80"])
        }],
        certificates: Vec::new(),
    };
    let files = compile(&definitions, &http()).unwrap();
    let text = String::from_utf8_lossy(&files[ENTRY_FILE]).into_owned();
    let checked = check(&files);
    assert_eq!(checked.diagnostics, [], "{text}");
    let model = checked.model.unwrap();
    let effective = proxy_model::effective(&model);
    for (path, value) in [
        (
            "upstreams.upstream[\"u\"].connection-pool.max-connections",
            "7",
        ),
        ("upstreams.upstream[\"u\"].protocol", "\"h2\""),
        ("routes.route[\"a\"].policies.rate-limit.burst", "20"),
    ] {
        let found = effective.iter().find(|setting| setting.path == path);
        let found = found.unwrap_or_else(|| panic!("{path}: {text}"));
        assert_eq!(found.value.to_string(), value, "{path}");
    }
}
