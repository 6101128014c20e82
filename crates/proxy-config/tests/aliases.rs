//! Every alias has the effect of our setting, with a warning, and a migration writes ours.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use proxy_config::reference::alias_places;
use proxy_config::{DiagnosticCode, Loaded, Severity, migrate, parse};
use proxy_model::{effective, registry};

/// An alias: its place, its text, and the equivalent in our settings. Both are written in the block
/// of the place.
struct Case(&'static str, &'static str, &'static str);

const CASES: &[Case] = &[
    Case(
        "schema-version",
        "schema-version \"1.0\"",
        "schema-version 1",
    ),
    Case(
        "system > max-connections",
        "system { max-connections 7 }",
        "limits { max-total-connections 7 }",
    ),
    Case(
        "server > max-connections",
        "server { worker-threads 2; max-connections 7 }",
        "system { worker-threads 2 }; limits { max-total-connections 7 }",
    ),
    Case(
        "system > workers",
        "system { workers 3 }",
        "system { worker-threads 3 }",
    ),
    Case(
        "server > workers",
        "server { workers 3 }",
        "server { worker-threads 3 }",
    ),
    Case(
        "system > graceful-shutdown-timeout",
        "system { graceful-shutdown-timeout \"2m\" }",
        "system { graceful-shutdown-timeout-secs 120 }",
    ),
    Case(
        "server > graceful-shutdown-timeout",
        "server graceful-shutdown-timeout=9",
        "server { graceful-shutdown-timeout-secs 9 }",
    ),
    Case("system > daemon", "system { daemon #false }", "system { }"),
    Case("server > daemon", "server { daemon #false }", "server { }"),
    Case("system > auto-reload", "system { auto-reload #false }", ""),
    Case(
        "server > auto-reload",
        "server { auto-reload \"false\" }",
        "",
    ),
    Case(
        "observability > metrics > enabled",
        "observability { metrics { enabled #true } }",
        "",
    ),
    Case(
        "observability > metrics > address",
        "observability { metrics { address \"0.0.0.0:9191\" } }",
        "admin { address \"127.0.0.1:9191\" }",
    ),
    Case(
        "observability > metrics > path",
        "observability { metrics { path \"/metrics\" } }",
        "",
    ),
    Case(
        "observability > metrics > high-cardinality",
        "observability { metrics { high-cardinality #false } }",
        "",
    ),
    Case(
        "observability > logging > error-log > level",
        "observability { logging { error-log { level \"warn\" } } }",
        "observability { error-log { level \"warn\" } }",
    ),
    Case(
        "observability > logging > error-log > file",
        "observability { logging { error-log { file \"/var/log/e.log\" } } }",
        "observability { error-log { path \"/var/log/e.log\" } }",
    ),
    Case(
        "observability > logging > error-log > enabled",
        "observability { logging { error-log { enabled #false } } }",
        "",
    ),
    Case(
        "observability > logging > access-log > enabled",
        "observability { logging { access-log { enabled \"false\" } } }",
        "observability { access-log { enabled #false } }",
    ),
    Case(
        "observability > logging > access-log > file",
        "observability { logging { access-log { file \"/var/log/a.log\" } } }",
        "observability { access-log { path \"/var/log/a.log\" } }",
    ),
    Case(
        "observability > logging > access-log > format",
        "observability { logging { access-log { format \"combined\" } } }",
        "observability { access-log { format \"combined\" } }",
    ),
    Case(
        "observability > logging > access-log > include-trace-id",
        "observability { logging { access-log { include-trace-id #true } } }",
        "",
    ),
    Case(
        "observability > logging > level",
        "observability { logging level=\"debug\" }",
        "observability { error-log { level \"debug\" } }",
    ),
    Case(
        "observability > logging > file",
        "observability { logging { file \"/var/log/e.log\" } }",
        "observability { error-log { path \"/var/log/e.log\" } }",
    ),
    Case(
        "observability > logging > format",
        "observability { logging { format \"json\" } }",
        "",
    ),
    Case(
        "observability > logging > timestamps",
        "observability { logging { timestamps #true } }",
        "",
    ),
    Case(
        "observability > tracing",
        "observability { tracing { enabled #false } }",
        "",
    ),
    Case(
        "filters",
        "filters { filter \"unused\" { type \"log\" } }",
        "",
    ),
    Case(
        "listeners > listener > request-timeout-secs",
        "request-timeout-secs 45",
        "timeouts { header-secs 45; body-idle-secs 45 }",
    ),
    Case(
        "listeners > listener > keepalive-timeout-secs",
        "keepalive-timeout-secs 20",
        "timeouts { keep-alive-secs 20 }",
    ),
    Case(
        "listeners > listener > keepalive-max-requests",
        "keepalive-max-requests 9",
        "max-requests-per-connection 9",
    ),
    Case(
        "listeners > listener > protocol",
        "protocol \"h2\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "listeners > listener > tls",
        "tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "listeners > listener > tls > cert-path",
        "protocol \"https\"; tls { cert-path \"c.pem\"; key-file \"k.pem\" }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "listeners > listener > tls > cert",
        "protocol \"https\"; tls { cert \"c.pem\"; key-file \"k.pem\" }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "listeners > listener > tls > key-path",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-path \"k.pem\" }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "listeners > listener > tls > key",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key \"k.pem\" }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "listeners > listener > tls > min-version",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\"; min-version \"TLS1.3\" }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\"; min-version \"1.3\" }",
    ),
    Case(
        "listeners > listener > tls > max-version",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\"; max-version \"TLSv1.2\" }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\"; max-version \"1.2\" }",
    ),
    Case(
        "listeners > listener > tls > client-auth",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\"; ca-file \"a.pem\"; client-auth #true }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\"; ca-file \"a.pem\"; client-auth \"required\" }",
    ),
    Case(
        "listeners > listener > tls > session-resumption",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\"; session-resumption #true }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "listeners > listener > tls > ocsp-stapling",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\"; ocsp-stapling #false }",
        "protocol \"https\"; tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "routes > route > builtin-handler",
        "builtin-handler \"health\"",
        "service-type \"builtin\"; builtin-handler \"health\"",
    ),
    Case(
        "routes > route > static-files",
        "static-files { root \"/srv\" }",
        "service-type \"static\"; static-files { root \"/srv\" }",
    ),
    Case(
        "routes > route > policies > failure-mode",
        "upstream \"up\"; agents \"waf\"; policies { failure-mode \"closed\" }",
        "upstream \"up\"; agents \"waf\"",
    ),
    Case(
        "routes > route > retry-policy > max-attempts",
        "upstream \"up\"; retry-policy { max-attempts 3 }",
        "upstream \"up\"; policies { retry { attempts 2 } }",
    ),
    Case(
        "routes > route > retry-policy > retryable-status-codes",
        "upstream \"up\"; policies { buffer-requests #true }; retry-policy { retryable-status-codes 502 504 }",
        "upstream \"up\"; policies { buffer-requests #true; retry { on \"connect-failure\" \"reset\" \"502\" \"504\" } }",
    ),
    Case(
        "routes > route > retry-policy > backoff",
        "upstream \"up\"; retry-policy { backoff \"100ms\" }",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > retry-policy > backoff-base-ms",
        "upstream \"up\"; retry-policy { backoff-base-ms 100 }",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > retry-policy > backoff-max-ms",
        "upstream \"up\"; retry-policy { backoff-max-ms 100 }",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > retry-policy > backoff-multiplier",
        "upstream \"up\"; retry-policy { backoff-multiplier 2.0 }",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > retry-policy > max-backoff",
        "upstream \"up\"; retry-policy { max-backoff \"2s\" }",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > retry-policy > retry-non-idempotent",
        "upstream \"up\"; retry-policy { retry-non-idempotent #false }",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > retry-policy > per-attempt-timeout",
        "upstream \"up\"; retry-policy { per-attempt-timeout \"1500ms\" }",
        "upstream \"up\"; policies { timeouts { connect-ms 1500 } }",
    ),
    Case(
        "routes > route > policies > rewrite-path",
        "upstream \"up\"; policies { rewrite-path \"/index.html\" }",
        "upstream \"up\"; policies { rewrite { path \"/index.html\" } }",
    ),
    Case(
        "routes > route > websocket",
        "upstream \"up\"; websocket #true",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > websocket > enabled",
        "upstream \"up\"; websocket { enabled #true }",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > websocket-inspection",
        "upstream \"up\"; websocket-inspection #false",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > waf-enabled",
        "upstream \"up\"; waf-enabled #false",
        "upstream \"up\"",
    ),
    Case(
        "routes > route > shadow > percentage",
        "upstream \"up\"; shadow { upstream \"other\"; percentage \"12.5\" }",
        "upstream \"up\"; shadow { upstream \"other\"; percent 12.5 }",
    ),
    Case(
        "routes > route > shadow > buffer-body",
        "upstream \"up\"; shadow { upstream \"other\"; buffer-body #true }",
        "upstream \"up\"; shadow { upstream \"other\" }",
    ),
    Case(
        "routes > route > static-files > compress",
        "service-type \"static\"; static-files { root \"/srv\"; compress #true }",
        "service-type \"static\"; static-files { root \"/srv\" }; policies { compression }",
    ),
    Case(
        "routes > route > static-files > cache-control",
        "service-type \"static\"; static-files { root \"/srv\"; cache-control \"max-age=9\" }",
        "service-type \"static\"; static-files { root \"/srv\" }; policies { response-headers { set \"Cache-Control\" \"max-age=9\" } }",
    ),
    Case(
        "routes > route > static-files > directory-listing",
        "service-type \"static\"; static-files { root \"/srv\"; directory-listing #false }",
        "service-type \"static\"; static-files { root \"/srv\" }",
    ),
    Case(
        "upstreams > upstream > load-balancing",
        "load-balancing \"p2c\"",
        "load-balancing \"random_two\"",
    ),
    Case(
        "upstreams > upstream > timeouts > connect",
        "timeouts { connect 3 }",
        "timeouts { connect-secs 3 }",
    ),
    Case(
        "upstreams > upstream > timeouts > request",
        "timeouts { request \"30s\" }",
        "timeouts { request-secs 30 }",
    ),
    Case(
        "upstreams > upstream > timeouts > read",
        "timeouts { read 9 }",
        "timeouts { read-secs 9 }",
    ),
    Case(
        "upstreams > upstream > timeouts > write-secs",
        "timeouts { read-secs 9; write-secs 9 }",
        "timeouts { read-secs 9 }",
    ),
    Case(
        "upstreams > upstream > timeouts > write",
        "timeouts { read 9; write 9 }",
        "timeouts { read-secs 9 }",
    ),
    Case(
        "upstreams > upstream > connection-pool > idle-timeout",
        "connection-pool { idle-timeout 40 }",
        "connection-pool { idle-timeout-secs 40 }",
    ),
    Case(
        "upstreams > upstream > connection-pool > max-lifetime",
        "connection-pool { max-lifetime 400 }",
        "connection-pool { max-lifetime-secs 400 }",
    ),
    Case(
        "upstreams > upstream > connection-pool > max-idle-connections",
        "connection-pool { max-idle-connections 4 }",
        "connection-pool { max-idle 4 }",
    ),
    Case(
        "upstreams > upstream > tls > client-cert",
        "tls { client-cert \"c.pem\"; key-file \"k.pem\" }",
        "tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "upstreams > upstream > tls > client-key",
        "tls { cert-file \"c.pem\"; client-key \"k.pem\" }",
        "tls { cert-file \"c.pem\"; key-file \"k.pem\" }",
    ),
    Case(
        "upstreams > upstream > tls > ca-cert",
        "tls { ca-cert \"a.pem\" }",
        "tls { ca-file \"a.pem\" }",
    ),
    Case(
        "upstreams > upstream > tls > insecure-skip-verify",
        "tls { insecure-skip-verify #false }",
        "tls { }",
    ),
    Case(
        "upstreams > upstream > tls > verify-peer",
        "tls { verify-peer #true }",
        "tls { verify #true }",
    ),
    Case(
        "upstreams > upstream > tls > enabled",
        "tls { enabled #true }",
        "tls { }",
    ),
    Case("agents > agent > type", "type \"auth\"", ""),
    Case(
        "agents > agent > circuit-breaker > success-threshold",
        "circuit-breaker { failure-threshold 3; success-threshold 1 }",
        "circuit-breaker { failure-threshold 3 }",
    ),
    Case(
        "agents > agent > circuit-breaker > half-open-max-requests",
        "circuit-breaker { half-open-max-requests 1 }",
        "circuit-breaker { }",
    ),
];

/// Values that have no counterpart, though other values of the setting have one.
const REFUSED: &[(&str, &str)] = &[
    ("", "system { daemon #true }"),
    ("", "system { auto-reload #true }"),
    ("", "observability { metrics { enabled #false } }"),
    ("", "observability { metrics { path \"/prometheus\" } }"),
    ("", "observability { logging { format \"pretty\" } }"),
    (
        "",
        "observability { logging { level \"info\"; error-log { level \"warn\" } } }",
    ),
    ("", "observability { logging { rotate 5 } }"),
    ("", "observability { tracing { enabled #true } }"),
    ("listeners > listener", "protocol \"h3\""),
    (
        "listeners > listener",
        "protocol \"https\"; tls { cert-file \"c\"; key-file \"k\"; min-version \"1.0\" }",
    ),
    (
        "listeners > listener",
        "protocol \"https\"; tls { cert-file \"c\"; key-file \"k\"; ocsp-stapling #true }",
    ),
    (
        "listeners > listener",
        "protocol \"https\"; tls { cert-file \"c\"; key-file \"k\"; session-resumption #false }",
    ),
    (
        "routes > route",
        "upstream \"up\"; agents \"waf\"; policies { failure-mode \"open\" }",
    ),
    (
        "routes > route",
        "upstream \"up\"; retry-policy { max-attempts 0 }",
    ),
    (
        "routes > route",
        "upstream \"up\"; retry-policy { retryable-status-codes 500 }",
    ),
    (
        "routes > route",
        "upstream \"up\"; retry-policy { retry-non-idempotent #true }",
    ),
    (
        "routes > route",
        "upstream \"up\"; retry-policy { jitter #true }",
    ),
    ("routes > route", "upstream \"up\"; websocket #false"),
    ("routes > route", "upstream \"up\"; waf-enabled #true"),
    ("routes > route", "upstream \"up\"; filters \"missing\""),
    (
        "routes > route",
        "service-type \"static\"; static-files { root \"/srv\"; directory-listing #true }",
    ),
    ("upstreams > upstream", "load-balancing \"random\""),
    ("upstreams > upstream", "load-balancing \"maglev\""),
    (
        "upstreams > upstream",
        "timeouts { read-secs 9; write-secs 8 }",
    ),
    ("upstreams > upstream", "timeouts { connect \"250ms\" }"),
    ("upstreams > upstream", "tls { insecure-skip-verify #true }"),
    ("agents > agent", "circuit-breaker { success-threshold 2 }"),
];

/// A configuration with a snippet in the block at `place`.
fn configuration(block: &str, snippet: &str) -> String {
    let within = |name: &str| if block == name { snippet } else { "" };
    let has_service = block == "routes > route";
    let route = if has_service {
        snippet
    } else {
        "upstream \"up\""
    };
    format!(
        "{}\nlisteners {{ listener \"http\" {{ address \"127.0.0.1:8080\"; {} }} }}\n\
         routes {{\n  route \"a\" {{ {route} }}\n  route \"b\" {{ matches {{ path \"/b\" }}; upstream \"other\"; agents \"waf\" }}\n}}\n\
         upstreams {{\n  upstream \"up\" {{ target \"127.0.0.1:9000\"; {} }}\n\
         upstream \"other\" {{ target \"127.0.0.1:9001\" }}\n}}\n\
         agents {{ agent \"waf\" {{ unix-socket \"/run/waf.sock\"; failure-mode \"closed\"; {} }} }}\n",
        within(""),
        within("listeners > listener"),
        within("upstreams > upstream"),
        within("agents > agent"),
    )
}

const BLOCKS: &[&str] = &[
    "listeners > listener",
    "routes > route",
    "upstreams > upstream",
    "agents > agent",
];

fn block(place: &str) -> &'static str {
    let mut blocks = BLOCKS.iter();
    let found = blocks.find(|block| {
        place
            .strip_prefix(**block)
            .is_some_and(|rest| rest.starts_with(" > "))
    });
    found.copied().unwrap_or_default()
}

