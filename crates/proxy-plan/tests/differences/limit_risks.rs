//! Changes of limits, targets and lists with a class, each next to a similar one without.

use crate::support::{classes, compiled, diff};
use proxy_config::Files;
use proxy_plan::PlanDiff;
use proxy_plan::diff::{Change, ChangedFile, RiskClass};

const BEFORE: &str = r#"
listeners {
    listener "main" { address "127.0.0.1:80" }
    listener "db" { address "127.0.0.1:5432"; protocol "tcp" }
}
limits { max-header-size-bytes 16000 }
upstreams {
    upstream "app" { target "10.0.0.1:80"; timeouts { request-secs 40 } }
    upstream "trial" {
        load-balancing "weighted"
        targets { target "10.0.1.1:80" { weight 95 }; target "10.0.1.2:80" { weight 5 } }
    }
    upstream "twin" { target "10.0.1.1:80"; target "10.0.1.3:80" }
    upstream "db" { target "10.0.2.1:5432" }
    upstream "auth" { target "10.0.3.1:80" }
}
agents {
    agent "login" { upstream "auth"; protocol "forward-auth"; failure-mode "closed" }
}
routes {
    route "api" {
        matches { path-prefix "/api" }
        upstream "app"
        agents "login"
        circuit-breaker { failure-threshold 6; timeout-seconds 10 }
        policies {
            max-body-size "1MB"
            allow "10.0.0.0/8"
            deny "10.9.0.0/16"
            rate-limit { requests-per-second 3; burst 6 }
            retry { attempts 1; budget-percent 20 }
            cors { allow-origins "https://app.test"; allow-methods "GET" "PUT" }
            jwt { issuer "https://id.test"; audience "api"; jwks-url "http://id.test/keys"; jwks-upstream "auth" }
        }
    }
    route "trial" { matches { path-prefix "/trial" }; upstream "trial"; policies { allow "10.0.0.0/8" } }
    route "twin" { matches { path-prefix "/twin" }; upstream "twin" }
    route "db" { listeners "db"; upstream "db" }
    route "site" { upstream "app" }
}
tests { never "strangers" { upstream "app"; path-prefix "/api"; without-agent "login" } }
"#;

fn found(from: &str, to: &str) -> Vec<RiskClass> {
    assert!(BEFORE.contains(from), "{from}");
    classes(&diff(BEFORE, &BEFORE.replacen(from, to, 1)))
}

#[test]
fn a_limit_that_refuses_requests_is_tightened() {
    use RiskClass::{LimitRemoved, LimitTightened};
    let breaker = "circuit-breaker { failure-threshold 6; timeout-seconds 10 }";
    let cases = [
        (
            "requests-per-second 3; burst 6",
            "requests-per-second 1; burst 6",
            LimitTightened,
        ),
        ("burst 6", "burst 3", LimitTightened),
        (
            "burst 6",
            "burst 6; store \"redis://127.0.0.1:6379\"",
            LimitTightened,
        ),
        ("\"1MB\"", "\"500KB\"", LimitTightened),
        ("16000", "8000", LimitTightened),
        ("request-secs 40", "request-secs 10", LimitTightened),
        ("failure-threshold 6", "failure-threshold 1", LimitTightened),
        ("timeout-seconds 10", "timeout-seconds 40", LimitTightened),
        (breaker, "", LimitRemoved),
        ("budget-percent 20", "budget-percent 100", LimitRemoved),
        ("burst 6", "burst 6000", LimitRemoved),
        (
            "requests-per-second 3",
            "requests-per-second 60",
            LimitRemoved,
        ),
        (
            "failure-mode \"closed\"",
            "failure-mode \"closed\"; circuit-breaker { failure-threshold 1; timeout-seconds 30 }",
            LimitTightened,
        ),
        (
            "target \"10.0.0.1:80\"",
            "target \"10.0.0.1:80\"; connection-pool { max-idle 0 }",
            LimitTightened,
        ),
        (
            "limits {",
            "system { graceful-shutdown-timeout-secs 0 }\nlimits {",
            LimitTightened,
        ),
    ];
    for (from, to, class) in cases {
        let found = found(from, to);
        assert!(found.contains(&class), "{from} -> {to}: {found:?}");
    }
    for (from, to) in [
        (
            "requests-per-second 3; burst 6",
            "requests-per-second 2; burst 6",
        ),
        ("requests-per-second 3; burst 6", "rate \"240/min\""),
        ("\"1MB\"", "\"600KB\""),
        ("request-secs 40", "request-secs 20"),
        ("failure-threshold 6", "failure-threshold 12"),
        ("timeout-seconds 10", "timeout-seconds 5"),
        ("budget-percent 20", "budget-percent 30"),
        (
            "failure-mode \"closed\"",
            "failure-mode \"closed\"; circuit-breaker { failure-threshold 5; timeout-seconds 30 }",
        ),
        (
            "target \"10.0.0.1:80\"",
            "target \"10.0.0.1:80\"; connection-pool { max-idle 200 }",
        ),
    ] {
        assert_eq!(found(from, to), [RiskClass::Unlisted], "{from} -> {to}");
    }
}

