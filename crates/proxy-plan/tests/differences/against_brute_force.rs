//! Differences of random configurations, compared with a grid of requests that both plans decide
//! on.

use crate::support::{line, plan};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::{Just, ProptestConfig, Strategy, prop, prop_assert, prop_oneof, proptest};
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestCaseError;
use proxy_plan::{AssumeHealthy, Decision, Outcome, Plan, PlanDiff, RequestHead};
use proxy_routing::Head;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;
use std::time::Duration;

const HOST_CONDITIONS: &[&str] = &[
    "a.test",
    "b.a.test",
    "*.a.test",
    "*.b.a.test",
    "*.test",
    "*",
    "[::1]",
];
const PATH_CONDITIONS: &[&str] = &[
    r#"path "/a""#,
    r#"path "/a/""#,
    r#"path "/a/b""#,
    r#"path "/""#,
    r#"path-prefix "/a""#,
    r#"path-prefix "/a/""#,
    r#"path-prefix "/a/b""#,
    r#"path-prefix "/ab""#,
    r#"path-prefix "/""#,
];
const REGEX_CONDITIONS: &[&str] = &[
    r#"path-regex "^/a""#,
    r#"path-regex "b$""#,
    r#"path-regex "^/[a-c]/[^/]+$""#,
    r#"path-regex "/b(/|$)""#,
    r#"path "/a/b""#,
    r#"path-prefix "/a""#,
    r#"path-prefix "/""#,
];
const FURTHER_CONDITIONS: &[&str] = &[
    r#"method "GET""#,
    r#"method "POST""#,
    r#"header "X-E""#,
    r#"header "X-E: 1""#,
    r#"header "X-E: 2""#,
    r#"header "X-F: 1""#,
    r#"query-param "q""#,
    r#"query-param "q=1""#,
];

const HOSTS: &[&str] = &[
    "",
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "x.a.test",
    "x.test",
    "d.other",
    "[::1]",
];
const PATHS: &[&str] = &["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/ab/b", "/zz"];
const METHODS: &[&str] = &["GET", "POST", "DELETE"];
const FIELDS: &[&[(&str, &str)]] = &[
    &[],
    &[("x-e", "9")],
    &[("x-e", "1"), ("x-e", "2")],
    &[("x-e", "2"), ("x-f", "1")],
];
const QUERIES: &[&str] = &["", "q=7", "r=1&q=1"];

/// One route: conditions of three kinds, a priority and a service.
fn route(paths: &'static [&'static str]) -> impl Strategy<Value = String> {
    let few = |all: &'static [&'static str], most: usize| subsequence(all, 0..=most);
    let service = select(vec![
        r#"upstream "u""#,
        r#"upstream "v""#,
        r#"builtin-handler "health""#,
    ]);
    let priority = prop_oneof![3 => Just(50), 1 => Just(60)];
    let conditions = (
        few(HOST_CONDITIONS, 2),
        few(paths, 2),
        few(FURTHER_CONDITIONS, 2),
    );
    (conditions, service, priority).prop_map(|((hosts, paths, further), service, priority)| {
        let hosts = hosts.iter().map(|host| format!("host {host:?}"));
        let others = paths.iter().chain(&further).map(ToString::to_string);
        let conditions: Vec<String> = hosts.chain(others).collect();
        let service_type = if service.starts_with("builtin") {
            r#"service-type "builtin"; "#
        } else {
            ""
        };
        let conditions = conditions.join("; ");
        format!("priority {priority}; matches {{ {conditions} }}; {service_type}{service}")
    })
}

/// Two configurations: unrelated, or equal except for one route that is changed, removed or added.
fn pair(paths: &'static [&'static str]) -> impl Strategy<Value = (String, String)> {
    let routes = || prop::collection::vec(route(paths), 1..5);
    let defaults = || (prop::option::of(0_usize..4), 0_usize..100);
    let change = prop_oneof![
        2 => Just(None),
        6 => (0_usize..5, prop::option::of(route(paths))).prop_map(Some)
    ];
    (routes(), routes(), change, defaults(), defaults()).prop_map(
        |(first, second, change, old, new)| {
            let before = configuration(&first, old.0);
            let after = match change {
                None => configuration(&second, new.0),
                Some((at, changed)) => {
                    let mut routes = first;
                    let at = at % (routes.len() + 1);
                    let end = (at + 1).min(routes.len());
                    routes.splice(at..end, changed);
                    configuration(&routes, if new.1 < 30 { new.0 } else { old.0 })
                }
            };
            (before, after)
        },
    )
}