fn values(loaded: &Loaded) -> Vec<String> {
    let settings = effective(&loaded.model).into_iter();
    let mut values: Vec<String> = settings
        .map(|setting| format!("{} = {}", setting.path, setting.value))
        .collect();
    values.sort();
    values
}

fn aliases(loaded: &Loaded) -> usize {
    let warnings = loaded.warnings.faults().iter();
    warnings
        .filter(|fault| fault.code == DiagnosticCode::Alias)
        .count()
}

fn loaded(text: &str) -> Loaded {
    parse(text, "x.kdl").unwrap_or_else(|report| panic!("{text}\n{report}"))
}

#[test]
fn an_alias_has_the_effect_of_the_setting_here() {
    for Case(place, there, here) in CASES {
        let (there, here) = (
            configuration(block(place), there),
            configuration(block(place), here),
        );
        let (alias, ours) = (loaded(&there), loaded(&here));
        assert!(aliases(&alias) > 0, "no warning\n{there}");
        assert_eq!(aliases(&ours), 0, "{}", ours.warnings);
        assert_eq!(values(&alias), values(&ours), "{there}");
        let warnings = alias.warnings.faults().iter();
        let name = place.rsplit(" > ").next().unwrap();
        let mut named = warnings.filter(|fault| fault.message.contains(&format!("`{name}`")));
        let warning = named
            .next()
            .unwrap_or_else(|| panic!("{place}: {}", alias.warnings));
        assert!(
            warning.help.as_ref().unwrap().contains("`config migrate`"),
            "{warning:?}"
        );
    }
}

