//! Servers with different readings of paths, and the routes that each reading matches.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

use http::uri::PathAndQuery;
use http::{HeaderMap, Method};
use proptest::prelude::{ProptestConfig, proptest};
use proptest::{prop_assert, prop_assert_eq, prop_assume};
use proxy_errors::Reason;
use proxy_plan::{AssumeHealthy, Outcome, Plan, RequestHead, TargetRegistry};
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const ROUTES: [&str; 3] = ["private", "public", "@team"];

static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    let routes = ROUTES.map(|name| {
        format!(
            r#"route "{name}" {{ matches {{ path-prefix "/{name}" }}
                service-type "builtin"; builtin-handler "health" }}"#
        )
    });
    let text = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
        routes {{
            {}
            route "rest" {{ service-type "builtin"; builtin-handler "health" }}
        }}
        "#,
        routes.join("\n")
    );
    let loaded = proxy_config::parse(&text, "edge.kdl").unwrap_or_else(|report| panic!("{report}"));
    Plan::compile(
        1,
        Arc::new(loaded.model),
        &mut TargetRegistry::default().begin(),
    )
});

/// The route of a path, or why it is refused.
fn decided(path: &str) -> Result<String, Reason> {
    let target: PathAndQuery = path.parse().unwrap();
    let head = RequestHead {
        listener: 0,
        method: &Method::GET,
        host: "a.test",
        target: Some(&target),
        headers: &HeaderMap::new(),
        content_length: None,
        client_ip: Ipv4Addr::LOCALHOST.into(),
        is_tls: false,
        is_peer_trusted: false,
    };
    let decision = PLAN.decide(&head, &AssumeHealthy::new(&PLAN), Duration::ZERO);
    match decision.outcome {
        Outcome::Refuse(problem) => Err(problem.reason()),
        Outcome::Forward(..)
        | Outcome::Answer(_)
        | Outcome::Files
        | Outcome::Redirect(_)
        | Outcome::Respond(_) => Ok(decision.route.unwrap().id.to_string()),
    }
}

/// The route that a server reaches if it interprets a path as `path`.
fn reached(path: &str) -> &'static str {
    let under = |name: &str| {
        let rest = path.strip_prefix('/')?.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(())
    };
    let mut routes = ROUTES.into_iter();
    routes.find(|name| under(name).is_some()).unwrap_or("rest")
}

fn decoded(path: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
        let digits = std::str::from_utf8(&digits).unwrap();
        out.push(u8::from_str_radix(digits, 16).unwrap());
    }
    String::from_utf8(out).unwrap()
}

fn merged(path: &str) -> String {
    let mut path = path.to_owned();
    while path.contains("//") {
        path = path.replace("//", "/");
    }
    path
}

fn resolved(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

fn without_parameters(path: &str) -> String {
    let names = path
        .split('/')
        .map(|segment| segment.split(';').next().unwrap());
    names.collect::<Vec<_>>().join("/")
}

type Reader = (&'static str, fn(&str) -> String);

/// Servers, each with its steps from path to file.
const READERS: [Reader; 10] = [
    ("plain", str::to_owned),
    ("RFC 3986", resolved),
    ("decodes", decoded),
    ("nginx", |path| resolved(&merged(&decoded(path)))),
    ("nginx, merge_slashes off", |path| resolved(&decoded(path))),
    ("HAProxy, normalize-uri", |path| merged(&resolved(path))),
    ("Tomcat", |path| {
        resolved(&merged(&decoded(&without_parameters(path))))
    }),
    ("Jetty", |path| {
        resolved(&without_parameters(&decoded(path)))
    }),
    ("IIS", |path| {
        resolved(&merged(&decoded(path).replace('\\', "/")))
    }),
    ("a browser", |path| resolved(&path.replace('\\', "/"))),
];

#[test]
fn a_path_that_another_server_takes_elsewhere_is_refused() {
    for path in [
        "//private/x",
        "/private;a=b/x",
        "/public/..;/private/x",
        "/x/../private/../echo",
        "/@team%2fx",
        "/%40team/x",
        "/public%5C..%5Cprivate",
        "/public\\..\\private",
        "/public/%2e%2e/private",
        "/public;/../private",
        "/./.;private%2fprivate/",
    ] {
        assert_eq!(decided(path), Err(Reason::AmbiguousPath), "{path}");
    }
}

#[test]
fn a_path_that_every_server_takes_to_one_route_passes() {
    for (path, route) in [
        ("/private/x", "private"),
        ("/private%20x", "rest"),
        ("/public//x;a=b/..;c/%2F", "public"),
        ("/@scope%2fname", "rest"),
        ("/public/@team%2fx", "public"),
        ("/a?b=/../private", "rest"),
        ("/%2525", "rest"),
    ] {
        assert_eq!(decided(path).as_deref(), Ok(route), "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn every_server_reaches_the_route_that_was_chosen(
        path in "(/|//|/\\./|/\\.\\./)((private|public|@team|%40team|x|\\.|\\.\\.|;|;a=b|%3B|%2e)(/|//|%2f|\\\\|%5C|;|)){0,6}"
    ) {
        let Ok(route) = decided(&path) else {
            return Ok(());
        };
        // Equal by RFC 3986, and servers do not distinguish them.
        let path = path.replace("%2e", ".");
        for (name, read) in READERS {
            let read = read(&path);
            prop_assert_eq!(reached(&read), &route, "{} reads {}", name, read);
        }
    }

    #[test]
    fn a_path_is_refused_only_where_readings_differ(
        path in "(/(private|public|x|a%20b|\\.a|@b|\\.\\.\\.)){0,4}/?"
    ) {
        prop_assume!(!path.is_empty());
        let route = decided(&path);
        prop_assert!(route.is_ok(), "{path}");
        prop_assert_eq!(route.unwrap(), reached(&decoded(&path)));
    }
}
