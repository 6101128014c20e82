//! Bundles that harm no client: no class but `unlisted`.

use super::Bundle;

const ACCOUNT: &str = r#"upstream "account" }
    route "events""#;
const SITE: &str = r#"set "X-Frame-Options" "DENY""#;
const WEB: &str = r#"listener "web" { address "0.0.0.0:8080"; trusted-proxies "10.0.0.0/8" }"#;
const ITEM: &str = "^/item/[0-9]{1,8}$";
const OLD: &str = r#"redirect { replace-prefix "/old" "/new" }"#;
const EVENTS: &str = r#"    route "events" { matches { host "shop.example.com"; path-prefix "/events" }; upstream "events" }
"#;

pub(super) const HARMLESS: &[Bundle] = &[
    // Another text of the same configuration.
    Bundle::new(
        "comments and layout",
        &[
            ("routes {\n", "routes {\n\n    // In the order of the paths.\n"),
            (
                r#"upstream "mail" { target "10.1.6.1:25" }"#,
                "upstream \"mail\" {\n        target \"10.1.6.1:25\"\n    }",
            ),
        ],
    ),
    Bundle::new(
        "routes in a file of their own",
        &[
            (EVENTS, ""),
            ("routes {\n", "include \"events.kdl\"\nroutes {\n"),
        ],
    )
    .with(&[(
        "events.kdl",
        r#"routes { route "events" { matches { host "shop.example.com"; path-prefix "/events" }; upstream "events" } }"#,
    )]),
    Bundle::new(
        "routes in another order",
        &[
            (EVENTS, ""),
            ("    route \"wiki\"", "    route \"events\" { matches { host \"shop.example.com\"; path-prefix \"/events\" }; upstream \"events\" }\n    route \"wiki\""),
        ],
    ),
    Bundle::new(
        "defaults of a listener written out",
        &[(
            r#"address "0.0.0.0:8080";"#,
            r#"address "0.0.0.0:8080"; protocol "http"; path-policy "strict"; via #false; backlog 1024; max-concurrent-streams 128; timeouts { header-secs 30; body-idle-secs 30; write-idle-secs 60; keep-alive-secs 75; handshake-secs 10 };"#,
        )],
    ),
    Bundle::new(
        "defaults of an upstream written out",
        &[(
            r#"target "10.1.4.1:8080""#,
            r#"target "10.1.4.1:8080" { weight 1; backup #false }; load-balancing "round_robin"; protocol "h1"; timeouts { connect-secs 5; request-secs 60; read-secs 60; idle-secs 3600 }; connection-pool { idle-timeout-secs 60 }"#,
        )],
    ),
    Bundle::new(
        "defaults of limits written out",
        &[(
            "cache {",
            "limits { max-queued-requests 1000; max-queue-wait-secs 1; max-body-size-bytes 10485760 }\ncache {",
        )],
    ),
    Bundle::new(
        "a size and a time in other units",
        &[
            (r#"max-body-size "1MB""#, "max-body-size 1000000"),
            ("header-secs 30", "header-ms 30000"),
        ],
    ),
    Bundle::new(
        "a rate in another unit",
        &[("requests-per-second 20", r#"rate "20/s""#)],
    ),
    Bundle::new(
        "a host in capitals",
        &[(r#"host "static.example.com""#, r#"host "Static.Example.com""#)],
    ),
    Bundle::new(
        "a regular expression written otherwise",
        &[(ITEM, "^/item/[0-9][0-9]{0,7}$")],
    ),
    Bundle::new(
        "weights in another scale",
        &[("weight=2", "weight=20"), ("weight=1", "weight=10")],
    ),
    Bundle::new(
        "a redirect with the status that it has",
        &[(
            OLD,
            r#"redirect status=302 { replace-prefix "/old" "/new" }"#,
        )],
    ),
    Bundle::new(
        "allowed networks as their halves",
        &[(
            r#"allow "192.0.2.0/24""#,
            r#"allow "192.0.2.0/25" "192.0.2.128/25""#,
        )],
    ),
    // Other names.
    Bundle::new(
        "a route of another name",
        &[(r#"route "account" {"#, r#"route "customers" {"#)],
    ),
    Bundle::new(
        "an upstream of another name",
        &[
            (r#"upstream "events" }"#, r#"upstream "push" }"#),
            (r#"upstream "events" {"#, r#"upstream "push" {"#),
        ],
    ),
    Bundle::new(
        "an agent of another name",
        &[
            (r#"agents "login""#, r#"agents "sign-in""#),
            (r#"agent "login""#, r#"agent "sign-in""#),
        ],
    ),
    // More of the same.
    Bundle::new(
        "a further listener with the same trust",
        &[(
            WEB,
            r#"listener "web" { address "0.0.0.0:8080"; trusted-proxies "10.0.0.0/8" }; listener "web6" { address "[::]:8080"; trusted-proxies "10.0.0.0/8" }"#,
        )],
    ),
    Bundle::new(
        "an upstream that no route names yet",
        &[(
            "upstreams {\n",
            "upstreams {\n    upstream \"next\" { target \"10.1.9.1:8080\" }\n",
        )],
    ),
    Bundle::new(
        "a route for a host that no route had",
        &[(
            EVENTS,
            r#"    route "events" { matches { host "shop.example.com"; path-prefix "/events" }; upstream "events" }
    route "news" { matches { host "news.example.com" }; upstream "front" }
"#,
        )],
    ),
    Bundle::new(
        "two more targets of the site",
        &[(
            r#"target "10.1.5.2:8080""#,
            r#"target "10.1.5.2:8080"; target "10.1.5.3:8080"; target "10.1.5.4:8080""#,
        )],
    ),
    Bundle::new(
        "a spare target",
        &[(
            r#"target "10.1.4.1:8080""#,
            r#"target "10.1.4.1:8080"; target "10.1.4.2:8080" { backup #true }"#,
        )],
    ),
    Bundle::new(
        "larger limits",
        &[
            (r#"max-body-size "1MB""#, r#"max-body-size "5MB""#),
            ("requests-per-second 20; burst 40", "requests-per-second 40; burst 80"),
            ("cache {", "limits { max-queued-requests 5000; max-header-count 200; max-connections-per-client 1000 }\ncache {"),
        ],
    ),
    Bundle::new(
        "longer times",
        &[
            ("keep-alive-secs 75", "keep-alive-secs 180"),
            ("header-secs 30", "header-secs 60"),
            (
                r#"target "10.1.4.1:8080""#,
                r#"target "10.1.4.1:8080"; timeouts { request-secs 300; read-secs 3600 }"#,
            ),
        ],
    ),
    Bundle::new(
        "idle connections a little longer",
        &[("idle-timeout-secs 50", "idle-timeout-secs 55")],
    ),
    Bundle::new(
        "old connections to targets are replaced after an hour",
        &[(
            "idle-timeout-secs 50",
            "idle-timeout-secs 50; max-lifetime-secs 3600",
        )],
    ),
    Bundle::new(
        "client connections are replaced after an hour",
        &[(
            r#"address "0.0.0.0:8080";"#,
            r#"address "0.0.0.0:8080"; max-connection-age-secs 3600; max-requests-per-connection 10000;"#,
        )],
    ),
    Bundle::new(
        "a health check a little more patient",
        &[("interval-secs 5; timeout-secs 2", "interval-secs 10; timeout-secs 3; unhealthy-threshold 5")],
    ),
    Bundle::new("one retry more", &[("attempts 2", "attempts 3")]),
    Bundle::new(
        "a breaker that is slower to open",
        &[("failure-threshold 10", "failure-threshold 20; success-threshold 3")],
    ),
    Bundle::new(
        "new targets begin slowly",
        &[(
            r#"target "10.1.5.2:8080""#,
            r#"target "10.1.5.2:8080"; slow-start-secs 30; load-balancing "least_connections""#,
        )],
    ),
    Bundle::new(
        "stored pages for a little longer after failures",
        &[("ttl-secs 300;", "ttl-secs 300; stale-if-error-secs 600; stale-while-revalidate-secs 30; cache-status #true;")],
    ),
    Bundle::new("more memory for stored pages", &[("1GiB", "2GiB")]),
    // Of use to clients and operators.
    Bundle::new(
        "security headers that break no page",
        &[(SITE, r#"set "X-Frame-Options" "DENY"; set "X-Content-Type-Options" "nosniff"; set "Referrer-Policy" "strict-origin"; remove "X-Powered-By""#)],
    ),
    Bundle::new(
        "a correlation id for the upstream",
        &[(
            r#"set "X-Tenant" "shop""#,
            r#"set "X-Tenant" "shop"; set "X-Request-Id" "{correlation_id}""#,
        )],
    ),
    Bundle::new(
        "compression",
        &[(
            ACCOUNT,
            r#"upstream "account"; policies { compression { min-size 256 } } }
    route "events""#,
        )],
    ),
    Bundle::new(
        "files that are compressed already",
        &[(r#"root "www""#, r#"root "www"; precompressed #true"#)],
    ),
    Bundle::new(
        "a further origin, method and field for pages",
        &[(
            r#"cors { allow-origins "https://app.example.com"; allow-methods "GET" "PUT" }"#,
            r#"cors { allow-origins "https://app.example.com" "https://admin.example.com"; allow-methods "GET" "PUT" "PATCH"; max-age-secs 3600 }"#,
        )],
    ),
    Bundle::new(
        "an attacker is refused",
        &[(r#"deny "192.0.2.66""#, r#"deny "192.0.2.66" "198.51.100.9""#)],
    ),
    Bundle::new(
        "traces begin here, heads are recorded, parameters are redacted",
        &[(
            "observability {",
            r#"observability { trace-context { begin #true }; recording { sample-percent 10.0 }; redact-query "token"; access-log { format "combined" };"#,
        )],
    ),
    Bundle::new(
        "names are looked up more often",
        &[("dns {", "dns { min-ttl-secs 1;")],
    ),
    Bundle::new(
        "another address for the authority's mail",
        &[("ops@example.com", "tls@example.com")],
    ),
    Bundle::new(
        "tests",
        &[(
            "agents {\n",
            r#"tests {
    test "the API" { request "GET" "http://shop.example.com/api/items"; expect { route "api"; agents "login" "filter" } }
    test "the site answers" { request "GET" "http://shop.example.com/"; live #true; expect { answer-status 200 } }
    never "mail by HTTP" { listener "web"; upstream "mail" }
}
agents {
"#,
        )],
    ),
];
