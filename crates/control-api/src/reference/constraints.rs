//! Constraints of request fields that cannot be derived from their Rust types: names, labels,
//! addresses, map keys. Each fragment is merged into the schema of its field.

use serde_json::{Map, Value, json};

/// Visible characters and inner spaces. Characters beyond U+FFFF that `Name` refuses are missing,
/// because not every regex engine supports them.
const NAME: &str = "^(?!\\s)(?!.*\\s$)[^\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\
    \\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb]+$";
/// No control characters, and no space at either end.
const TEXT: &str = "^(?!\\s)(?!.*\\s$)[^\\u0000-\\u001f\\u007f-\\u009f]+$";
/// No control characters.
const LINE: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
const NO_NUL: &str = "^[^\\u0000]*$";
/// Visible ASCII characters without `/`. Hosts are in ASCII only, so a maximum length is
/// one in bytes, too.
const HOST: &str = "^[!-.0-~]+$";
const SERVER_NAME: &str = "^[^\\s/\"\\\\@\\u0000-\\u001f\\u007f-\\u009f]+$";
/// Visible ASCII characters without `/`, `"`, `\` and `@`, and a port.
const ADDRESS: &str = "^[!#-.0-?A-\\[\\]-~]+:0*[1-9][0-9]{0,4}$";
/// The address of a listener: an IP address or `localhost` with a port, or a Unix socket.
const LISTENER: &str =
    "^(unix:/.*|(\\[[0-9A-Fa-f:.%]+\\]|[0-9.]+|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]\\.?):[0-9]+)$";
const IP: &str = "^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}\
    |[0-9A-Fa-f]*:[0-9A-Fa-f:.]+)$";
/// A time from 1970 on, in any offset.
const SINCE_1970: &str = "^(1969-12-31|19[7-9][0-9]-|[2-9][0-9]{3}-)";
const PATH: &str = "^/[^\\s?#\\u0000-\\u001f\\u007f-\\u009f]*$";
/// A relative path of at most 8 components, without `.` and `..`.
const FILE: &str = "^(?!\\.{1,2}(/|$))(?!.*/(\\.{1,2})?(/|$))[^/\\\\\\u0000-\\u001f\\u007f-\\u009f]\
    [^\\\\\\u0000-\\u001f\\u007f-\\u009f]*$";
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
/// A `token` of HTTP (RFC 9110, section 5.6.2).
const TOKEN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
const SETTING: &str = "^[a-z0-9-]+$";
const WEB_URL: &str = "^[Hh][Tt][Tt][Pp][Ss]?://[^@#\\s]+$";
/// A [`WEB_URL`] without a query, which the control plane appends.
const SERVER_URL: &str = "^[Hh][Tt][Tt][Pp][Ss]?://[^@?#\\s]+$";
const LABEL_NAME: &str = "^[a-z0-9._/-]{1,63}$";
const LABEL_VALUE: &str = "^[!-~]{0,128}$";
/// Maximum value of a counter in a node's report.
const MAX_COUNT: i64 = 1_000_000_000_000_000;

/// Fields with a display name.
const NAMES: &[(&str, &str)] = &[
    ("AcceptRequest", "user_name"),
    ("CertificateRequest", "name"),
    ("ManagedCertificateRequest", "name"),
    ("NewApiKeyRequest", "name"),
    ("NewBundleRequest", "name"),
    ("NewEnrolmentTokenRequest", "name"),
    ("OrgRequest", "name"),
    ("ProjectRequest", "name"),
    ("RegisterRequest", "name"),
    ("RenameRequest", "name"),
    ("ServiceRequest", "name"),
    ("SetUpRequest", "api_key_name"),
    ("SetUpRequest", "org_name"),
    ("SetUpRequest", "project_name"),
    ("SetUpRequest", "user_name"),
    ("UpstreamRequest", "name"),
    ("WebhookRequest", "name"),
];

/// Fields with labels that a node gets or needs.
const LABELS: &[(&str, &str)] = &[
    ("CertificateRequest", "node_labels"),
    ("ManagedCertificateRequest", "node_labels"),
    ("NewEnrolmentTokenRequest", "labels"),
    ("NewRolloutRequest", "labels"),
    ("PreviewRequest", "labels"),
    ("RegisterRequest", "labels"),
];

/// Fields with URLs that the control plane calls or redirects browsers to.
const URLS: &[(&str, &str)] = &[
    ("ManagedCertificateRequest", "directory"),
    ("OidcBody", "authorize_url"),
    ("OidcBody", "issuer"),
    ("OidcBody", "token_url"),
    ("OidcBody", "userinfo_url"),
    ("SamlBody", "assertion_consumer_service_url"),
    ("SamlBody", "idp_metadata_url"),
    ("SamlBody", "idp_sso_url"),
    ("WebhookRequest", "url"),
];