#[test]
fn a_migration_writes_our_settings() {
    for Case(place, there, _) in CASES {
        let there = configuration(block(place), there);
        let migrated = migrate(&there, "x.kdl").unwrap();
        let ours = loaded(&migrated.text);
        assert_eq!(aliases(&ours), 0, "{}\n{}", migrated.text, ours.warnings);
        assert_eq!(values(&ours), values(&loaded(&there)), "{}", migrated.text);
        assert!(!migrated.notes.is_empty(), "{place}");
        let again = migrate(&migrated.text, "x.kdl").unwrap();
        assert_eq!(again.text, migrated.text);
        assert_eq!(again.notes, [""; 0]);
    }
}

/// Checks that a setting without a counterpart is reported once, and by no other fault.
fn is_refused(block: &str, snippet: &str) {
    let text = configuration(block, snippet);
    let Err(report) = parse(&text, "x.kdl") else {
        panic!("{text} was loaded");
    };
    let errors = report.faults().iter();
    let errors = errors.filter(|fault| fault.severity() == Severity::Error);
    let codes: Vec<DiagnosticCode> = errors.map(|fault| fault.code).collect();
    assert_eq!(codes, [DiagnosticCode::NoCounterpart], "{text}\n{report}");
    assert!(
        report.faults().iter().all(|fault| fault.help.is_some()),
        "{report}"
    );
    let migrated = migrate(&text, "x.kdl").unwrap();
    assert!(
        migrated
            .notes
            .iter()
            .any(|note| note.contains("has no counterpart")),
        "{:?}",
        migrated.notes
    );
}

