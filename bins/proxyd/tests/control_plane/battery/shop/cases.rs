//! The bundles of the shop.

use super::SHOP;
use crate::battery::scene::{Case, Condition, case_of, special};

const fn case(name: &'static str, edits: &'static [(&'static str, &'static str)]) -> Case {
    case_of(&SHOP, name, edits)
}

const API: &str = "upstream \"api\"\n        policies";
const REPORTS: &str = "upstream \"reports\" }";
const SITE: &str = "upstream \"front\"\n        policies";
const ME: &str = "upstream \"me\" }\n    route \"stream\"";
const TLS: &str = "listener \"secure\" {\n        address \"127.0.0.1:0\"\n        protocol \"https\"\n        \
    tls { cert-file \"certificates/@cert-good@.pem\"; key-file \"certificates/@cert-good@.key\" }\n    }";

/// Bundles that harm clients.
pub(in crate::battery) const HARMFUL: &[Case] = &[
    case(
        "a route to a wrong upstream that answers 200",
        &[(API, "upstream \"front\"\n        policies")],
    ),
    case(
        "an upstream that answers 500",
        &[("\"@reports@\"", "\"@broken@\"")],
    ),
    case(
        "a page of a person from another upstream",
        &[(ME, "upstream \"front\" }\n    route \"stream\"")],
    ),
    case(
        "reports from another upstream",
        &[(REPORTS, "upstream \"front\" }")],
    ),
    case(
        "the site from another upstream",
        &[(SITE, "upstream \"reports\"\n        policies")],
    ),
    case(
        "a target of another service",
        &[("target \"@api@\"; target \"@api2@\"", "target \"@front@\"")],
    ),
    case(
        "one of two targets of another service",
        &[("target \"@api2@\"", "target \"@front@\"")],
    ),
    case(
        "a dead target of the API",
        &[("target \"@api@\"; target \"@api2@\"", "target \"@closed@\"")],
    ),
    case(
        "a dead target of reports",
        &[("\"@reports@\"", "\"@closed@\"")],
    ),
    case(
        "a dead target of personal pages",
        &[("\"@me@\"", "\"@closed@\"")],
    ),
    case(
        "an API that answers 500",
        &[("target \"@api@\"; target \"@api2@\"", "target \"@broken@\"")],
    ),
    case(
        "reports that answer 404",
        &[("\"@reports@\"", "\"@missing@\"")],
    ),
    case(
        "reports that answer a redirect",
        &[("\"@reports@\"", "\"@moved@\"")],
    ),
    case(
        "reports that answer nothing",
        &[("\"@reports@\"", "\"@empty@\"")],
    ),
    case(
        "reports whose connections break",
        &[("\"@reports@\"", "\"@gone@\"")],
    ),
    case(
        "reports of which some answer 503",
        &[("\"@reports@\"", "\"@flaky@\"")],
    ),
    case(
        "a route that is gone",
        &[(
            "matches { path-prefix \"/reports\" }",
            "matches { path-prefix \"/report\" }",
        )],
    ),
    case(
        "no route for the site",
        &[(
            "matches { path-prefix \"/\" }",
            "matches { path-prefix \"/site\" }",
        )],
    ),
    case(
        "a route for one method alone",
        &[(
            "matches { path-prefix \"/api\" }",
            "matches { path-prefix \"/api\"; method \"GET\" }",
        )],
    ),
    case(
        "a route for another host",
        &[(
            "matches { path-prefix \"/reports\" }",
            "matches { path-prefix \"/reports\"; host \"reports.example.com\" }",
        )],
    ),
    case(
        "a wrong order of routes",
        &[(
            "route \"site\" {\n",
            "route \"site\" {\n        priority \"high\"\n",
        )],
    ),
    case(
        "the back office at another path",
        &[(
            "matches { path-prefix \"/admin\" }",
            "matches { path-prefix \"/administration\" }",
        )],
    ),
    case(
        "a rate limit of the API that is too tight",
        &[("requests-per-second 1000", "requests-per-second 1; burst 1")],
    ),
    case(
        "a new rate limit of reports",
        &[(
            REPORTS,
            "upstream \"reports\"; policies { rate-limit { requests-per-second 1; burst 5 } } }",
        )],
    ),
    case(
        "a body limit below every upload",
        &[("max-body-size \"1MB\"", "max-body-size 100")],
    ),
    case(
        "a body limit below some uploads",
        &[("max-body-size \"1MB\"", "max-body-size 3000")],
    ),
    case(
        "a header limit below every request",
        &[(
            "agents { agent",
            "limits { max-header-size-bytes 60 }\nagents { agent",
        )],
    ),
    case(
        "the back office without its agent",
        &[("upstream \"back\"; agents \"guard\"", "upstream \"back\"")],
    ),
    case(
        "the API without its security header",
        &[("set \"X-Frame-Options\" \"DENY\"; remove", "remove")],
    ),
    case(
        "the site without its security header",
        &[(
            "policies { response-headers { set \"X-Frame-Options\" \"DENY\" } }",
            "",
        )],
    ),
    case(
        "a leaked internal header",
        &[("; remove \"X-Internal\"", "")],
    ),
    case(
        "a private answer made cacheable",
        &[(
            ME,
            "upstream \"me\"; policies { response-headers { set \"Cache-Control\" \"public, max-age=600\" } } }\n    route \"stream\"",
        )],
    ),
    case(
        "a private answer without its directive",
        &[("\"@me@\"", "\"@uncached@\"")],
    ),
    case(
        "a certificate of another name",
        &[
            (
                "certificates/@cert-good@.pem",
                "certificates/@cert-other@.pem",
            ),
            (
                "certificates/@cert-good@.key",
                "certificates/@cert-other@.key",
            ),
        ],
    ),
    case(
        "a certificate that expires soon",
        &[
            (
                "certificates/@cert-good@.pem",
                "certificates/@cert-expiring@.pem",
            ),
            (
                "certificates/@cert-good@.key",
                "certificates/@cert-expiring@.key",
            ),
        ],
    ),
    special(
        case(
            "no listener with TLS",
            &[
                (TLS, ""),
                (
                    "    test \"the site answers by HTTPS\" {\n        request \"GET\" \"https://shop.example.com/\"\n        live #true\n        http2 #true\n        expect { answer-contains \"front\"; certificate-days 7 }\n    }\n",
                    "",
                ),
            ],
        ),
        Condition::LosesListener,
    ),
    case(
        "streams that are held back",
        &[("\"@stream@\"", "\"@slow-stream@\"")],
    ),
    case(
        "a slow API",
        &[(
            "target \"@api@\"; target \"@api2@\"",
            "target \"@slow-api@\"",
        )],
    ),
    case(
        "one slow target of two",
        &[("target \"@api2@\"", "target \"@slow-api@\"")],
    ),
    case("slow reports", &[("\"@reports@\"", "\"@slow-reports@\"")]),
    case(
        "an address that is taken",
        &[(
            "routes {\n",
            "listeners { listener \"taken\" { address \"@taken@\" } }\nroutes {\n",
        )],
    ),
    case(
        "an agent that may be left out",
        &[("failure-mode \"closed\"", "failure-mode \"open\"")],
    ),
];