/// Counters in nodes' reports.
const COUNTS: &[(&str, &str)] = &[
    ("ConnectionTraffic", "accepted"),
    ("ConnectionTraffic", "handshakes_completed"),
    ("ConnectionTraffic", "handshakes_failed"),
    ("ConnectionTraffic", "proxy_headers_failed"),
    ("RouteTraffic", "errors"),
    ("RouteTraffic", "requests"),
];

/// A schema, one of its fields, and the field's constraints.
type Fragment = (&'static str, &'static str, Value);

/// The fragments of all schemas.
pub(crate) fn fragments() -> Vec<Fragment> {
    let same = |fields: &[(&'static str, &'static str)], fragment: Value| {
        let fields = fields.iter();
        let fields = fields.map(move |(schema, field)| (*schema, *field, fragment.clone()));
        fields.collect::<Vec<_>>()
    };
    let mut all = definitions();
    all.extend(bundles());
    all.extend(reports());
    all.extend(organizations());
    all.extend(rollouts());
    all.extend(same(NAMES, json!({"pattern": NAME})));
    all.extend(same(
        LABELS,
        merged(labels(&json!("string")), &json!({"maxProperties": 32})),
    ));
    all.extend(same(URLS, json!({"format": "uri", "pattern": WEB_URL})));
    all.extend(same(COUNTS, json!({"maximum": MAX_COUNT})));
    all
}

/// Schema of labels, with the given schema for values.
fn labels(value: &Value) -> Value {
    json!({
        "propertyNames": {"type": "string", "pattern": LABEL_NAME},
        "additionalProperties": {"type": value, "pattern": LABEL_VALUE},
    })
}

fn definitions() -> Vec<Fragment> {
    let settings = json!({"propertyNames": {"type": "string", "pattern": SETTING}});
    let chain = json!({"pattern": "-----BEGIN CERTIFICATE-----"});
    let key = json!({"pattern": "-----BEGIN ([A-Z]+ )?PRIVATE KEY-----"});
    let priority = json!({"minimum": -1_000_000, "maximum": 1_000_000});
    vec![
        ("CertificateRequest", "chain_pem", chain),
        ("CertificateRequest", "private_key_pem", key),
        ("ServiceRequest", "host", json!({"pattern": HOST})),
        ("ServiceRequest", "path_prefix", json!({"pattern": PATH})),
        ("ServiceRequest", "priority", priority),
        ("ServiceRequest", "settings", settings.clone()),
        ("TargetBody", "address", json!({"pattern": ADDRESS})),
        ("UpstreamRequest", "settings", settings),
        (
            "UpstreamTlsBody",
            "server_name",
            json!({"pattern": SERVER_NAME}),
        ),
    ]
}

fn bundles() -> Vec<Fragment> {
    let name = json!({"type": "string", "minLength": 1, "maxLength": 200, "pattern": FILE});
    let files = json!({"required": ["proxy.kdl"], "propertyNames": name});
    let assets = json!({"propertyNames": name, "additionalProperties": {
        "type": "string", "contentEncoding": "base64", "pattern": BASE64,
    }});
    let headers = json!({"maxProperties": 100, "propertyNames": {
        "type": "string", "pattern": TOKEN,
    }});
    let url = json!({"minLength": 1, "pattern": "^(/|[Hh][Tt][Tt][Pp][Ss]?://)"});
    vec![
        ("NewBundleRequest", "assets", assets.clone()),
        ("NewBundleRequest", "files", files.clone()),
        ("PreviewRequest", "assets", assets),
        ("PreviewRequest", "files", files),
        ("QuestionBody", "headers", headers),
        ("QuestionBody", "client_ip", json!({"pattern": IP})),
        (
            "QuestionBody",
            "method",
            json!({"minLength": 1, "pattern": TOKEN}),
        ),
        ("QuestionBody", "url", url),
        ("ServicesRequest", "http", json!({"pattern": LISTENER})),
        ("ServicesRequest", "https", json!({"pattern": LISTENER})),
    ]
}

