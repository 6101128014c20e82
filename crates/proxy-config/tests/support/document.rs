//! The smallest configuration that contains a given setting.

use proxy_model::registry::{self, Presence, SettingSpec, Shape};

/// A configuration with `value` written for the setting at `path`.
pub(crate) fn with(path: &str, value: &str) -> String {
    let mut parts = path.split('.').collect::<Vec<_>>();
    let name = parts.pop().unwrap();
    let mut text = format!("{name} {value}");
    let mut within = Vec::new();
    for depth in (1..=parts.len()).rev() {
        let block = parts
            .iter()
            .take(depth)
            .copied()
            .collect::<Vec<_>>()
            .join(".");
        within.push(block);
    }
    for block in within {
        let inner = text;
        let own = block.rsplit('.').next().unwrap();
        let beside = beside(&block, &inner);
        text = format!("{own} {}{{\n{inner}\n{beside}}}", title(&block, &inner));
    }
    let upstream = "upstreams { upstream \"other\" { target \"127.0.0.1:9999\" }
        upstream \"secure\" { target \"127.0.0.1:9998\"; tls } }";
    let route = "routes { route \"other\" { upstream \"other\" } }";
    let listener = if path == "routes.route.listeners" {
        "listeners { listener \"http\" { address \"127.0.0.1:8080\" } }\n"
    } else if path.starts_with("listeners.listener.tls.acme") {
        "listeners { listener \"http\" { address \"127.0.0.1:80\" } }\n"
    } else {
        ""
    };
    let agent = "agents { agent \"waf\" { unix-socket \"/run/x.sock\"; failure-mode \"open\" } }";
    format!("{text}\n{listener}{upstream}\n{route}\n{agent}\n")
}

/// Sample values of a setting, as written. `None` for blocks and pairs.
pub(crate) fn sample(spec: &SettingSpec) -> Option<String> {
    match &spec.shape {
        Shape::Flag => Some("#true".to_owned()),
        Shape::Integer { greatest, .. } => Some(greatest.to_string()),
        Shape::Decimal { greatest, .. } => Some(format!("{greatest:?}")),
        Shape::Size { greatest, .. } => Some(greatest.to_string()),
        Shape::Time { greatest_ms, .. } => Some(in_unit(spec, *greatest_ms)),
        Shape::Choice(words) => words.iter().last().map(|word| format!("{:?}", word.name)),
        Shape::Text { example, .. } => Some(format!("{example:?}")),
        Shape::Pair { .. } | Shape::Block { .. } => None,
    }
}

/// Milliseconds in the unit of a setting's name.
pub(crate) fn in_unit(spec: &SettingSpec, millis: u64) -> String {
    let per = if spec.name().ends_with("-ms") {
        1
    } else {
        1_000
    };
    millis.div_ceil(per).to_string()
}

fn title(block: &str, inner: &str) -> &'static str {
    match block {
        "upstreams.upstream.health-check.type" if inner.starts_with("service ") => "\"grpc\" ",
        "upstreams.upstream.health-check.type"
            if inner.starts_with("endpoint ") || inner.starts_with("expected-models ") =>
        {
            "\"inference\" "
        }
        "upstreams.upstream.health-check.type" => "\"http\" ",
        "agents.agent.transport" => "\"unix_socket\" ",
        "agents.agent.unix-socket"
        | "upstreams.upstream.targets.target"
        | "routes.route.redirect"
        | "routes.route.respond"
        | "listeners.listener.error-pages.page"
        | "routes.route.policies.error-pages.page" => "",
        block if matches!(spec(block).shape, Shape::Block { argument: Some(_) }) => "\"x\" ",
        _ => "",
    }
}

/// The settings required by a block in addition to `inner`.
fn beside(block: &str, inner: &str) -> String {
    let needs: &[&str] = match block {
        "upstreams.upstream.health-check" if inner.starts_with("timeout-") => {
            &["interval-secs 3600"]
        }
        block if block.starts_with("routes.route") => beside_of_route(block, inner),
        // A backup target requires another target.
        "upstreams.upstream" if inner.contains("backup #true") => &["target \"127.0.0.1:9000\""],
        "upstreams.upstream" if inner.starts_with("target") => &[],
        "upstreams.upstream" if inner.starts_with("sticky ") => {
            &["load-balancing \"sticky\"", "target \"127.0.0.1:9000\""]
        }
        "upstreams.upstream" => &["target \"127.0.0.1:9000\""],
        "agents.agent" if inner.starts_with("transport") => &["failure-mode \"open\""],
        "agents.agent" if inner.starts_with("upstream ") => {
            &["protocol \"forward-auth\"", "failure-mode \"open\""]
        }
        "agents.agent" if inner.starts_with("request-") || inner.starts_with("copy-") => &[
            "protocol \"forward-auth\"",
            "unix-socket \"/run/x.sock\"",
            "failure-mode \"open\"",
        ],
        "agents.agent" => &["unix-socket \"/run/x.sock\"", "failure-mode \"open\""],
        "listeners.listener" => beside_of_listener(inner),
        "listeners.listener.tls.acme" if inner.starts_with("dns-command") => &[
            "challenge \"dns-01\"",
            "dns-command \"/usr/bin/dns\"",
            "hosts \"a.test\"",
        ],
        "listeners.listener.tls.acme" if inner.contains("dns-01") => {
            &["dns-command \"/usr/bin/dns\"", "hosts \"a.test\""]
        }
        "listeners.listener.tls.acme" => &["hosts \"a.test\""],
        "listeners.listener.error-pages.page" if inner.starts_with("status ") => &["html \"x\""],
        "listeners.listener.tls" => &["cert-file \"a.pem\"", "key-file \"a.key\""],
        "observability.otlp" if inner.starts_with("ca-file") => {
            &["endpoint \"https://127.0.0.1:4318\""]
        }
        "upstreams.upstream.tls" if inner.starts_with("cert-file") => &["key-file \"a.key\""],
        "upstreams.upstream.tls" if inner.starts_with("key-file") => &["cert-file \"a.pem\""],
        _ => &[],
    };
    let required = registry::all()
        .into_iter()
        .filter(|spec| spec.block() == block && spec.presence == Presence::Required);
    let required = required.filter_map(|spec| Some(format!("{} {}", spec.name(), sample(&spec)?)));
    let mut lines: Vec<String> = needs
        .iter()
        .map(|need| (*need).to_owned())
        .chain(required)
        .collect();
    let name = |line: &str| line.split(' ').next().unwrap().to_owned();
    lines.retain(|line| name(line) != name(inner));
    lines.dedup_by_key(|line| name(line));
    lines.push(String::new());
    lines.join("\n")
}

