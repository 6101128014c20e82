//! The router agrees with a simple implementation that visits every rule.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod support;

use proptest::prelude::{
    Just, ProptestConfig, Strategy, prop, prop_assert_eq, prop_oneof, proptest,
};
use proxy_routing::{
    DecidingRank, Explanation, Head, HostPattern, Lost, PathPattern, Router, Rule, canonical_path,
};
use support::{Request, request, rules};

const HOSTS: &[&str] = &["a.com", "b.a.com", "c.b.a.com", "d.org", "-"];
const HOST_PATTERNS: &[&str] = &[
    "a.com",
    "b.a.com",
    "c.b.a.com",
    "*.a.com",
    "*.b.a.com",
    "*.com",
    "*",
];
const REGEXES: &[&str] = &[
    "^/a", "^/ab?/", "b$", "/a/b", ".", "^/$", "^/(a|b)", "a/a", "ab/ab", "^/ab/", "^/a/b/", "bb",
    "/b/", "(?i)A", "^/b/a", "^/a/ab$", "[ab]/b", "b/ab/", "^/ab/b", "/ab$", "aa|bb", "^/aa",
    "^//",
];

/// The specificity of a condition, from its text alone.
fn path_specificity(path: &PathPattern) -> (u8, usize) {
    match path.setting() {
        "path" => (3, 0),
        "path-regex" => (2, 0),
        _ => (1, path.as_str().len()),
    }
}

fn host_specificity(host: &HostPattern) -> (u8, usize) {
    let text = host.to_string();
    text.strip_prefix('*')
        .map_or((2, 0), |suffix| (1, suffix.len()))
}

type Rank = (i32, (u8, usize), (u8, usize), usize, isize);

fn rank(at: usize, rule: &Rule, head: &Head<'_>) -> Option<Rank> {
    let hosts = rule.hosts.iter().filter(|host| host.matches(head.host));
    let paths = rule.paths.iter().filter(|path| path.matches(head.path));
    let headers = rule
        .headers
        .iter()
        .filter(|header| header.holds(head.headers))
        .count();
    let queries = rule
        .query_params
        .iter()
        .filter(|query| query.holds(head.query))
        .count();
    let host = hosts
        .map(host_specificity)
        .max()
        .or(rule.hosts.is_empty().then_some((0, 0)))?;
    let path = paths
        .map(path_specificity)
        .max()
        .or(rule.paths.is_empty().then_some((0, 0)))?;
    let fits = (rule.listeners.is_empty() || rule.listeners.iter().any(|one| one == head.listener))
        && (rule.headers.is_empty() || 0 < headers)
        && (rule.methods.is_empty() || rule.methods.contains(head.method))
        && (rule.query_params.is_empty() || 0 < queries);
    fits.then(|| {
        (
            rule.priority,
            host,
            path,
            usize::from(!rule.listeners.is_empty())
                + usize::from(!rule.methods.is_empty())
                + headers
                + queries,
            -isize::try_from(at).unwrap(),
        )
    })
}

/// Visits every rule.
fn reference(rules: &[Rule], head: &Head<'_>) -> Option<usize> {
    let ranked = rules
        .iter()
        .enumerate()
        .filter_map(|(at, rule)| Some((rank(at, rule, head)?, at)));
    ranked.max().map(|(_, at)| at)
}

fn path_text() -> impl Strategy<Value = String> {
    let segment = prop_oneof![Just("a"), Just("b"), Just("ab"), Just("aa"), Just("")];
    prop::collection::vec(segment, 0..5).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn words(kind: &'static str, choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    let choice = prop::sample::select(choices);
    choice.prop_map(move |text| format!("{kind}:{text}"))
}

fn any_path() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => path_text().prop_map(|text| format!("path:{text}")),
        3 => path_text().prop_map(|text| format!("prefix:{text}")),
        2 => words("regex", REGEXES),
    ]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let headers = words("header", &["X-A", "X-A=1", "X-A=2", "X-B", "X-B=1", "X-C"]);
    let methods = words("method", &["GET", "POST", "PUT"]);
    let listeners = words("listener", &["plain", "tls"]);
    let queries = words("query", &["a", "a=1", "a=2", "b", "b=1"]);
    let priority = words("priority", &["50", "50", "50", "49", "51"]);
    let parts = (
        prop::collection::vec(words("host", HOST_PATTERNS), 0..3),
        prop::collection::vec(any_path(), 0..3),
        prop::collection::vec(headers, 0..3),
        prop::collection::vec(methods, 0..2),
        prop::collection::vec(queries, 0..2),
        prop::collection::vec(listeners, 0..2),
        priority,
    );
    parts.prop_map(
        |(hosts, paths, headers, methods, queries, listeners, priority)| {
            let lists = [
                hosts,
                paths,
                headers,
                methods,
                queries,
                listeners,
                vec![priority],
            ];
            rules(&lists.concat().join(" ")).remove(0)
        },
    )
}