fn configuration(routes: &[String], default: Option<usize>) -> String {
    let numbered = routes.iter().enumerate();
    let listed: String = numbered
        .map(|(at, route)| format!("route \"r{at}\" {{ {route} }}\n"))
        .collect();
    let default = default.filter(|at| *at < routes.len());
    let default = default.map_or_else(String::new, |at| format!("; default-route \"r{at}\""));
    format!(
        r#"
        listeners {{
            listener "one" {{ address "127.0.0.1:80"{default} }}
            listener "two" {{ address "127.0.0.1:81" }}
        }}
        routes {{ {listed} }}
        upstreams {{ upstream "u" {{ target "10.0.0.1:80" }}; upstream "v" {{ target "10.0.0.2:80" }} }}
        "#
    )
}

/// The route and the service of a decision as text, written independently of the comparison's own.
fn shown(decision: &Decision<'_>) -> String {
    let route = decision.route.map_or("-", |route| &route.id);
    match &decision.outcome {
        Outcome::Forward(upstream, _) => format!("{route} {}", upstream.name),
        Outcome::Answer(handler) => format!("{route} {handler}"),
        Outcome::Files => format!("{route} files"),
        Outcome::Redirect(to) => format!("{route} {}", to.status),
        Outcome::Respond(response) => format!("{route} {}", response.status),
        Outcome::Refuse(problem) => format!("{route} {}", problem.reason()),
    }
}

#[derive(Debug)]
struct Request {
    method: Method,
    host: &'static str,
    path: &'static str,
    query: &'static str,
    target: PathAndQuery,
    headers: HeaderMap,
}

impl Request {
    fn head(&self, listener: usize) -> RequestHead<'_> {
        RequestHead {
            listener,
            method: &self.method,
            host: self.host,
            target: Some(&self.target),
            headers: &self.headers,
            content_length: None,
            client_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_tls: false,
            is_peer_trusted: false,
        }
    }

    fn routing_head(&self) -> Head<'_> {
        Head {
            listener: "",
            method: &self.method,
            host: self.host,
            path: self.path,
            query: self.query,
            headers: &self.headers,
        }
    }
}

static GRID: LazyLock<Vec<Request>> = LazyLock::new(grid);

fn grid() -> Vec<Request> {
    let mut requests = Vec::new();
    for host in HOSTS {
        for path in PATHS {
            for query in QUERIES {
                for method in METHODS {
                    requests.extend(
                        FIELDS
                            .iter()
                            .map(|fields| request(host, path, query, method, fields)),
                    );
                }
            }
        }
        requests.push(request(host, "*", "", "OPTIONS", &[]));
    }
    requests
}

fn request(
    host: &'static str,
    path: &'static str,
    query: &'static str,
    method: &str,
    fields: &[(&'static str, &'static str)],
) -> Request {
    let target = if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{query}")
    };
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    Request {
        method: method.parse().unwrap(),
        host,
        path,
        query,
        target: target.parse().unwrap(),
        headers,
    }
}

/// Checks that no difference of the grid is missed and none is invented; with `is_exact` false only
/// that none is invented.
fn check(before: &str, after: &str, is_exact: bool) -> Result<(), TestCaseError> {
    let (old, new) = (plan(before), plan(after));
    let diff = PlanDiff::compare(&old, &new);
    prop_assert!(diff.limits.is_empty(), "{:?}", diff.limits);
    let (old_states, new_states) = (AssumeHealthy::new(&old), AssumeHealthy::new(&new));
    let decided = |plan: &Plan, states: &AssumeHealthy, head: &RequestHead<'_>| {
        shown(&plan.decide(head, states, Duration::ZERO))
    };
    for request in &*GRID {
        for (listener, name) in [(0, "one"), (1, "two")] {
            let head = request.head(listener);
            let answers = [
                decided(&old, &old_states, &head),
                decided(&new, &new_states, &head),
            ];
            let mut regions = diff.regions.iter();
            let region =
                regions.find(|region| region.contains(Some(name), &request.routing_head()));
            let context = || format!("{request:?} on {name}: {answers:?}\n{before}\n{after}");
            if answers[0] == answers[1] {
                let found = region.map(line);
                prop_assert!(found.is_none(), "invented: {found:?} for {}", context());
            } else {
                prop_assert!(region.is_some() || !is_exact, "missed: {}", context());
            }
        }
    }
    for region in &diff.regions {
        let before = region.example.ask(&old, &old_states).unwrap();
        let after = region.example.ask(&new, &new_states).unwrap();
        let routes = [before.winner, after.winner].map(|one| one.map(|one| one.route.name));
        let is_other = routes[0] != routes[1] || before.answerer != after.answerer;
        prop_assert!(
            is_other,
            "the example of {} is answered the same",
            line(region)
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_difference_of_conditions_is_missed_and_none_is_invented((before, after) in pair(PATH_CONDITIONS)) {
        check(&before, &after, true)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_difference_of_regexes_is_invented((before, after) in pair(REGEX_CONDITIONS)) {
        check(&before, &after, false)?;
    }
}
