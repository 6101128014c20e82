//! Directives without a conversion: some need none, the rest get advice.

use super::parser::Directive;
use crate::site::Site;

/// Directives that describe the proxy's behaviour anyway, or tune parts that work differently in
/// the proxy.
const NOT_NEEDED: &[&str] = &[
    // Noted with the routes that it protects.
    "auth_basic",
    "auth_jwt",
    "auth_request",
    "auth_request_set",
    "ssl_verify_client",
    "accept_mutex",
    "client_body_buffer_size",
    "client_body_temp_path",
    "client_header_buffer_size",
    "gzip_buffers",
    "gzip_disable",
    "gzip_http_version",
    "gzip_proxied",
    "gzip_vary",
    "http2",
    "http3",
    "log_format",
    "log_not_found",
    "multi_accept",
    "pid",
    "proxy_buffer_size",
    "proxy_buffering",
    "proxy_buffers",
    "proxy_busy_buffers_size",
    "proxy_http_version",
    "proxy_ssl_server_name",
    "proxy_temp_path",
    "quic_gso",
    "reset_timedout_connection",
    "sendfile",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "server_tokens",
    "ssl_dhparam",
    "ssl_prefer_server_ciphers",
    "ssl_session_cache",
    "ssl_session_timeout",
    "ssl_buffer_size",
    "tcp_nodelay",
    "tcp_nopush",
    "types_hash_bucket_size",
    "types_hash_max_size",
    "user",
    "variables_hash_max_size",
    "worker_connections",
    "worker_rlimit_nofile",
];

const ADVICE: &[(&str, &str)] = &[
    ("auth_basic_user_file", "see `auth_basic`"),
    ("autoindex", "folders are never listed"),
    (
        "expires",
        "write `response-headers { set \"Cache-Control\" … }`",
    ),
    (
        "fastcgi_pass",
        "put a server that speaks HTTP before the application; the route answers 501",
    ),
    (
        "default_type",
        "types of files are those of their endings; a text has `content-type` of `respond`",
    ),
    ("geo", "write `allow-file` with the networks, or an agent"),
    (
        "grpc_pass",
        "write `upstream` with `protocol \"h2\"`; the route answers 501",
    ),
    (
        "include",
        "there is no such file here: its directives are missing",
    ),
    (
        "if",
        "write a route for the condition: `matches { header … }`, `query-param`, `method`",
    ),
    (
        "more_clear_input_headers",
        "write `request-headers { remove … }` in the route's policies",
    ),
    (
        "proxy_pass_request_headers",
        "write `request-headers { remove … }` for each field in the route's policies",
    ),
    (
        "set_real_ip_from",
        "write `trusted-proxies` in the listener, and the networks in the routes' policies",
    ),
    (
        "large_client_header_buffers",
        "write `limits { max-header-size-bytes; max-header-value-bytes }`",
    ),
    (
        "limit_conn",
        "write `limits { max-connections-per-client }`",
    ),
    (
        "limit_conn_zone",
        "write `limits { max-connections-per-client }`",
    ),
    ("limit_req_status", "requests over a rate are answered 429"),
    (
        "limit_req_log_level",
        "records of limits have the level `warn`",
    ),
    ("limit_except", "write a route with `matches { method … }`"),
    ("mail", "mail is not offered"),
    ("map", "write a route for each case"),
    (
        "mirror",
        "write `shadow { upstream … }` in the route's policies",
    ),
    (
        "proxy_intercept_errors",
        "errors of an upstream pass as they are",
    ),
    (
        "quic_retry",
        "clients prove their address while many handshakes are open",
    ),
    (
        "proxy_next_upstream",
        "write `retry { on …; attempts … }` in the route's policies",
    ),
    (
        "proxy_cookie_path",
        "`rewrite` writes the beginning of a cookie's `Path` back by itself; another change is the application's",
    ),
    (
        "proxy_cookie_domain",
        "`rewrite` removes a cookie's `Domain` that is the target's, or the `Host` that is sent; another one stays",
    ),
    (
        "proxy_request_buffering",
        "bodies are streamed; `buffer-requests #true` collects them",
    ),
    ("resolver", "write `system { dns { name-servers … } }`"),
    ("return", "write `redirect` or `respond` in a route"),
    (
        "rewrite",
        "write `redirect`, or `rewrite` in the route's policies",
    ),
    ("set", "variables are not offered"),
    (
        "ssl_ciphers",
        "the suites are fixed, all with forward secrecy and authenticated encryption",
    ),
    (
        "ssl_client_certificate",
        "write `tls { client-auth { ca-file … } }` in the listener",
    ),
    (
        "ssl_stapling",
        "write `ocsp-file` with a response that a timer fetches",
    ),
    ("ssl_trusted_certificate", "see `ssl_stapling`"),
    ("stub_status", "the admin interface has `/metrics`"),
    ("sub_filter", "bodies are not edited; an agent may"),
    (
        "types",
        "types of files are those of their endings: write `response-headers { set \"Content-Type\" … }` in a route for another",
    ),
    (
        "uwsgi_pass",
        "put a server that speaks HTTP before the application; the route answers 501",
    ),
];