fn any_request() -> impl Strategy<Value = Request> {
    let method = prop::sample::select(&["GET", "POST", "HEAD", "plain:GET", "tls:POST"][..]);
    let query =
        prop::sample::select(&["", "?a", "?a=1", "?b=1&a=2", "?%61=1&c", "?c&&=&a=2&a=2"][..]);
    let headers =
        prop::sample::select(&["", "x-a=1", "x-a=2 x-b=1", "x-a=1 x-a=2", "x-c=1 x-d=2"][..]);
    let parts = (
        method,
        prop::sample::select(HOSTS),
        path_text(),
        query,
        headers,
    );
    parts.prop_map(|(method, host, path, query, headers)| {
        let path = canonical_path(&path).unwrap();
        request(&format!("{method} {host} {path}{query} {headers}"))
    })
}

fn lost_to(explanation: &Explanation, at: usize) -> Option<&Lost> {
    let lost = explanation.lost.iter().find(|(rule, _)| *rule == at);
    lost.map(|(_, lost)| lost)
}

fn because(best: Rank, own: Rank) -> DecidingRank {
    match () {
        () if best.0 != own.0 => DecidingRank::Priority,
        () if best.1 != own.1 => DecidingRank::Host,
        () if best.2 != own.2 => DecidingRank::Path,
        () if best.3 != own.3 => DecidingRank::Conditions,
        () => DecidingRank::Order,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_router_agrees_with_the_reference(
        mut rules in prop::collection::vec(any_rule(), 0..70),
        requests in prop::collection::vec(any_request(), 1..12),
        narrow in prop::bool::ANY,
    ) {
        if narrow {
            // Few distinct paths make buckets and regex lists long enough to be indexed by key.
            for rule in &mut rules {
                rule.paths.retain(|path| path.setting() == "path-regex" || path.as_str().len() < 4);
                rule.hosts.clear();
            }
        }
        let router = Router::new(rules.clone());
        for request in &requests {
            let head = request.head();
            prop_assert_eq!(router.find(&head), reference(router.rules(), &head), "{:?}", request);
        }
    }

    #[test]
    fn the_explanation_agrees_with_the_reference(
        rules in prop::collection::vec(any_rule(), 0..20),
        request in any_request(),
    ) {
        let router = Router::new(rules);
        let head = request.head();
        let explanation = router.explain(&head);
        let winner = reference(router.rules(), &head);
        prop_assert_eq!(explanation.winner, winner);
        let best = winner.and_then(|at| rank(at, &router.rules()[at], &head));
        for (at, rule) in router.rules().iter().enumerate() {
            match (lost_to(&explanation, at), rank(at, rule, &head)) {
                (None, _) => prop_assert_eq!(Some(at), winner),
                (Some(Lost::Condition(_)), own) => prop_assert_eq!(own, None),
                (Some(Lost::Outranked { by, because: found }), own) => {
                    prop_assert_eq!(Some(*by), winner);
                    prop_assert_eq!(*found, because(best.unwrap(), own.unwrap()));
                }
            }
        }
        prop_assert_eq!(router.nearest(&head).is_some(), winner.is_none() && !router.rules().is_empty());
    }

    #[test]
    fn a_narrower_rule_that_is_named_as_loser_loses_requests(
        rules in prop::collection::vec(any_rule(), 0..12),
        requests in prop::collection::vec(any_request(), 1..30),
    ) {
        let router = Router::new(rules);
        let pairs = router.narrower_losers();
        for request in &requests {
            let head = request.head();
            for pair in &pairs {
                let [loser, winner] = [pair.loser, pair.winner].map(|at| &router.rules()[at]);
                prop_assert_eq!(loser.priority, winner.priority);
                let is_single = [loser, winner]
                    .iter()
                    .all(|rule| rule.hosts.len() <= 1 && rule.paths.len() <= 1);
                let ranks = rank(pair.loser, loser, &head).zip(rank(pair.winner, winner, &head));
                let wins = ranks.is_some_and(|(low, high)| high < low);
                prop_assert_eq!(is_single && wins, false, "{:?}", pair);
            }
        }
    }

    #[test]
    fn a_rule_called_unreachable_never_wins(
        rules in prop::collection::vec(any_rule(), 0..30),
        requests in prop::collection::vec(any_request(), 1..30),
    ) {
        let router = Router::new(rules);
        let unreachable = router.unreachable(&[]);
        for request in &requests {
            let head = request.head();
            let winner = reference(router.rules(), &head);
            for (rule, by) in &unreachable {
                prop_assert_eq!(rank(*rule, &router.rules()[*rule], &head).is_some() && rank(*by, &router.rules()[*by], &head).is_none(), false);
                prop_assert_eq!(winner == Some(*rule), false, "{} by {}", rule, by);
            }
        }
    }
}