#[test]
fn a_value_without_a_counterpart_is_one_fault() {
    for (block, snippet) in REFUSED {
        is_refused(block, snippet);
    }
}

#[test]
fn every_alias_has_a_case_or_is_a_fault() {
    for place in alias_places() {
        if CASES.iter().any(|Case(case, ..)| *case == place)
            || EXAMPLES_ELSEWHERE.contains(&&*place)
        {
            continue;
        }
        let block = block(&place);
        let path = place.strip_prefix(block).unwrap().trim_start_matches(" > ");
        let depth = path.matches(" > ").count();
        let setting = format!("{} 1{}", path.replace(" > ", " { "), " }".repeat(depth));
        let snippet = match block {
            "routes > route" if path.starts_with("static-files") => {
                format!(
                    "service-type \"static\"; {}",
                    setting.replace("{ ", "{ root \"/srv\"; ")
                )
            }
            "routes > route" => {
                format!(
                    "upstream \"up\"; {}",
                    setting.replace("shadow { ", "shadow { upstream \"other\"; ")
                )
            }
            "listeners > listener" if path.starts_with("tls") => format!(
                "protocol \"https\"; {}",
                setting.replace("{ ", "{ cert-file \"c.pem\"; key-file \"k.pem\"; ")
            ),
            _ => setting,
        };
        is_refused(block, &snippet);
    }
}

