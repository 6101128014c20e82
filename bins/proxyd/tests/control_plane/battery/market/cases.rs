//! The bundles of the market.

use super::MARKET;
use crate::battery::scene::{Case, Condition, case_of, special};

const fn case(name: &'static str, edits: &'static [(&'static str, &'static str)]) -> Case {
    case_of(&MARKET, name, edits)
}

const LOGIN: &str = "upstream \"login\" }\n    route \"search\"";
const SEARCH: &str = "upstream \"search\" }\n    route \"files\"";
const PRICES: &str = "upstream \"prices\" }\n    route \"catalog\"";
const ARCHIVE: &str = "upstream \"archive\" }\n    route \"api\"";

/// Bundles that harm clients.
pub(in crate::battery) const HARMFUL: &[Case] = &[
    case(
        "responses without their cookies",
        &[(
            LOGIN,
            "upstream \"login\"; policies { response-headers { remove \"Set-Cookie\" } } }\n    route \"search\"",
        )],
    ),
    case(
        "responses without their type",
        &[(
            LOGIN,
            "upstream \"login\"; policies { response-headers { remove \"Content-Type\" } } }\n    route \"search\"",
        )],
    ),
    case(
        "one path for all searches",
        &[(
            SEARCH,
            "upstream \"search\"; policies { rewrite { path \"/search\" } } }\n    route \"files\"",
        )],
    ),
    case(
        "a body limit below a third of the uploads",
        &[("max-body-size \"1MB\"", "max-body-size 7000")],
    ),
    case(
        "stored prices of another language",
        &[(
            PRICES,
            "upstream \"prices\"; policies { cache { ttl-secs 60 } } }\n    route \"catalog\"",
        )],
    ),
    case(
        "two routes that redirect to each other",
        &[(
            "    route \"site\"",
            "    route \"start\" { matches { path \"/start\" }; redirect \"/\" }\n    route \"home\" { matches { path \"/\" }; redirect \"/start\" }\n    route \"site\"",
        )],
    ),
    case(
        "a rate for all clients of the balancer",
        &[("; trusted-proxies \"127.0.0.0/8\"", "")],
    ),
    case(
        "a time below the slow searches",
        &[(
            "target \"@search@\"",
            "target \"@search@\"; timeouts { request-ms 250 }",
        )],
    ),
    case(
        "weights the wrong way round",
        &[
            ("\"@api@\" weight=20", "\"@api@\" weight=1"),
            ("\"@small@\" weight=1", "\"@small@\" weight=20"),
        ],
    ),
    case(
        "pages of another origin",
        &[("https://app.example.com", "https://app.example.org")],
    ),
    case(
        "a policy that forbids all scripts and styles",
        &[("default-src 'self'", "default-src 'none'")],
    ),
    case(
        "a check that a broken target passes",
        &[(
            "target \"@front@\"",
            "target \"@front@\"; target \"@zombie@\"; health-check { type \"http\" { path \"/ping\"; expected-status \"200-404\" } }",
        )],
    ),
    case(
        "the default site of a shared server",
        &[("\"catalog.internal\"", "\"catalogue.internal\"")],
    ),
    case(
        "an agent that refuses all requests",
        &[(
            PRICES,
            "upstream \"prices\"; agents \"guard\" }\n    route \"catalog\"",
        )],
    ),
    case(
        "compressed pages that do not say so",
        &[(
            ARCHIVE,
            "upstream \"archive\"; policies { response-headers { remove \"Content-Encoding\" } } }\n    route \"api\"",
        )],
    ),
];

/// Bundles that harm no client.
pub(in crate::battery) const HARMLESS: &[Case] = &[
    case(
        "comments and another order of routes",
        &[(
            "    route \"login\" { matches { path-prefix \"/login\" }; upstream \"login\" }\n    route \"search\" { matches { path-prefix \"/search\" }; upstream \"search\" }\n",
            "    // Sessions last.\n    route \"search\" { matches { path-prefix \"/search\" }; upstream \"search\" } // slow\n    route \"login\" { matches { path-prefix \"/login\" }; upstream \"login\" }\n",
        )],
    ),
    case(
        "longer times of all kinds",
        &[(
            "target \"@search@\"",
            "target \"@search@\"; timeouts { connect-secs 10; request-secs 120; read-secs 120 }",
        )],
    ),
    case(
        "the server's name in responses",
        &[(
            LOGIN,
            "upstream \"login\"; policies { response-headers { set \"X-Served-By\" \"edge\" } } }\n    route \"search\"",
        )],
    ),
    case(
        "a route in two parts",
        &[(
            SEARCH,
            "upstream \"search\" }\n    route \"search-one\" { matches { path-regex \"^/search/[0-9]*[13579]$\" }; upstream \"search\" }\n    route \"files\"",
        )],
    ),
    case(
        "a target by its name",
        &[("target \"@search@\"", "target \"@search-by-name@\"")],
    ),
    case(
        "a larger burst, and larger uploads",
        &[
            ("burst 10", "burst 50"),
            ("max-body-size \"1MB\"", "max-body-size \"5MB\""),
        ],
    ),
    case(
        "stored prices of each language",
        &[(
            PRICES,
            "upstream \"prices\"; policies { cache { ttl-secs 2; key-headers \"Accept-Language\" } } }\n    route \"catalog\"",
        )],
    ),
    case(
        "compression of what is compressed",
        &[(
            ARCHIVE,
            "upstream \"archive\"; policies { compression } }\n    route \"api\"",
        )],
    ),
    case(
        "a second attempt at reads",
        &[(
            LOGIN,
            "upstream \"login\"; policies { retry { attempts 2; on \"connect-failure\" \"reset\" \"503\" } } }\n    route \"search\"",
        )],
    ),
    case(
        "a check that all targets pass",
        &[(
            "target \"@front@\"",
            "target \"@front@\"; target \"@front2@\"; health-check { type \"http\" { path \"/\" } }",
        )],
    ),
    special(
        case("a deploy while the load doubles", &[]),
        Condition::LoadDoubles,
    ),
    special(
        case(
            "a new origin while the load doubles",
            &[(
                "\"https://app.example.com\"",
                "\"https://app.example.com\" \"https://beta.example.com\"",
            )],
        ),
        Condition::LoadDoubles,
    ),
];
