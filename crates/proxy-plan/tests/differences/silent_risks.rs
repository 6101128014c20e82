//! Harmful changes that cause no errors, each with its class; and similar changes that are
//! harmless.

use crate::support::{classes, diff};
use proxy_plan::diff::{Change, ChangedFile, RiskClass};

const BEFORE: &str = r#"
listeners {
    listener "main" {
        address "0.0.0.0:443"
        protocol "https"
        trusted-proxies "10.0.0.0/8"
        timeouts { header-secs 30; keep-alive-secs 60 }
        tls {
            certificate { cert-file "a.pem"; key-file "a.key"; server-name "a.test" }
            certificate { cert-file "b.pem"; key-file "b.key"; server-name "b.test" }
        }
    }
}
upstreams {
    upstream "app" {
        targets { target "10.0.0.1:80" { weight 95 }; target "10.0.0.2:80" { weight 5 } }
        load-balancing "weighted"
        health-check { type "http" { path "/healthz" }; timeout-secs 5 }
        outlier-detection { consecutive-failures 5 }
    }
    upstream "spare" { targets { target "10.0.0.3:80"; target "10.0.0.4:80" { backup #true } } }
    upstream "auth" { target "10.0.0.9:80" }
}
agents {
    agent "login" {
        upstream "auth"; protocol "forward-auth"; request-path "/verify"; copy-headers "X-User" "X-Role"
        failure-mode "closed"; timeout-ms 2000
    }
}
routes {
    route "api" {
        matches { path-prefix "/api" }
        upstream "app"
        agents "login"
        policies {
            rate-limit { requests-per-second 3; key "client_ip" }
            request-headers { set "X-Tenant" "a" }
            response-headers { set "Strict-Transport-Security" "max-age=31536000" }
            cors { allow-origins "https://app.test"; allow-methods "GET" "PUT" }
            basic-auth { user "ann" "$2y$04$abcdefghijklmnopqrstuu5Eib6dQmcaRkU2y9cEEtmnhcGHVBJfm"; attempts "10/min" }
            timeouts { request-secs 20 }
        }
    }
    route "robots" { matches { path "/robots.txt" }; respond 200 "User-agent: *" }
    route "site" { upstream "spare"; policies { compression { codings "gzip" } } }
}
"#;

fn found(from: &str, to: &str) -> Vec<RiskClass> {
    assert!(BEFORE.contains(from), "{from}");
    classes(&diff(BEFORE, &BEFORE.replacen(from, to, 1)))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of one row for each change")]
fn each_silent_change_has_its_class() {
    use RiskClass::{
        AccessWidened, AgentChanged, AnswerChanged, CrossOriginChanged, HeaderEditRemoved,
        HeadersChanged, HealthCheckChanged, LimitRemoved, LimitTightened, ListenerNarrowed,
        RequestsCopied, TargetsChanged, TlsWeakened,
    };
    let policies = "compression { codings \"gzip\" }";
    let with = |more: &str| format!("{policies}; {more}");
    let tls = "certificate { cert-file \"a.pem\"";
    let tls_with = |more: &str| format!("{more}; {tls}");
    let address = "address \"0.0.0.0:443\"";
    let cases = [
        ("request-path \"/verify\"; ", String::new(), AgentChanged),
        ("/verify", "/verfiy".to_owned(), AgentChanged),
        (
            "copy-headers \"X-User\" \"X-Role\"",
            "copy-headers \"X-Role\"".to_owned(),
            AgentChanged,
        ),
        ("timeout-ms 2000", "timeout-ms 1".to_owned(), LimitTightened),
        ("\"10.0.0.0/8\"", "\"0.0.0.0/0\"".to_owned(), AccessWidened),
        (policies, with("path-policy \"forward\""), AccessWidened),
        (
            "attempts \"10/min\"",
            "attempts \"100000/s\"".to_owned(),
            AccessWidened,
        ),
        (
            "attempts \"10/min\"",
            "forward-credentials #true".to_owned(),
            AccessWidened,
        ),
        (
            "requests-per-second 3",
            "requests-per-second 30000".to_owned(),
            LimitRemoved,
        ),
        (
            "requests-per-second 3;",
            "requests-per-second 3; observe-only #true;".to_owned(),
            LimitRemoved,
        ),
        (
            "\"client_ip\"",
            "\"header:X-Cilent\"".to_owned(),
            LimitRemoved,
        ),
        ("key \"client_ip\"", "burst 1".to_owned(), LimitTightened),
        (
            "request-secs 20",
            "request-secs 2".to_owned(),
            LimitTightened,
        ),
        ("header-secs 30", "header-ms 1".to_owned(), LimitTightened),
        (
            address,
            format!("{address}; max-requests-per-connection 1"),
            LimitTightened,
        ),
        (
            address,
            format!("{address}; max-concurrent-streams 1"),
            LimitTightened,
        ),
        (
            policies,
            with("shadow { upstream \"app\" }"),
            RequestsCopied,
        ),
        (
            "https://app.test",
            "https://ap.test".to_owned(),
            CrossOriginChanged,
        ),
        (" \"PUT\"", String::new(), CrossOriginChanged),
        (
            policies,
            with("cors { allow-origins \"*\" }"),
            CrossOriginChanged,
        ),
        (
            "\"X-Tenant\" \"a\"",
            "\"X-Tenant\" \"b\"".to_owned(),
            HeadersChanged,
        ),
        ("max-age=31536000", "max-age=0".to_owned(), HeadersChanged),
        (
            policies,
            with("response-headers { set \"Cache-Control\" \"public\" }"),
            HeadersChanged,
        ),
        (
            policies,
            with("request-headers { remove \"Cookie\" }"),
            HeadersChanged,
        ),
        (
            policies,
            with("request-headers { set \"host\" \"a.test\" }"),
            HeadersChanged,
        ),
        (
            "\"X-Tenant\"",
            "\"X-Tennant\"".to_owned(),
            HeaderEditRemoved,
        ),
        ("\"/healthz\"", "\"/health\"".to_owned(), HealthCheckChanged),
        (
            "timeout-secs 5",
            "timeout-secs 5; interval-secs 300".to_owned(),
            HealthCheckChanged,
        ),
        (
            "consecutive-failures 5",
            "consecutive-failures 1".to_owned(),
            HealthCheckChanged,
        ),
        ("weight 95", "weight 1".to_owned(), TargetsChanged),
        (
            "; target \"10.0.0.2:80\" { weight 5 }",
            String::new(),
            TargetsChanged,
        ),
        ("{ backup #true }", String::new(), TargetsChanged),
        ("\"weighted\"", "\"ip_hash\"".to_owned(), TargetsChanged),
        (
            "load-balancing \"weighted\"",
            "load-balancing \"weighted\"; protocol \"h2\"".to_owned(),
            TargetsChanged,
        ),
        (
            "User-agent: *",
            "User-agent: *\\nDisallow: /".to_owned(),
            AnswerChanged,
        ),
        (
            address,
            format!("{address}; proxy-protocol #true"),
            ListenerNarrowed,
        ),
        (tls, tls_with("min-version \"1.3\""), ListenerNarrowed),
        (tls, tls_with("alpn \"http/1.1\""), ListenerNarrowed),
        (
            tls,
            tls_with("client-auth { ca-file \"ca.pem\" }"),
            ListenerNarrowed,
        ),
        (
            "server-name \"b.test\"",
            "server-name \"b.tset\"".to_owned(),
            TlsWeakened,
        ),
    ];
    for (from, to, class) in cases {
        let found = found(from, &to);
        assert!(found.contains(&class), "{from} -> {to}: {found:?}");
        assert!(
            !found.contains(&RiskClass::Unlisted),
            "{from} -> {to}: {found:?}"
        );
    }
}

#[test]
fn changes_similar_to_risks_are_at_most_unlisted() {
    let policies = "compression { codings \"gzip\" }";
    let cases = [
        // 4 a second in place of 3.
        ("requests-per-second 3", "rate \"240/min\""),
        (
            "request-secs 20",
            "request-secs 30; read-secs 120; connect-secs 10",
        ),
        (
            policies,
            "compression { codings \"gzip\" }; max-body-size \"50MB\"",
        ),
        (
            policies,
            "compression { codings \"gzip\" }; rate-limit { requests-per-second 9; observe-only #true }",
        ),
        (
            policies,
            "compression { codings \"gzip\" }; response-headers { set \"X-Version\" \"2\" }",
        ),
        ("weight 5", "weight 6"),
        (
            "{ weight 5 }",
            "{ weight 5 }; target \"10.0.0.8:80\" { weight 95 }",
        ),
        ("target \"10.0.0.3:80\"", "target \"10.0.0.7:80\""),
        (
            "copy-headers \"X-User\"",
            "copy-headers \"X-Name\" \"X-User\"",
        ),
    ];
    for (from, to) in cases {
        assert_eq!(found(from, to), [RiskClass::Unlisted], "{from} -> {to}");
    }
    let renamed = BEFORE.replace("\"login\"", "\"sign-in\"");
    let risks = diff(BEFORE, &renamed).risks;
    let classes: Vec<RiskClass> = risks.iter().map(|risk| risk.class).collect();
    assert!(!classes.contains(&RiskClass::AgentRemoved), "{risks:?}");
    assert!(!classes.contains(&RiskClass::FewerGuards), "{risks:?}");
}

#[test]
fn a_route_of_another_name_does_not_hide_a_change() {
    let renamed = BEFORE.replacen("route \"api\"", "route \"interface\"", 1);
    let more_specific = BEFORE.replacen("routes {", "routes { route \"part\" { matches { path-prefix \"/api/v1\" }; upstream \"app\"; agents \"login\"; policies { rate-limit { requests-per-second 30000 }; request-headers { set \"X-Tenant\" \"a\" }; response-headers { set \"Strict-Transport-Security\" \"max-age=0\" }; cors { allow-origins \"*\" }; basic-auth { user \"guest\" \"$2y$04$abcdefghijklmnopqrstuu5Eib6dQmcaRkU2y9cEEtmnhcGHVBJfm\" } } }", 1);
    let cases = [
        (
            renamed.replace("user \"ann\"", "user \"guest\""),
            RiskClass::AccessWidened,
        ),
        (
            renamed.replace("requests-per-second 3;", "requests-per-second 30000;"),
            RiskClass::LimitRemoved,
        ),
        (
            renamed.replace("max-age=31536000", "max-age=0"),
            RiskClass::HeadersChanged,
        ),
        (
            renamed.replace("https://app.test", "*"),
            RiskClass::CrossOriginChanged,
        ),
        (
            renamed.replace("request-secs 20", "request-secs 2"),
            RiskClass::LimitTightened,
        ),
        (more_specific.clone(), RiskClass::AccessWidened),
        (more_specific.clone(), RiskClass::LimitRemoved),
        (more_specific, RiskClass::HeadersChanged),
    ];
    for (after, class) in cases {
        let found = classes(&diff(BEFORE, &after));
        assert!(found.contains(&class), "{class}: {found:?}\n{after}");
    }
    assert_eq!(classes(&diff(BEFORE, &renamed)), [RiskClass::Unlisted]);
}

#[test]
fn a_new_listener_with_less_access_control_is_a_risk() {
    let closed = BEFORE.replace(
        "protocol \"https\"",
        "protocol \"https\"; allow \"192.0.2.0/24\"",
    );
    let with = |more: &str| {
        closed.replacen(
            "listeners {",
            &format!("listeners {{ listener \"more\" {{ address \"0.0.0.0:80\"; {more} }}"),
            1,
        )
    };
    let class = |after: &str| classes(&diff(&closed, after));
    assert!(class(&with("")).contains(&RiskClass::AccessWidened));
    let trusting = "allow \"192.0.2.0/24\"; trusted-proxies \"0.0.0.0/0\"";
    assert!(class(&with(trusting)).contains(&RiskClass::AccessWidened));
    let equal = "allow \"192.0.2.0/24\"; trusted-proxies \"10.0.0.0/8\"";
    assert_eq!(class(&with(equal)), [RiskClass::Unlisted]);
}

#[test]
fn a_removed_test_is_a_risk() {
    let test = |name: &str, live: &str, route: &str| {
        format!(
            "test \"{name}\" {{ request \"GET\" \"https://a.test/api\"; {live}; expect {{ route \"{route}\" }} }}"
        )
    };
    let never = |path: &str| format!("never \"n\" {{ path-prefix \"{path}\"; upstream \"auth\" }}");
    let config = |tests: &str| format!("{BEFORE} tests {{ {tests} }}");
    let (plain, live) = (
        test("t", "listener \"main\"", "api"),
        test("t", "live #true", "api"),
    );
    let before = config(&format!("{plain}\n{}", never("/admin")));
    let class = |before: &str, after: &str| classes(&diff(before, after));
    let gone = [RiskClass::TestsRemoved];
    assert_eq!(class(&before, BEFORE), gone);
    assert_eq!(class(&before, &config(&never("/admin"))), gone);
    assert_eq!(
        class(&before, &config(&format!("{plain}\n{}", never("/adm")))),
        gone
    );
    assert_eq!(class(&config(&live), &config(&plain)), gone);
    let renamed = test("u", "listener \"main\"", "api");
    assert_eq!(
        class(&before, &config(&format!("{renamed}\n{}", never("/admin")))),
        []
    );
    assert_eq!(class(BEFORE, &before), []);
}

#[test]
fn fewer_repetitions_in_a_regex_move_requests() {
    let config = |digits: &str| {
        BEFORE.replace(
            "path-prefix \"/api\"",
            &format!("path-regex \"^/api/[0-9]{{1,{digits}}}$\""),
        )
    };
    let diff = diff(&config("8"), &config("4"));
    assert!(!diff.regions.is_empty(), "{diff:?}");
}

#[test]
fn a_file_has_the_class_of_the_setting_that_names_it() {
    let allow = BEFORE.replace(
        "protocol \"https\"",
        "protocol \"https\"; allow-file \"office.txt\"",
    );
    let plans = [crate::support::plan(&allow), crate::support::plan(&allow)];
    let models = [&**plans[0].model(), &**plans[1].model()];
    let class = |file: &str, renews: bool| {
        let mut diff = proxy_plan::PlanDiff::compare(&plans[0], &plans[1]);
        let file = ChangedFile {
            name: file.to_owned(),
            change: Change::Changed,
        };
        diff.judge_files(models, &[file], &|_, _| renews);
        classes(&diff)
    };
    assert_eq!(class("office.txt", false), [RiskClass::AccessWidened]);
    assert_eq!(class("a.pem", false), [RiskClass::TlsWeakened]);
    assert_eq!(class("a.pem", true), [RiskClass::Unlisted]);
    assert_eq!(class("other.txt", false), [RiskClass::Unlisted]);
}
