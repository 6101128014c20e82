//! Classes of changes that do harm later, or to some clients only; and usual changes, which have
//! none.

use crate::support::{classes, diff};
use proxy_plan::diff::RiskClass;

const BEFORE: &str = r#"
listeners {
    listener "main" {
        address "0.0.0.0:443"
        protocol "https"
        trusted-proxies "203.0.113.0/28"
        deny "198.51.100.1"
        tls {
            certificate { cert-file "a.pem"; key-file "a.key" }
            certificate { cert-file "b.pem"; key-file "b.key" }
        }
    }
}
system { dns { name-servers "10.0.0.53" } }
observability { redact-query "token" "code"; recording { sample-percent 5; redact "X-Tenant" } }
upstreams {
    upstream "app" {
        target "10.0.0.1:80"
        target "10.0.0.2:80"
        health-check { type "http" { path "/healthz" }; interval-secs 2; timeout-secs 1; unhealthy-threshold 2 }
    }
}
routes {
    route "office" { matches { path-prefix "/office" }; upstream "app"; policies { allow "192.0.2.0/24" } }
    route "orders" {
        matches { path-prefix "/orders" }
        upstream "app"
        policies { jwt { issuer "https://id.test"; audience "orders"; jwks-file "keys.json"; clock-skew-secs 60 } }
    }
    route "site" { upstream "app"; service-type "web"; policies { error-pages { page 404 html="<h1>404</h1>" } } }
}
"#;

fn found(from: &str, to: &str) -> Vec<RiskClass> {
    assert!(BEFORE.contains(from), "{from}");
    classes(&diff(BEFORE, &BEFORE.replacen(from, to, 1)))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of one row for each change")]
fn each_harmful_change_has_its_class() {
    use RiskClass::{
        AnswerChanged, HeadersChanged, HealthCheckChanged, RecordsChanged, RequestsRefused,
        TargetsChanged, TlsWeakened,
    };
    let targets = "target \"10.0.0.1:80\"\n        target \"10.0.0.2:80\"";
    let first = "certificate { cert-file \"a.pem\"; key-file \"a.key\" }";
    let second = "certificate { cert-file \"b.pem\"; key-file \"b.key\" }";
    let both = format!("{first}\n            {second}");
    let swapped = format!("{second}; {first}");
    let page = "page 404 html=\"<h1>404</h1>\"";
    let cases = [
        (
            targets,
            "target \"10.0.0.3:80\"; target \"10.0.0.4:80\"",
            TargetsChanged,
        ),
        (
            targets,
            "target \"app.test:80\"; target \"b.test:80\"",
            TargetsChanged,
        ),
        (
            targets,
            &format!("slow-start-secs 3600; {targets}"),
            TargetsChanged,
        ),
        ("10.0.0.53", "192.0.2.53", TargetsChanged),
        (&both, &swapped, TlsWeakened),
        (
            "address \"0.0.0.0:443\"",
            "address \"0.0.0.0:443\"; via #true",
            HeadersChanged,
        ),
        (
            "upstream \"app\"; policies { allow",
            "upstream \"app\"; service-type \"api\"; policies { allow",
            AnswerChanged,
        ),
        (
            page,
            &format!("{page}; page \"5xx\" html=\"<h1>fine</h1>\""),
            AnswerChanged,
        ),
        ("<h1>404</h1>", "<h1>well</h1>", AnswerChanged),
        (
            "redact-query \"token\" \"code\"",
            "redact-query \"token\"",
            RecordsChanged,
        ),
        ("; redact \"X-Tenant\"", "", RecordsChanged),
        ("sample-percent 5;", "sample-percent 100;", RecordsChanged),
        (
            "observability {",
            "observability { access-log { enabled #false };",
            RecordsChanged,
        ),
        (
            "observability {",
            "observability { error-log { level \"error\" };",
            RecordsChanged,
        ),
        ("timeout-secs 1;", "timeout-ms 1;", HealthCheckChanged),
        ("interval-secs 2", "interval-secs 20", HealthCheckChanged),
        (
            "198.51.100.1",
            "198.51.100.1\" \"198.51.0.0/16",
            RequestsRefused,
        ),
        (
            "198.51.100.1",
            "198.51.100.1\" \"192.0.2.7",
            RequestsRefused,
        ),
        (
            "198.51.100.1",
            "198.51.100.1\" \"203.0.113.5",
            RequestsRefused,
        ),
        ("198.51.100.1", "198.51.100.1\" \"10.1.2.3", RequestsRefused),
    ];
    for (from, to, class) in cases {
        let found = found(from, to);
        assert!(found.contains(&class), "{from} -> {to}: {found:?}");
    }
}

#[test]
fn a_change_of_usual_size_has_none() {
    let page = "page 404 html=\"<h1>404</h1>\"";
    let cases = [
        ("target \"10.0.0.1:80\"", "target \"10.0.0.3:80\""),
        (
            "target \"10.0.0.1:80\"",
            "target \"10.0.0.1:80\"; slow-start-secs 30",
        ),
        (page, &format!("{page}; page 503 html=\"<h1>503</h1>\"")),
        ("sample-percent 5;", "sample-percent 10;"),
        (
            "interval-secs 2; timeout-secs 1; unhealthy-threshold 2",
            "interval-secs 5; timeout-secs 3; unhealthy-threshold 3",
        ),
        ("clock-skew-secs 60", "clock-skew-secs 90"),
        ("198.51.100.1", "198.51.100.1\" \"198.51.100.77"),
        ("198.51.100.1", "198.51.100.1\" \"2001:db8:7::/48"),
    ];
    for (from, to) in cases {
        assert_eq!(found(from, to), [RiskClass::Unlisted], "{from} -> {to}");
    }
    assert!(found("clock-skew-secs 60", "clock-skew-secs 300").contains(&RiskClass::AccessWidened));
    assert!(
        found("clock-skew-secs 60", "clock-skew-secs 10").contains(&RiskClass::RequestsRefused)
    );
}

#[test]
fn weaker_tls_of_a_listener_has_its_class() {
    let before = r#"
        listeners {
            listener "main" {
                address "0.0.0.0:443"
                protocol "https"
                tls { cert-file "a.pem"; key-file "a.key"; min-version "1.3"; client-auth { ca-file "ca.pem" } }
            }
        }
        routes { route "all" { respond 200 "ok" } }
    "#;
    let tls = &before[before.find("tls {").unwrap()..before.find(" } }").unwrap() + 4];
    for (from, to) in [
        (r#"min-version "1.3""#, r#"min-version "1.2""#),
        (r#"min-version "1.3"; "#, ""),
        (r#"min-version "1.3""#, r#"max-version "1.2""#),
        (
            r#"ca-file "ca.pem""#,
            r#"ca-file "ca.pem"; mode "optional""#,
        ),
        (r#"ca-file "ca.pem""#, r#"ca-file "anyone.pem""#),
        (r#"client-auth { ca-file "ca.pem" }"#, ""),
        (tls, ""),
    ] {
        assert!(before.contains(from), "{from}");
        let mut after = before.replacen(from, to, 1);
        if to.is_empty() && from == tls {
            after = after.replace("\"https\"", "\"http\"");
        }
        let found = classes(&diff(before, &after));
        assert!(
            found.contains(&RiskClass::TlsWeakened),
            "{from} -> {to}: {found:?}"
        );
    }
}