/// Like [`beside`], for a listener.
fn beside_of_listener(inner: &str) -> &'static [&'static str] {
    match inner {
        _ if inner.starts_with("proxy-protocol") => &["trusted-proxies \"10.0.0.0/8\""],
        _ if inner.starts_with("http3") => &[
            "protocol \"https\"",
            "tls { cert-file \"a.pem\"; key-file \"a.key\" }",
        ],
        _ if inner.starts_with("alt-svc-max-age") => &[
            "http3 #true",
            "protocol \"https\"",
            "tls { cert-file \"a.pem\"; key-file \"a.key\" }",
        ],
        _ if inner.starts_with("alt-svc-port") => &[
            "http3 #true",
            "alt-svc-max-age-secs 60",
            "protocol \"https\"",
            "tls { cert-file \"a.pem\"; key-file \"a.key\" }",
        ],
        _ if inner.starts_with("tls") => &["protocol \"https\""],
        _ if inner.starts_with("protocol \"https\"") => {
            &["tls { cert-file \"a.pem\"; key-file \"a.key\" }"]
        }
        _ => &[],
    }
}

/// Like [`beside`], for a route and its blocks.
fn beside_of_route(block: &str, inner: &str) -> &'static [&'static str] {
    let is = |begin: &str| inner.starts_with(begin);
    match block {
        "routes.route" if is("builtin-handler") => &["service-type \"builtin\""],
        "routes.route" if is("static-files") => &["service-type \"static\""],
        "routes.route" if is("service-type \"builtin\"") => &["builtin-handler \"health\""],
        "routes.route" if is("service-type \"static\"") => &["static-files { root \"/srv/www\" }"],
        "routes.route" if ["upstream ", "redirect ", "respond "].into_iter().any(is) => &[],
        "routes.route" if inner.contains("path-from-regex") => &[
            "upstream \"other\"",
            "matches { path-regex \"^/v1/(.*)$\" }",
        ],
        "routes.route" => &["upstream \"other\""],
        "routes.route.redirect" if is("status") => &["to \"https\""],
        "routes.route.respond" if is("content-type") => &["body \"x\""],
        "routes.route.policies.error-pages.page" if is("status ") => &["html \"x\""],
        "routes.route.policies.cors" if !is("allow-origins") => {
            &["allow-origins \"https://a.test\""]
        }
        "routes.route.policies.basic-auth" if !is("user ") => {
            &["user \"ann\" \"$2y$04$abcdefghijklmnopqrstuu5Eib6dQmcaRkU2y9cEEtmnhcGHVBJfm\""]
        }
        "routes.route.policies.jwt" => beside_of_jwt(inner),
        "routes.route.policies.rewrite" if is("location") || is("cookies") => &["path \"/x\""],
        "routes.route.policies.rate-limit" if is("store-timeout-") => {
            &["store \"redis://127.0.0.1:6379\"", "requests-per-second 5"]
        }
        "routes.route.policies.rate-limit" if !is("rate ") && !is("requests-") => {
            &["requests-per-second 5"]
        }
        _ => &[],
    }
}

/// Like [`beside`], for a `jwt` block.
fn beside_of_jwt(inner: &str) -> &'static [&'static str] {
    const AUDIENCE: &str = "audience \"api\"";
    const URL: &str = "jwks-url \"http://id.test/keys\"";
    const UPSTREAM: &str = "jwks-upstream \"other\"";
    let is = |begin: &str| inner.starts_with(begin);
    if is("hmac-file") || is("jwks-file") {
        &[AUDIENCE]
    } else if is("jwks-url") {
        &[AUDIENCE, "jwks-upstream \"secure\""]
    } else if is("jwks-min-interval") {
        &[AUDIENCE, URL, UPSTREAM, "jwks-max-interval-secs 86400"]
    } else if is("jwks-max-interval") {
        &[AUDIENCE, URL, UPSTREAM, "jwks-min-interval-secs 1"]
    } else if is("jwks-max-age") {
        &[
            AUDIENCE,
            URL,
            UPSTREAM,
            "jwks-min-interval-secs 1",
            "jwks-max-interval-secs 1",
        ]
    } else {
        &[AUDIENCE, URL, UPSTREAM]
    }
}

fn spec(path: &str) -> SettingSpec {
    let found = registry::all().into_iter().find(|spec| spec.path == path);
    found.unwrap_or_else(|| panic!("{path} is not in the registry"))
}
