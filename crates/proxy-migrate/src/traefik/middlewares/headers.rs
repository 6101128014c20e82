//! The middleware `headers`.

use super::draft::{Draft, Middleware, Unwritten};
use crate::kdl::Node;
use crate::site::Site;
use crate::traefik::document::Value;

/// Settings that redirect or refuse requests.
const CHECKS: &[&str] = &[
    "allowedHosts",
    "hostsProxyHeaders",
    "isDevelopment",
    "sslForceHost",
    "sslHost",
    "sslProxyHeaders",
    "sslRedirect",
    "sslTemporaryRedirect",
];

/// Header fields that the proxy sets itself for upstreams.
const OURS: &[&str] = &[
    "connection",
    "forwarded",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// Settings with the text of a header field.
const TEXTS: &[(&str, &str)] = &[
    ("customFrameOptionsValue", "X-Frame-Options"),
    ("customBrowserXSSValue", "X-XSS-Protection"),
    ("contentSecurityPolicy", "Content-Security-Policy"),
    (
        "contentSecurityPolicyReportOnly",
        "Content-Security-Policy-Report-Only",
    ),
    ("referrerPolicy", "Referrer-Policy"),
    ("permissionsPolicy", "Permissions-Policy"),
    ("featurePolicy", "Feature-Policy"),
];

/// Flags that add a header field.
const FLAGS: &[(&str, &str, &str)] = &[
    ("frameDeny", "X-Frame-Options", "DENY"),
    ("contentTypeNosniff", "X-Content-Type-Options", "nosniff"),
    ("browserXssFilter", "X-XSS-Protection", "1; mode=block"),
];

pub(super) fn edit(
    site: &mut Site,
    draft: &mut Draft<'_>,
    middleware: Middleware<'_>,
) -> Result<(), Unwritten> {
    let settings = middleware.settings();
    if middleware.first_of(CHECKS).is_some() {
        return Err(Unwritten(
            "write `redirect \"https\"`, or `matches { host … }`, in routes",
        ));
    }
    if let Some(fields) = settings.get("customRequestHeaders") {
        for entry in fields.entries() {
            let name = entry.key.to_ascii_lowercase();
            if OURS.contains(&&*name) {
                middleware.note(site, &entry.key, "the proxy sends this field itself");
                continue;
            }
            let node = field(&entry.key, entry.value.text());
            draft.route.policies.request_headers.push(node);
        }
    }
    let policies = &mut draft.route.policies;
    for (key, name, value) in FLAGS {
        if settings.is_on(key) {
            let node = Node::text("set", name).arg(value);
            policies.response_headers.push(node);
        }
    }
    for (key, name) in TEXTS {
        if let Some(value) = settings.text_of(key) {
            policies
                .response_headers
                .retain(|node| node.first() != Node::text("set", name).first());
            let node = Node::text("set", name).raw(value);
            policies.response_headers.push(node);
        }
    }
    policies
        .response_headers
        .extend(transport_security(settings));
    if let Some(fields) = settings.get("customResponseHeaders") {
        let fields = fields.entries().iter();
        let nodes = fields.map(|entry| field(&entry.key, entry.value.text()));
        policies.response_headers.extend(nodes);
    }
    cors(site, draft, middleware);
    Ok(())
}

/// Sets a field, or removes it if the value is empty.
fn field(name: &str, value: Option<&str>) -> Node {
    match value {
        Some(value) => Node::text("set", name).raw(value),
        None => Node::text("remove", name),
    }
}

fn transport_security(settings: &Value) -> Option<Node> {
    let seconds = settings.number_of("stsSeconds").filter(|it| *it > 0)?;
    let mut value = format!("max-age={seconds}");
    if settings.is_on("stsIncludeSubdomains") {
        value.push_str("; includeSubDomains");
    }
    if settings.is_on("stsPreload") {
        value.push_str("; preload");
    }
    Some(Node::text("set", "Strict-Transport-Security").arg(&value))
}

/// Converts header fields for cross-origin requests.
fn cors(site: &mut Site, draft: &mut Draft<'_>, middleware: Middleware<'_>) {
    let settings = middleware.settings();
    if settings.get("accessControlAllowOriginListRegex").is_some() {
        middleware.note(
            site,
            "accessControlAllowOriginListRegex",
            "write origins in `cors { allow-origins … }`: `https://*.example.com` has all names below one",
        );
    }
    let origins = settings.texts_of("accessControlAllowOriginList");
    if origins.is_empty() {
        return;
    }
    let allows_credentials = settings.is_on("accessControlAllowCredentials");
    if allows_credentials && origins.contains(&"*") {
        return middleware.note(
            site,
            "accessControlAllowCredentials",
            "credentials need origins that are named: write `cors`",
        );
    }
    let mut node = Node::new("cors").child(Node::new("allow-origins").args(origins));
    for (key, name) in [
        ("accessControlAllowMethods", "allow-methods"),
        ("accessControlAllowHeaders", "allow-headers"),
        ("accessControlExposeHeaders", "expose-headers"),
    ] {
        let values = settings.texts_of(key);
        let values = values.into_iter().filter(|value| *value != "*");
        node = node.children(Node::new(name).args(values).with_arguments());
    }
    if allows_credentials {
        node = node.child(crate::write::flag("allow-credentials"));
    }
    let age = settings.number_of("accessControlMaxAge");
    let age = age.filter(|age| (1..=86_400).contains(age));
    node = node.children(age.map(|age| Node::number("max-age-secs", age)));
    draft.route.policies.settings.push(node);
}
