//! Tests that settings of every block are decoded.

use super::decoder::Decoder;
use super::top::model;
use crate::files::Files;
use crate::read::read;
use proxy_model::{
    AgentAddress, ClientAuthMode, Expectation, HealthCheckKind, Model, RetryCause, Service,
    TlsVersion,
};
use std::collections::BTreeMap;
use std::time::Duration;

fn decoded(text: &str) -> Model {
    let files = BTreeMap::from([("x.kdl".to_owned(), text.as_bytes().to_vec())]);
    let texts = read(Files::Memory(&files), "x.kdl");
    let mut decoder = Decoder::new(&texts, Files::Memory(&files));
    let model = model(&mut decoder);
    let report = decoder.into_faults().into_report(texts.sources.clone());
    assert!(report.is_empty(), "{report}");
    model
}

#[test]
fn tls_is_decoded() {
    let model = decoded(
        r#"
        listeners {
            listener "secure" {
                address "0.0.0.0:443"
                protocol "https"
                proxy-protocol #true
                trusted-proxies "10.0.0.0/8"
                max-concurrent-streams 10
                tls {
                    cert-file "a.pem"
                    key-file "a.key"
                    ocsp-file "a.ocsp"
                    min-version 1.3
                    alpn "h2" "http/1.1"
                    certificate { cert-file "b.pem"; key-file "b.key"; server-name "*.B.example" "c.example." }
                    client-auth { ca-file "ca.pem"; mode "optional" }
                }
            }
        }
        upstreams {
            upstream "app" {
                target "app:443"
                protocol "h2"
                tls { sni "app.example"; ca-file "ca.pem"; cert-file "c.pem"; key-file "c.key" }
            }
        }
        "#,
    );

    let listener = &model.listeners[0];
    let tls = listener.tls.as_ref().unwrap();
    assert_eq!(tls.certificates.len(), 2);
    assert_eq!(tls.alpn.len(), 2);
    assert!(tls.certificates[0].ocsp_file.is_some());
    let names = tls.certificates[1].server_names.iter();
    assert_eq!(
        names.map(|name| name.as_str()).collect::<Vec<_>>(),
        ["*.b.example", "c.example"]
    );
    assert_eq!(*tls.min_version, TlsVersion::V1_3);
    assert!(tls.client_auth.is_some());
    assert_eq!(*listener.max_concurrent_streams, 10);
    let tls = model.upstreams[0].tls.as_ref().unwrap();
    assert_eq!(**tls.sni.as_ref().unwrap(), "app.example");
    assert!(tls.key_file.is_some());
}

#[test]
fn client_certificates_are_asked_for_in_several_spellings() {
    for asked in [
        r#"client-auth { ca-file "ca.pem"; mode "optional" }"#,
        r#"client-auth "optional" { ca-file "ca.pem" }"#,
        r#"client-auth "optional"; ca-file "ca.pem""#,
    ] {
        let model = decoded(&format!(
            r#"
            listeners {{
                listener "secure" {{
                    address "0.0.0.0:443"
                    protocol "https"
                    tls {{ cert-file "a.pem"; key-file "a.key"; {asked} }}
                }}
            }}
            "#
        ));
        let tls = model.listeners[0].tls.as_ref().unwrap();
        let auth = tls.client_auth.as_ref().unwrap();
        assert_eq!(*auth.mode, ClientAuthMode::Optional, "{asked}");
        assert_eq!(auth.ca_file.display().to_string(), "ca.pem", "{asked}");
    }
}

#[test]
fn settings_of_resilience_are_decoded() {
    let model = decoded(
        r#"
        upstreams {
            upstream "a" {
                target "a:80" weight=3
                health-check {
                    type "http" { path "/up"; expected-status 204; host "a.example" }
                    interval-secs 5
                    timeout-secs 2
                    healthy-threshold 3
                    unhealthy-threshold 4
                }
            }
            upstream "b" {
                target "b:80"
                health-check type="inference" { expected-models "llama3" "phi" }
            }
            upstream "c" { target "c:80"; health-check type="grpc" service="shop.Cart" }
            upstream "d" { target "d:80"; health-check { type "tcp" } }
        }
        routes {
            route "r" {
                upstream "a"
                circuit-breaker { failure-threshold 3; timeout-seconds 20; success-threshold 2 }
                policies {
                    retry { attempts 2; on "502" "reset"; budget-percent 10 }
                    rate-limit { requests-per-second 5; key "header:X-Tenant" }
                    buffer-requests #true
                }
            }
        }
        "#,
    );

    let [a, b, c, d] = model.upstreams.as_slice() else {
        panic!("four upstreams are written");
    };
    assert_eq!(*a.targets[0].weight, 3);
    let check = a.health_check.as_ref().unwrap();
    assert_eq!(*check.unhealthy_threshold, 4);
    assert!(
        matches!(&check.kind, HealthCheckKind::Http { path, expected_status, .. }
        if **path == "/up" && expected_status.to_string() == "204")
    );
    let kind = |upstream: &proxy_model::Upstream| upstream.health_check.clone().unwrap().kind;
    assert!(
        matches!(kind(b), HealthCheckKind::Inference { endpoint, expected_models }
        if *endpoint == "/v1/models" && expected_models.len() == 2)
    );
    let HealthCheckKind::Grpc { service } = kind(c) else {
        panic!("a gRPC check is written");
    };
    assert_eq!(service.unwrap().value, "shop.Cart");
    assert!(matches!(kind(d), HealthCheckKind::Tcp));

    let route = &model.routes[0];
    let breaker = route.circuit_breaker.as_ref().unwrap();
    assert_eq!(*breaker.timeout, Duration::from_secs(20));
    assert_eq!(*breaker.half_open_max_requests, 1);
    let retry = route.policies.retry.as_ref().unwrap();
    assert_eq!(*retry.on, [RetryCause::BadGateway, RetryCause::Reset]);
    let limit = route.policies.rate_limit.as_ref().unwrap();
    assert_eq!((limit.rate.events, *limit.burst), (5, 50));
    assert_eq!(limit.key.to_string(), "header:x-tenant");
}