/// Settings with values that other tests try.
const EXAMPLES_ELSEWHERE: &[&str] = &["routes > route > filters", "routes > route > service-type"];

#[test]
fn filters_are_policies_and_agents_of_their_routes() {
    let filters = "filters {\n\
        filter \"limit\" { type \"rate-limit\"; max-rps 5; key \"client-ip\"; on-limit \"reject\"; backend \"local\" }\n\
        filter \"pack\" { type \"compress\"; algorithms \"gzip,br\"; min-size 99 }\n\
        filter \"ask\" { type \"agent\"; agent \"waf\"; failure-mode \"closed\" }\n\
        filter \"pages\" { type \"cors\"; allowed-origins \"https://a.test\"; allowed-methods \"GET\" }\n\
        filter \"fields\" { type \"headers\"; phase \"response\"; set { X-A \"b\" }; remove \"Server\" }\n\
        filter \"time\" { type \"timeout\"; request-timeout-secs 9 }\n\
    }\n";
    let ours = "agents \"waf\"; policies { \
        rate-limit { requests-per-second 5; burst 10; key \"client_ip\" }; \
        compression { codings \"gzip\" \"br\"; min-size 99 }; \
        cors { allow-origins \"https://a.test\"; allow-methods \"GET\" }; \
        response-headers { set \"X-A\" \"b\"; remove \"Server\" }; \
        timeouts { request-secs 9 } }";
    let names = "filters \"limit\" \"pack\" \"ask\" \"pages\" \"fields\" \"time\"";
    let there = configuration("routes > route", &format!("upstream \"up\"; {names}")) + filters;
    let here = configuration("routes > route", &format!("upstream \"up\"; {ours}"));
    assert_eq!(values(&loaded(&there)), values(&loaded(&here)));
    let migrated = migrate(&there, "x.kdl").unwrap();
    assert!(!migrated.text.contains("filter"), "{}", migrated.text);
    assert_eq!(
        values(&loaded(&migrated.text)),
        values(&loaded(&here)),
        "{}",
        migrated.text
    );
}