fn reports() -> Vec<Fragment> {
    let count = json!({"type": "integer", "minimum": 0, "maximum": MAX_COUNT});
    let sum = json!({"maximum": i64::MAX});
    let named = |max: usize| {
        json!({"maxProperties": max, "propertyNames": {
            "type": "string", "minLength": 1, "maxLength": 256, "pattern": LINE,
        }})
    };
    let counted = |keys: &str| {
        json!({
            "propertyNames": {"type": "string", "pattern": keys}, "additionalProperties": count,
        })
    };
    let statuses = merged(counted("^[1-9][0-9]{2}$"), &json!({"maxProperties": 100}));
    let reasons = merged(named(100), &json!({"additionalProperties": count}));
    let diagnostics = json!({"maxItems": 100, "items": {
        "type": "string", "maxLength": 1000, "pattern": NO_NUL,
    }});
    vec![
        ("HeartbeatRequest", "version", json!({"pattern": LINE})),
        ("NodeEvent", "at", json!({"pattern": SINCE_1970})),
        ("NodeEvent", "kind", json!({"pattern": "^[a-z0-9._-]+$"})),
        ("NodeEvent", "message", json!({"pattern": NO_NUL})),
        ("NodePatch", "labels", labels(&json!(["string", "null"]))),
        ("NodeStatus", "diagnostics", diagnostics),
        ("NodeStatus", "order", sum.clone()),
        ("RouteTraffic", "bytes_in", sum.clone()),
        ("RouteTraffic", "bytes_out", sum.clone()),
        ("RouteTraffic", "first_byte", json!({"items": count})),
        ("RouteTraffic", "latency", json!({"items": count})),
        ("RouteTraffic", "latency_us", sum),
        ("RouteTraffic", "reasons", reasons),
        (
            "RouteTraffic",
            "sizes",
            counted("^([0-9]|[12][0-9]|3[01])$"),
        ),
        ("RouteTraffic", "statuses", statuses),
        ("Traffic", "routes", named(500)),
    ]
}

fn organizations() -> Vec<Fragment> {
    let mapping = json!({"minProperties": 1, "maxProperties": 500, "propertyNames": {
        "type": "string", "minLength": 1, "maxLength": 256,
    }});
    let scopes = json!({"items": {
        "type": "string", "minLength": 1, "maxLength": 100,
        "pattern": "^[\\u0021\\u0023-\\u005b\\u005d-\\u007e]+$",
    }});
    let domains = json!({"items": {
        "type": "string", "maxLength": 253,
        "pattern": "^[A-Za-z0-9-]{1,63}(\\.[A-Za-z0-9-]{1,63})+$",
    }});
    let email = json!({"format": "email", "maxLength": 254});
    vec![
        ("DomainsBody", "domains", domains.clone()),
        ("ManagedCertificateRequest", "hosts", domains),
        ("OidcBody", "client_id", json!({"pattern": TEXT})),
        ("OidcBody", "group_mapping", mapping.clone()),
        ("OidcBody", "scopes", scopes),
        ("SamlBody", "group_mapping", mapping),
        ("SamlBody", "idp_entity_id", json!({"pattern": TEXT})),
        ("SamlBody", "sp_entity_id", json!({"pattern": TEXT})),
        ("ManagedCertificateRequest", "email", email.clone()),
        ("SetUpRequest", "email", email),
    ]
}

fn rollouts() -> Vec<Fragment> {
    let day = "([Mm][Oo][Nn]|[Tt][Uu][Ee]|[Ww][Ee][Dd]|[Tt][Hh][Uu]|[Ff][Rr][Ii]|[Ss][Aa][Tt]|[Ss][Uu][Nn])";
    let time = format!("{day} \\s*([01][0-9]|2[0-3]):[0-5][0-9]");
    let freeze = format!("^\\s*{time}\\s*[-\\u2013]\\s*{time}\\s*$");
    let freeze = json!({"items": {"type": "string", "pattern": freeze}});
    let server = json!({"format": "uri", "pattern": SERVER_URL});
    vec![
        ("NewRolloutRequest", "nodes", json!({"minItems": 1})),
        ("PolicyRequest", "freeze", freeze),
        ("PrometheusCondition", "url", server),
    ]
}

/// Merges the constraints into the schemas of an `OpenAPI` document.
pub(super) fn complete(document: &mut Value) {
    for (schema, field, fragment) in fragments() {
        if let Some(property) = document.pointer_mut(&pointer(schema, field)) {
            *property = merged(property.take(), &fragment);
        }
    }
    // Exactly one of `files` and `services` is required.
    for schema in ["NewBundleRequest", "PreviewRequest"] {
        let pointer = format!("/components/schemas/{schema}");
        if let Some(schema) = document.pointer_mut(&pointer) {
            let choice = json!({"anyOf": [{"required": ["files"]}, {"required": ["services"]}]});
            *schema = merged(schema.take(), &choice);
        }
    }
}

/// JSON pointer to a field in an `OpenAPI` document.
pub(crate) fn pointer(schema: &str, field: &str) -> String {
    format!("/components/schemas/{schema}/properties/{field}")
}

/// Merges two objects; values of `more` take precedence.
fn merged(object: Value, more: &Value) -> Value {
    let mut members = match object {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    let more = more.as_object().into_iter().flatten();
    members.extend(more.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(members)
}