/// Bundles that harm no client.
pub(in crate::battery) const HARMLESS: &[Case] = &[
    case(
        "a comment",
        &[(
            "routes {\n",
            "routes {\n// The order is that of the paths.\n",
        )],
    ),
    case(
        "a comment at a route",
        &[(
            "    route \"me\"",
            "    // Personal pages.\n    route \"me\"",
        )],
    ),
    case(
        "another layout",
        &[(
            "agents { agent \"guard\" { failure-mode \"closed\" } }",
            "agents {\n    agent \"guard\" {\n        failure-mode \"closed\"\n    }\n}",
        )],
    ),
    case(
        "another order in the file",
        &[(
            "    upstream \"me\" { target \"@me@\" }\n    upstream \"stream\" { target \"@stream@\" }",
            "    upstream \"stream\" { target \"@stream@\" }\n    upstream \"me\" { target \"@me@\" }",
        )],
    ),
    case("nothing at all", &[]),
    case(
        "a new route",
        &[(
            "    route \"site\"",
            "    route \"news\" { matches { path-prefix \"/news\" }; upstream \"front\" }\n    route \"site\"",
        )],
    ),
    case(
        "a new route with an agent",
        &[(
            "    route \"site\"",
            "    route \"desk\" { matches { path-prefix \"/desk\" }; upstream \"back\"; agents \"guard\" }\n    route \"site\"",
        )],
    ),
    case(
        "a new route for another host",
        &[(
            "    route \"site\"",
            "    route \"shop2\" { matches { host \"shop2.example.com\"; path-prefix \"/new\" }; upstream \"front\" }\n    route \"site\"",
        )],
    ),
    case(
        "a new route with a status page",
        &[(
            "    route \"site\"",
            "    route \"status\" { matches { path \"/status\" }; service-type \"builtin\"; builtin-handler \"status\" }\n    route \"site\"",
        )],
    ),
    case(
        "a new target of reports",
        &[(
            "target \"@reports@\"",
            "target \"@reports@\"; target \"@reports2@\"",
        )],
    ),
    case(
        "a new target of the site",
        &[(
            "target \"@front@\"",
            "target \"@front@\"; target \"@front2@\"",
        )],
    ),
    case(
        "one target less",
        &[("target \"@api@\"; target \"@api2@\"", "target \"@api@\"")],
    ),
    case(
        "another target of reports",
        &[("target \"@reports@\"", "target \"@reports2@\"")],
    ),
    case(
        "another target of the site",
        &[("target \"@front@\"", "target \"@front2@\"")],
    ),
    case(
        "targets with weights",
        &[(
            "target \"@api@\"; target",
            "target \"@api@\" weight=3; target",
        )],
    ),
    case(
        "a renewed certificate",
        &[
            (
                "certificates/@cert-good@.pem",
                "certificates/@cert-renewed@.pem",
            ),
            (
                "certificates/@cert-good@.key",
                "certificates/@cert-renewed@.key",
            ),
        ],
    ),
    case(
        "a renewed certificate beside the old one",
        &[(
            "key-file \"certificates/@cert-good@.key\" }",
            "key-file \"certificates/@cert-good@.key\"; certificate { cert-file \"certificates/@cert-renewed@.pem\"; key-file \"certificates/@cert-renewed@.key\" } }",
        )],
    ),
    case(
        "a wider body limit",
        &[("max-body-size \"1MB\"", "max-body-size \"2MB\"")],
    ),
    case(
        "a much wider body limit",
        &[("max-body-size \"1MB\"", "max-body-size \"9MB\"")],
    ),
    case(
        "a wider rate limit",
        &[("requests-per-second 1000", "requests-per-second 2000")],
    ),
    case(
        "a tighter rate limit above every load",
        &[("requests-per-second 1000", "requests-per-second 500")],
    ),
    case(
        "a generous rate limit of reports",
        &[(
            REPORTS,
            "upstream \"reports\"; policies { rate-limit { requests-per-second 500 } } }",
        )],
    ),
    case(
        "a new security header",
        &[(
            REPORTS,
            "upstream \"reports\"; policies { response-headers { set \"X-Content-Type-Options\" \"nosniff\" } } }",
        )],
    ),
    case(
        "another security header beside the first",
        &[(
            "policies { response-headers { set \"X-Frame-Options\" \"DENY\" } }",
            "policies { response-headers { set \"X-Frame-Options\" \"DENY\"; set \"Referrer-Policy\" \"no-referrer\" } }",
        )],
    ),
    case(
        "a header for an upstream",
        &[(
            REPORTS,
            "upstream \"reports\"; policies { request-headers { set \"X-Site\" \"shop\" } } }",
        )],
    ),
    case(
        "one more header removed",
        &[(
            "remove \"X-Internal\"",
            "remove \"X-Internal\"; remove \"X-Powered-By\"",
        )],
    ),
    case(
        "a renamed upstream",
        &[
            ("upstream \"reports\" }", "upstream \"accounts\" }"),
            ("upstream \"reports\" {", "upstream \"accounts\" {"),
        ],
    ),
    case(
        "an upstream that is not used yet",
        &[(
            "upstreams {\n",
            "upstreams {\n    upstream \"next\" { target \"@front2@\" }\n",
        )],
    ),
    case(
        "longer timeouts",
        &[(
            "upstream \"reports\" { target",
            "upstream \"reports\" { timeouts { request-secs 90 }; target",
        )],
    ),
    case(
        "shorter timeouts above every answer",
        &[(
            "upstream \"reports\" { target",
            "upstream \"reports\" { timeouts { request-secs 20 }; target",
        )],
    ),
    case(
        "a health check",
        &[(
            "upstream \"reports\" { target",
            "upstream \"reports\" { health-check { type \"tcp\"; interval-secs 5 }; target",
        )],
    ),
    case(
        "another balancing",
        &[(
            "upstream \"api\" { target",
            "upstream \"api\" { load-balancing \"least-connections\"; target",
        )],
    ),
    case(
        "a new test",
        &[(
            "tests {\n",
            "tests {\n    test \"reports\" { request \"GET\" \"/reports\"; expect { route \"reports\" } }\n",
        )],
    ),
    case(
        "a new live test",
        &[(
            "tests {\n",
            "tests {\n    test \"reports answer\" { request \"GET\" \"/reports\"; live #true; expect { answer-contains \"reports\" } }\n",
        )],
    ),
    case(
        "a new listener",
        &[(
            "routes {\n",
            "listeners { listener \"further\" { address \"127.0.0.1:0\" } }\nroutes {\n",
        )],
    ),
    special(
        case("a deploy while the load grows", &[]),
        Condition::LoadChanges,
    ),
    special(
        case(
            "a new route while the load grows",
            &[(
                "    route \"site\"",
                "    route \"news\" { matches { path-prefix \"/news\" }; upstream \"front\" }\n    route \"site\"",
            )],
        ),
        Condition::LoadChanges,
    ),
    special(
        case(
            "a new target while the load grows",
            &[(
                "target \"@reports@\"",
                "target \"@reports@\"; target \"@reports2@\"",
            )],
        ),
        Condition::LoadChanges,
    ),
    special(
        case(
            "a new header while the load grows",
            &[(
                REPORTS,
                "upstream \"reports\"; policies { response-headers { set \"X-Content-Type-Options\" \"nosniff\" } } }",
            )],
        ),
        Condition::LoadChanges,
    ),
    special(
        case(
            "a renewed certificate while the load grows",
            &[
                (
                    "certificates/@cert-good@.pem",
                    "certificates/@cert-renewed@.pem",
                ),
                (
                    "certificates/@cert-good@.key",
                    "certificates/@cert-renewed@.key",
                ),
            ],
        ),
        Condition::LoadChanges,
    ),
];