#[test]
fn a_filter_that_a_policy_cannot_express_is_a_fault() {
    for filter in [
        "type \"rate-limit\"; max-rps 5; on-limit \"delay\"",
        "type \"rate-limit\"; max-rps 5; key \"client-ip-and-path\"",
        "type \"rate-limit\"; max-rps 5; backend \"memcached\"",
        "type \"rate-limit\"; max-rps 5; message \"slow down\"",
        "type \"agent\"; agent \"waf\"; failure-mode \"open\"",
        "type \"agent\"; agent \"waf\"; inspect-body #true",
        "type \"agent\"; agent \"none\"",
        "type \"compress\"; algorithms \"deflate\"",
        "type \"cors\"",
        "type \"geo\"; database-path \"/x\"",
    ] {
        let filters = format!("filters {{ filter \"it\" {{ {filter} }} }}");
        let text = configuration("routes > route", "upstream \"up\"; filters \"it\"") + &filters;
        let report = parse(&text, "x.kdl").unwrap_err();
        let errors = report.faults().iter();
        let errors: Vec<_> = errors
            .filter(|fault| fault.severity() == Severity::Error)
            .collect();
        assert!(
            matches!(*errors, [fault] if fault.code == DiagnosticCode::NoCounterpart),
            "{report}"
        );
    }
}