/// Minimum number of types in a complete `mime.types`.
const MIME_TYPES: usize = 20;

/// Returns true if a directive needs no conversion.
pub(super) fn is_not_needed(name: &str) -> bool {
    NOT_NEEDED.contains(&name)
}

/// Notes a directive that is not converted, unless it needs no conversion.
pub(super) fn note(site: &mut Site, directive: &Directive) {
    let name = &*directive.name;
    // The proxy forwards upgrades without configuration.
    let is_of_upgrades = name == "map" && directive.word(0) == Some("$http_upgrade");
    let is_of_nginx = name == "include" && is_known_file(directive);
    let is_usual = match (name, directive.word(0)) {
        ("default_type", Some(it)) => {
            matches!(it, "application/octet-stream" | "text/plain" | "text/html")
        }
        ("types", _) => directive.children().len() > MIME_TYPES,
        _ => false,
    };
    let is_password_file = name == "auth_basic_user_file"
        && directive
            .word(0)
            .is_some_and(|file| site.password_files.contains(file));
    let is_written = is_of_upgrades || is_of_nginx || is_usual || is_password_file;
    if !is_not_needed(name) && !is_written {
        site.note(&directive.place, &directive.shown(), advice(name));
    }
}

/// Notes a directive that could refuse requests.
pub(super) fn note_check(site: &mut Site, directive: &Directive) {
    let name = &*directive.name;
    let advice = if is_not_needed(name) {
        "write the check as `basic-auth`, an agent, or `client-auth`"
    } else {
        advice(name)
    };
    let advice = format!("{advice}; the routes that it holds for answer 501 until then");
    site.note(&directive.place, &directive.shown(), &advice);
}

/// Notes a directive before a redirect or a refusal that is sent without it.
pub(super) fn note_ignored(site: &mut Site, directive: &Directive) {
    let advice = format!(
        "{}; all requests get the answer after it until then",
        advice(&directive.name)
    );
    site.note(&directive.place, &directive.shown(), &advice);
}

fn advice(name: &str) -> &'static str {
    let advice = ADVICE.iter().find(|(known, _)| *known == name);
    advice.map_or(
        "not carried over; see docs/learn/coming-from/nginx.md",
        |(_, it)| it,
    )
}

/// Returns true if a missing file is one of nginx's own that contain no checks.
pub(super) fn is_known_file(directive: &Directive) -> bool {
    let path = directive.word(0).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(
        name,
        "fastcgi-php.conf"
            | "fastcgi.conf"
            | "fastcgi_params"
            | "mime.types"
            | "options-ssl-nginx.conf"
            | "proxy_params"
            | "scgi_params"
            | "uwsgi_params"
    )
}