#[test]
fn a_time_of_a_check_that_is_not_written_fits_the_one_that_is() {
    for (written, interval_secs, timeout_secs) in [
        ("", 10, 5),
        ("interval-secs 1", 1, 1),
        ("interval-secs 7", 7, 5),
        ("timeout-secs 20", 20, 20),
        ("timeout-secs 8", 10, 8),
        ("profile \"stable\"; interval-secs 5", 5, 5),
        ("profile \"fast-failover\"; timeout-secs 6", 6, 6),
        ("interval-secs 3; timeout-secs 3", 3, 3),
    ] {
        let model = decoded(&format!(
            "upstreams {{ upstream \"u\" {{ target \"u:80\"; health-check type=\"tcp\" {{ {written} }} }} }}"
        ));
        let check = model.upstreams[0].health_check.as_ref().unwrap();
        assert_eq!(check.interval.as_secs(), interval_secs, "{written}");
        assert_eq!(check.timeout.as_secs(), timeout_secs, "{written}");
    }
}

#[test]
fn a_circuit_breaker_is_allowed_in_policies() {
    let routes = |route: &str, policies: &str| {
        format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:1\" }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"127.0.0.1:2\" }} }}\n\
             routes {{ route \"r\" {{ upstream \"u\"; {route}; policies {{ {policies} }} }} }}"
        )
    };
    let breaker = "circuit-breaker { failure-threshold 7; timeout-seconds 9 }";
    for text in [routes(breaker, ""), routes("priority 5", breaker)] {
        let loaded = crate::parse(&text, "x.kdl").unwrap();
        let breaker = loaded.model.routes[0].circuit_breaker.as_ref().unwrap();
        assert_eq!(*breaker.failure_threshold, 7);
        assert_eq!(*breaker.timeout, Duration::from_secs(9));
    }
    let report = crate::parse(&routes(breaker, breaker), "x.kdl").unwrap_err();
    let codes: Vec<_> = report.faults().iter().map(|fault| fault.code).collect();
    assert_eq!(codes, [crate::DiagnosticCode::RepeatedSetting]);
}

#[test]
fn agents_static_files_and_the_control_plane_are_decoded() {
    let model = decoded(
        r#"
        agents {
            agent "a" { unix-socket "/run/a.sock"; failure-mode "open" }
            agent "b" { unix-socket path="/run/b.sock"; failure-mode "closed"; timeout-ms 50 }
            agent "c" {
                transport "unix_socket" { path "/run/c.sock" }
                failure-mode "closed"
                encoding "message_pack"
                circuit-breaker { failure-threshold 2 }
            }
        }
        routes {
            route "r" {
                service-type "static"
                static-files { root "/srv/www"; fallback "index.html"; precompressed #true }
                agents "c" "a"
            }
        }
        control-plane {
            url "https://control.example"
            labels "region=eu" "tier=edge"
        }
        "#,
    );

    let sockets: Vec<_> = model
        .agents
        .iter()
        .map(|agent| match &agent.address {
            AgentAddress::Socket(path) => path.to_str(),
            AgentAddress::Upstream(_) => None,
        })
        .collect();
    assert_eq!(
        sockets,
        [
            Some("/run/a.sock"),
            Some("/run/b.sock"),
            Some("/run/c.sock")
        ]
    );
    assert_eq!(*model.agents[1].timeout, Duration::from_millis(50));
    assert!(model.agents[2].circuit_breaker.is_some());
    let route = &model.routes[0];
    assert!(matches!(&route.service, Service::Static(files) if *files.index == "index.html"));
    let agents: Vec<_> = route.agents.iter().map(|index| index.position()).collect();
    assert_eq!(agents, [2, 0]);
    let control_plane = model.control_plane.unwrap();
    let labels = control_plane.labels.iter().map(ToString::to_string);
    assert_eq!(labels.collect::<Vec<_>>(), ["region=eu", "tier=edge"]);
}

#[test]
fn tests_are_decoded() {
    let model = decoded(
        r#"
        agents {
            agent "a" { unix-socket "/run/a.sock"; failure-mode "open" }
            agent "c" { unix-socket "/run/c.sock"; failure-mode "open" }
        }
        routes { route "r" { service-type "builtin"; builtin-handler "health" } }
        tests {
            test "pages are files" {
                request "GET" "/"
                header "Accept" "text/html"
                expect { route "r"; agents "c" "a" }
            }
        }
        "#,
    );

    let test = &model.tests[0];
    assert_eq!(test.name, "pages are files");
    assert_eq!(
        (test.request.method.as_str(), test.request.url.as_str()),
        ("GET", "/")
    );
    assert_eq!(
        test.request.headers,
        [("Accept".to_owned(), "text/html".to_owned())]
    );
    let expected: Vec<_> = test
        .expectations
        .iter()
        .map(|one| one.value.clone())
        .collect();
    assert_eq!(
        expected,
        [
            Expectation::Route("r".to_owned()),
            Expectation::Agents(vec!["c".to_owned(), "a".to_owned()])
        ]
    );
}