#[test]
fn a_setting_written_both_ways_is_one_setting_if_the_values_agree() {
    let both = "system { max-connections 9 }; limits { max-total-connections 9 }";
    assert_eq!(aliases(&loaded(&configuration("", both))), 1);
    let unequal = "system { max-connections 9 }; limits { max-total-connections 8 }";
    let report = parse(&configuration("", unequal), "x.kdl").unwrap_err();
    let mut faults = report.faults().iter();
    assert!(
        faults.any(|fault| fault.code == DiagnosticCode::RepeatedSetting),
        "{report}"
    );
}

#[test]
fn a_setting_written_both_ways_may_have_another_form() {
    for (place, both, ours) in [
        (
            "listeners > listener",
            "keepalive-timeout-secs 6; timeouts { keep-alive-ms 6000 }",
            "timeouts { keep-alive-ms 6000 }",
        ),
        (
            "listeners > listener",
            "request-timeout-secs 5; timeouts { body-idle-secs 5 }",
            "timeouts { header-secs 5; body-idle-secs 5 }",
        ),
        (
            "routes > route",
            "upstream \"up\"; retry { attempts 2 }; retry-policy { max-attempts 3 }",
            "upstream \"up\"; retry { attempts 2 }",
        ),
    ] {
        let there = loaded(&configuration(place, both));
        let here = loaded(&configuration(place, ours));
        assert_eq!(values(&there), values(&here), "{both}");
    }
}

#[test]
fn a_metrics_address_changes_no_access_to_the_admin_interface() {
    let metrics = "observability { metrics { address \"127.0.0.1:9191\" } }";
    for admin in [
        "address \"127.0.0.1:9090\"",
        "address \"off\"",
        "unix-socket \"/run/admin.sock\"",
    ] {
        let text = configuration("", &format!("{metrics}; admin {{ {admin} }}"));
        let report = parse(&text, "x.kdl").unwrap_err();
        let mut faults = report.faults().iter();
        assert!(
            faults.any(|fault| fault.code == DiagnosticCode::NoCounterpart),
            "{admin}: {report}"
        );
    }
    let same = format!("{metrics}; admin {{ address \"127.0.0.1:9191\" }}");
    assert!(parse(&configuration("", &same), "x.kdl").is_ok());
}

#[test]
fn a_setting_of_the_registry_is_not_an_alias() {
    let values = [
        "schema-version",
        "listeners > listener > protocol",
        "listeners > listener > tls",
        "listeners > listener > tls > min-version",
        "listeners > listener > tls > max-version",
        "listeners > listener > tls > client-auth",
        "routes > route > builtin-handler",
        "routes > route > static-files",
        "routes > route > service-type",
        "upstreams > upstream > load-balancing",
    ];
    let settings = registry::all();
    let mut places = alias_places();
    places.retain(|place| !values.contains(&&**place));
    for place in places {
        let path = place.replace(" > ", ".");
        assert!(
            settings.iter().all(|setting| setting.path != path),
            "{place}"
        );
    }
}
