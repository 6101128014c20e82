//! Harmful bundles, each with a class of risk that names the harm.

use super::Bundle;
use RiskClass::{
    AccessWidened, AgentChanged, AnswerChanged, BodyHeld, HeaderEditRemoved, HeadersChanged,
    HealthCheckChanged, LimitRemoved, LimitTightened, ListenerNarrowed, ListenerRemoved,
    RecordsChanged, RequestsMoved, RequestsRefused, ResponsesShared, TargetsChanged, TlsWeakened,
    VerificationWeakened,
};
use proxy_plan::diff::RiskClass;

const ACCOUNT: &str = r#"upstream "account" }
    route "events""#;
const EVENTS: &str = r#"upstream "events" }
    route "item""#;
const WEB: &str = r#"address "0.0.0.0:8080""#;
const EDGE_CACHE: &str = r#"cache { max-bytes "1GiB" }"#;
const ACME: &str = r#"acme {
                hosts "shop.example.com"
                directory "https://acme-v02.api.letsencrypt.org/directory"
                email "ops@example.com"
                terms-agreed #true
                storage "acme"
            }"#;

pub(super) const HARMFUL: &[(Bundle, RiskClass)] = &[
    // Connections and times.
    (
        Bundle::new(
            "idle connections are kept for an hour, and targets close them after a minute",
            &[("idle-timeout-secs 50", "idle-timeout-secs 3600")],
        ),
        TargetsChanged,
    ),
    (
        Bundle::new(
            "idle connections of a load balancer are closed early",
            &[("keep-alive-secs 75", "keep-alive-secs 5")],
        ),
        LimitTightened,
    ),
    (
        Bundle::new(
            "a head may take an hour",
            &[("header-secs 30", "header-secs 3600")],
        ),
        LimitRemoved,
    ),
    (
        Bundle::new(
            "resets of streams are as good as unlimited",
            &[(WEB, r#"address "0.0.0.0:8080"; max-stream-resets 100000"#)],
        ),
        LimitRemoved,
    ),
    (
        Bundle::new(
            "few streams of a connection",
            &[(WEB, r#"address "0.0.0.0:8080"; max-concurrent-streams 8"#)],
        ),
        LimitTightened,
    ),
    (
        Bundle::new(
            "a dead target is waited for an hour",
            &[(
                r#"target "10.1.5.2:8080""#,
                r#"target "10.1.5.2:8080"; timeouts { connect-secs 3600 }"#,
            )],
        ),
        LimitRemoved,
    ),
    (
        Bundle::new(
            "a stream may last a minute as a whole",
            &[(
                EVENTS,
                r#"upstream "events"; policies { timeouts { request-secs 60 } } }
    route "item""#,
            )],
        ),
        LimitTightened,
    ),
    (
        Bundle::new(
            "an idle WebSocket is cut",
            &[(
                r#"target "10.1.4.1:8080""#,
                r#"target "10.1.4.1:8080"; timeouts { idle-secs 60 }"#,
            )],
        ),
        LimitTightened,
    ),
    (
        Bundle::new(
            "events are held until they end",
            &[(
                EVENTS,
                r#"upstream "events"; policies { buffer-responses #true } }
    route "item""#,
            )],
        ),
        BodyHeld,
    ),
    (
        Bundle::new(
            "one worker, from a file for tests",
            &[("system {", "system { worker-threads 1;")],
        ),
        LimitTightened,
    ),
    (
        Bundle::new(
            "no queue",
            &[(EDGE_CACHE, "limits { max-queued-requests 0 }")],
        ),
        LimitTightened,
    ),
    // Failures.
    (
        Bundle::new("no retries", &[("attempts 2", "attempts 0")]),
        LimitTightened,
    ),
    (
        Bundle::new(
            "a breaker that opens at the first failure",
            &[("failure-threshold 10", "failure-threshold 1")],
        ),
        LimitTightened,
    ),
    (
        Bundle::new(
            "a breaker that hardly ever closes",
            &[(
                "timeout-seconds 5",
                "timeout-seconds 5; success-threshold 1000",
            )],
        ),
        LimitTightened,
    ),
    (
        Bundle::new(
            "a health check that expects a status of no target",
            &[(
                r#"path "/healthz""#,
                r#"path "/healthz"; expected-status 204"#,
            )],
        ),
        HealthCheckChanged,
    ),
    (
        Bundle::new(
            "no target has a weight",
            &[("weight=2", "weight=0"), ("weight=1", "weight=0")],
        ),
        RequestsRefused,
    ),
    (
        Bundle::new(
            "names of targets are looked up once a day",
            &[("dns {", "dns { min-ttl-secs 86400; max-ttl-secs 86400;")],
        ),
        TargetsChanged,
    ),
    (
        Bundle::new(
            "a relay to the port of another service",
            &[("10.1.6.1:25", "10.1.6.1:110")],
        ),
        TargetsChanged,
    ),
    (
        Bundle::new(
            "a relay on another port",
            &[("0.0.0.0:8025", "0.0.0.0:8026")],
        ),
        ListenerRemoved,
    ),
    // TLS.
    (
        Bundle::new(
            "certificates of the authority for tests",
            &[("https://acme-v02.", "https://acme-staging-v02.")],
        ),
        TlsWeakened,
    ),
    (
        Bundle::new(
            "certificates are looked for in an empty folder",
            &[(r#"storage "acme""#, r#"storage "acme-new""#)],
        ),
        TlsWeakened,
    ),
    (
        Bundle::new(
            "a certificate that is renewed another way",
            &[(
                "terms-agreed #true",
                r#"terms-agreed #true; challenge "tls-alpn-01""#,
            )],
        ),
        TlsWeakened,
    ),
    (
        Bundle::new(
            "no certificate is obtained",
            &[(ACME, r#"cert-file "old.pem"; key-file "old.key""#)],
        ),
        TlsWeakened,
    ),
    (
        Bundle::new(
            "TLS on the port of plain HTTP",
            &[(
                WEB,
                r#"address "0.0.0.0:8080"; protocol "https"; tls { cert-file "shop.pem"; key-file "shop.key" }"#,
            )],
        ),
        ListenerNarrowed,
    ),
    (
        Bundle::new(
            "relayed connections on the port of HTTP",
            &[
                (WEB, r#"address "0.0.0.0:8080"; protocol "tcp""#),
                (r#"listeners "mail""#, r#"listeners "mail" "web""#),
            ],
        ),
        ListenerNarrowed,
    ),
    (
        Bundle::new(
            "targets are verified by another authority",
            &[(r#"ca-file "internal.pem""#, r#"ca-file "public.pem""#)],
        ),
        VerificationWeakened,
    ),
    (
        Bundle::new(
            "targets are verified for another name",
            &[(r#"sni "orders.internal""#, r#"sni "orders.example.com""#)],
        ),
        VerificationWeakened,
    ),
    (
        Bundle::new(
            "targets are verified by their key alone",
            &[(r#"ca-file "internal.pem""#, "verify #false")],
        ),
        VerificationWeakened,
    ),
    // Responses in the wrong hands.
    (
        Bundle::new(
            "pages of accounts are stored",
            &[(
                ACCOUNT,
                r#"upstream "account"; policies { cache { ttl-secs 60 } } }
    route "events""#,
            )],
        ),
        ResponsesShared,
    ),
    (
        Bundle::new(
            "stored pages of another language",
            &[(r#"; key-headers "Accept-Language""#, "")],
        ),
        ResponsesShared,
    ),
    (
        Bundle::new(
            "a page of last week while the upstream is down",
            &[("ttl-secs 300;", "ttl-secs 300; stale-if-error-secs 604800;")],
        ),
        ResponsesShared,
    ),
    (
        Bundle::new(
            "a credential in responses",
            &[(
                r#"remove "X-Internal""#,
                r#"remove "X-Internal"; set "X-Api-Key" "7d1f-secret""#,
            )],
        ),
        HeadersChanged,
    ),
    (
        Bundle::new("an error page with a trace", &[])
            .with(&[("errors/503.html", "<pre>at db-3.internal:5432</pre>")]),
        AnswerChanged,
    ),
    // Upstreams that get more, or less.
    (
        Bundle::new(
            "the catalog is not stored",
            &[(
                r#"policies { cache { ttl-secs 300; key-headers "Accept-Language" } }"#,
                "",
            )],
        ),
        LimitRemoved,
    ),
    (
        Bundle::new(
            "a stored page for each visitor",
            &[(
                r#"key-headers "Accept-Language""#,
                r#"key-headers "Accept-Language" "Cookie""#,
            )],
        ),
        LimitRemoved,
    ),
    (
        Bundle::new(
            "stored pages for a second",
            &[("ttl-secs 300", "ttl-secs 1")],
        ),
        LimitRemoved,
    ),
    (
        Bundle::new("memory for few pages", &[("1GiB", "64MiB")]),
        LimitRemoved,
    ),
    (
        Bundle::new(
            "clients decide whether a stored page is used",
            &[("ttl-secs 300;", "ttl-secs 300; client-directives #true;")],
        ),
        LimitRemoved,
    ),
    (
        Bundle::new(
            "all clients share a rate",
            &[(r#"key "header:X-Api-Key""#, r#"key "route""#)],
        ),
        LimitRemoved,
    ),
    (
        Bundle::new(
            "one wrong password a day",
            &[("VBJfm\" }", "VBJfm\"; attempts \"1/day\" }")],
        ),
        LimitTightened,
    ),
    (
        Bundle::new(
            "bodies that are too large for an agent are refused",
            &[(r#"on-oversize "pass""#, r#"on-oversize "block""#)],
        ),
        AgentChanged,
    ),
    (
        Bundle::new(
            "a filter that reads the user before the login sets it",
            &[(r#"agents "login" "filter""#, r#"agents "filter" "login""#)],
        ),
        AgentChanged,
    ),
    // Header fields.
    (
        Bundle::new(
            "a token of forms is removed from requests",
            &[(
                r#"set "X-Tenant" "shop""#,
                r#"set "X-Tenant" "shop"; remove "X-Csrf-Token""#,
            )],
        ),
        HeadersChanged,
    ),
    (
        Bundle::new(
            "pages that search engines drop",
            &[(
                r#"set "X-Frame-Options" "DENY""#,
                r#"set "X-Frame-Options" "DENY"; set "X-Robots-Tag" "noindex""#,
            )],
        ),
        HeadersChanged,
    ),
    (
        Bundle::new(
            "methods for pages of other sites by a header edit",
            &[(
                r#"remove "X-Internal""#,
                r#"remove "X-Internal"; set "Access-Control-Allow-Methods" "GET""#,
            )],
        ),
        HeadersChanged,
    ),
    (
        Bundle::new(
            "pictures that other sites may not show",
            &[(
                r#"set "X-Frame-Options" "DENY""#,
                r#"set "X-Frame-Options" "DENY"; set "Cross-Origin-Resource-Policy" "same-origin""#,
            )],
        ),
        HeadersChanged,
    ),
    (
        Bundle::new(
            "a coding that some clients cannot read",
            &[(
                r#"set "X-Tenant" "shop""#,
                r#"set "X-Tenant" "shop"; set "Accept-Encoding" "br""#,
            )],
        ),
        HeadersChanged,
    ),
    (
        Bundle::new(
            "no security header, in a merge",
            &[(
                r#"policies { response-headers { set "X-Frame-Options" "DENY" } }"#,
                "",
            )],
        ),
        HeaderEditRemoved,
    ),
    // Clients.
    (
        Bundle::new(
            "each client has the address of the balancer",
            &[(r#"; trusted-proxies "10.0.0.0/8""#, "")],
        ),
        AccessWidened,
    ),
    (
        Bundle::new(
            "lists of networks turned round",
            &[
                (r#"allow "192.0.2.0/24""#, r#"deny "192.0.2.0/24""#),
                (r#"; deny "192.0.2.66""#, r#"; allow "192.0.2.66""#),
            ],
        ),
        RequestsRefused,
    ),
    (
        Bundle::new(
            "tokens for another service",
            &[(r#"audience "orders""#, r#"audience "order""#)],
        ),
        AccessWidened,
    ),
    // Paths.
    (
        Bundle::new(
            "a prefix that is there twice",
            &[(
                r#"strip-prefix "/orders""#,
                r#"replace-prefix "/orders" "/orders/orders""#,
            )],
        ),
        RequestsMoved,
    ),
    (
        Bundle::new(
            "a redirect to itself",
            &[(
                r#"upstream "front"
        policies { response"#,
                r#"redirect "https://shop.example.com"
        policies { response"#,
            )],
        ),
        RequestsMoved,
    ),
    // Records.
    (
        Bundle::new(
            "an access log in the void",
            &[(
                "observability {",
                r#"observability { access-log { path "/dev/null" };"#,
            )],
        ),
        RecordsChanged,
    ),
    (
        Bundle::new(
            "traces go to another collector",
            &[("traces.example.com", "traces.example.net")],
        ),
        RecordsChanged,
    ),
    (
        Bundle::new(
            "no metrics are exported",
            &[("otlp {", "otlp { metrics #false;")],
        ),
        RecordsChanged,
    ),
];