#[test]
fn targets_of_relays_and_of_other_upstreams_have_a_class_and_new_ones_do_not() {
    let moved = RiskClass::TargetsChanged;
    let cases = [
        // No status shows a wrong server behind a relay.
        ("10.0.2.1:5432", "10.0.2.9:5432", moved),
        // No former target is left.
        ("target \"10.0.0.1:80\"", "target \"10.0.0.9:80\"", moved),
        // A target of the login server.
        ("target \"10.0.0.1:80\"", "target \"10.0.3.1:80\"", moved),
        (
            "target \"10.0.0.1:80\"",
            "target \"10.0.0.1:80\"; tls",
            moved,
        ),
        (
            "weight 95 }; target \"10.0.1.2:80\" { weight 5 }",
            "weight 80 }; target \"10.0.1.2:80\" { weight 20 }",
            moved,
        ),
    ];
    for (from, to, class) in cases {
        let found = found(from, to);
        assert!(found.contains(&class), "{from} -> {to}: {found:?}");
    }
    for (from, to) in [
        (
            "10.0.2.1:5432\"",
            "10.0.2.1:5432\"; target \"10.0.2.9:5432\"",
        ),
        // Both upstreams have the target 10.0.1.1: they are one service.
        (
            "target \"10.0.1.2:80\" { weight 5 }",
            "target \"10.0.1.2:80\" { weight 5 }; target \"10.0.1.3:80\" { weight 5 }",
        ),
        (
            "weight 95 }; target \"10.0.1.2:80\" { weight 5 }",
            "weight 90 }; target \"10.0.1.2:80\" { weight 10 }",
        ),
        // Each node probes its targets first.
        (
            "target \"10.0.0.1:80\"",
            "target \"10.0.0.1:80\"; health-check { type \"http\" { path \"/ok\" } }",
        ),
    ] {
        assert_eq!(found(from, to), [RiskClass::Unlisted], "{from} -> {to}");
    }
}

#[test]
fn more_of_a_list_has_no_class_and_less_has_one() {
    let (wider, refused) = (RiskClass::AccessWidened, RiskClass::RequestsRefused);
    let cases = [
        ("deny \"10.9.0.0/16\"", "deny \"10.9.0.0/17\"", wider),
        ("deny \"10.9.0.0/16\"", "deny \"10.8.0.0/15\"", refused),
        (
            "audience \"api\"",
            "audience \"api\"; header \"X-Token\"",
            refused,
        ),
        (
            "\"https://app.test\"",
            "\"https://app.test\" \"https://*.test\"",
            RiskClass::CrossOriginChanged,
        ),
        (
            "\"https://app.test\"",
            "\"https://other.test\"",
            RiskClass::CrossOriginChanged,
        ),
        (
            "cors {",
            "request-headers { remove \"Range\" }; cors {",
            RiskClass::HeadersChanged,
        ),
        (
            "cors {",
            "response-headers { remove \"X-Content-Type-Options\" }; cors {",
            RiskClass::HeadersChanged,
        ),
    ];
    for (from, to, class) in cases {
        let found = found(from, to);
        assert!(found.contains(&class), "{from} -> {to}: {found:?}");
    }
    for (from, to) in [
        (
            "allow \"10.0.0.0/8\"\n",
            "allow \"10.0.0.0/9\" \"10.128.0.0/9\"\n",
        ),
        (
            "\"https://app.test\"",
            "\"https://app.test\" \"https://app2.test\"",
        ),
        ("\"GET\" \"PUT\"", "\"GET\" \"PUT\" \"PATCH\""),
        (
            "cors {",
            "response-headers { set \"X-Content-Type-Options\" \"nosniff\" }; cors {",
        ),
    ] {
        assert_eq!(found(from, to), [RiskClass::Unlisted], "{from} -> {to}");
    }
    let renamed = BEFORE.replace("\"login\"", "\"sign-in\"");
    let found = classes(&diff(BEFORE, &renamed));
    assert!(!found.contains(&RiskClass::TestsRemoved), "{found:?}");
}

#[test]
fn networks_of_a_file_are_compared_like_inline_ones() {
    let classes_of = |before: (&str, &str), after: (&str, &str)| {
        let [old, new] = [before, after].map(|(setting, networks)| {
            let text = format!(
                "listeners {{ listener \"main\" {{ address \"127.0.0.1:80\" }} }}\n\
                 upstreams {{ upstream \"u\" {{ target \"10.0.0.1:80\" }} }}\n\
                 routes {{ route \"office\" {{ upstream \"u\"; policies {{ {setting} }} }} }}\n"
            );
            let files = [("proxy.kdl", text.as_str()), ("office.txt", networks)];
            let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
            let loaded = proxy_config::load_from(Files::Memory(&files.into()), "proxy.kdl");
            compiled(loaded.unwrap_or_else(|report| panic!("{report}")).model)
        });
        let mut diff = PlanDiff::compare(&old, &new);
        if before.0 == after.0 {
            let file = ChangedFile {
                name: "office.txt".to_owned(),
                change: Change::Changed,
            };
            diff.judge_files([old.model(), new.model()], &[file], &|_, _| false);
        }
        classes(&diff)
    };
    let file = "allow-file \"office.txt\"";
    let one = (file, "203.0.113.0/24\n");
    let unlisted = [RiskClass::Unlisted];
    assert_eq!(
        classes_of(one, (file, "# office\n203.0.113.0/24\n")),
        unlisted
    );
    assert_eq!(classes_of(one, ("allow \"203.0.113.0/24\"", "")), unlisted);
    let wider = [RiskClass::AccessWidened, RiskClass::Unlisted];
    assert_eq!(
        classes_of(one, (file, "203.0.113.0/24\n0.0.0.0/0\n")),
        wider
    );
    let other = classes_of(one, (file, "203.0.114.0/24\n"));
    assert!(other.contains(&RiskClass::RequestsRefused), "{other:?}");
    let deny = ("deny-file \"office.txt\"", "192.0.2.0/24\n");
    let refused = [RiskClass::RequestsRefused, RiskClass::Unlisted];
    assert_eq!(
        classes_of(deny, (deny.0, "192.0.2.0/24\n198.51.0.0/16\n")),
        refused
    );
    // A single address may be an attacker's.
    assert_eq!(
        classes_of(deny, (deny.0, "192.0.2.0/24\n198.51.100.7\n")),
        unlisted
    );
}
