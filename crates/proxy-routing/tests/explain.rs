//! Explanation of a routing decision, and the nearest rule.

mod support;

use proxy_routing::{ConditionKind, DecidingRank, Lost, Router, Unmet, regex_is_a_prefix};
use support::{request, rules};

fn unmet(kind: ConditionKind, wanted: &str, got: &str) -> Lost {
    Lost::Condition(Unmet {
        kind,
        wanted: wanted.to_owned(),
        got: got.to_owned(),
    })
}

#[test]
fn every_rejected_rule_has_its_first_unmet_condition_or_its_better() {
    let router = Router::new(rules(
        "host:a.com host:*.b.com
         path:/x prefix:/y regex:^/z
         method:PUT method:POST
         header:X-A header:X-B=1
         query:v=1
         prefix:/ priority:60
         prefix:/
         prefix:/api
         path:/api",
    ));
    let request = request("GET c.com /api?v=2&w=3 x-b=2");

    let by = |because| Lost::Outranked { by: 5, because };
    assert_eq!(router.explain(&request.head()).winner, Some(5));
    assert_eq!(
        router.explain(&request.head()).lost,
        [
            (0, unmet(ConditionKind::Host, "a.com or *.b.com", "c.com")),
            (
                1,
                unmet(
                    ConditionKind::Path,
                    "path \"/x\" or path-prefix \"/y\" or path-regex \"^/z\"",
                    "/api"
                )
            ),
            (2, unmet(ConditionKind::Method, "PUT or POST", "GET")),
            (3, unmet(ConditionKind::Header, "x-a or x-b: 1", "x-b: 2")),
            (4, unmet(ConditionKind::Query, "v=1", "v=2")),
            (6, by(DecidingRank::Priority)),
            (7, by(DecidingRank::Priority)),
            (8, by(DecidingRank::Priority)),
        ]
    );
}

#[test]
fn a_rejected_rule_has_the_comparison_that_decided() {
    let cases = [
        ("path:/a\nprefix:/a", DecidingRank::Path),
        ("path:/a host:a.com\npath:/a host:*.com", DecidingRank::Host),
        ("path:/a header:X-A\npath:/a", DecidingRank::Conditions),
        ("path:/a\npath:/a", DecidingRank::Order),
        ("prefix:/ priority:51\npath:/a", DecidingRank::Priority),
    ];
    for (text, because) in cases {
        let explanation = Router::new(rules(text)).explain(&request("GET a.com /a x-a=1").head());
        assert_eq!(
            explanation.lost,
            [(1, Lost::Outranked { by: 0, because })],
            "{text}"
        );
    }
}

#[test]
fn missing_values_are_shown_and_secret_ones_are_not() {
    let explain = |text, words| {
        Router::new(rules(text))
            .explain(&request(words).head())
            .lost
    };

    assert_eq!(
        explain("host:a.com", "GET - /"),
        [(0, unmet(ConditionKind::Host, "a.com", "none"))]
    );
    assert_eq!(
        explain("header:Authorization=x", "GET - / authorization=secret"),
        [(
            0,
            unmet(
                ConditionKind::Header,
                "authorization: x",
                "authorization: (hidden)"
            )
        )]
    );
    assert_eq!(
        explain("query:a", "GET - /?b=1"),
        [(0, unmet(ConditionKind::Query, "a", "none"))]
    );
}

#[test]
fn the_nearest_rule_fails_least_and_shares_most_of_the_path() {
    let router = Router::new(rules(
        "host:a.com path:/api/v1/users method:GET
         host:a.com path:/api/v1/orders method:GET
         host:b.com path:/api/v1/items method:GET",
    ));
    let cases = [
        ("POST a.com /api/v1/orders", 1, ConditionKind::Method),
        ("GET a.com /api/v1/order", 1, ConditionKind::Path),
        ("GET a.com /api/v1/usersx", 0, ConditionKind::Path),
        ("GET c.com /api/v1/items", 2, ConditionKind::Host),
    ];
    for (words, rule, kind) in cases {
        let nearest = router.nearest(&request(words).head()).unwrap();
        assert_eq!((nearest.rule, nearest.unmet.kind), (rule, kind), "{words}");
    }
    assert_eq!(
        router.nearest(&request("GET a.com /api/v1/users").head()),
        None
    );
    assert_eq!(
        Router::new(Vec::new()).nearest(&request("GET - /").head()),
        None
    );
}

#[test]
fn a_rule_that_another_always_beats_is_unreachable() {
    let covered = [
        "path:/a\npath:/a",
        "prefix:/ priority:51\npath:/a/b host:a.com",
        "prefix:/a priority:51\nprefix:/a/b",
        "priority:51\nregex:^/a",
        "host:*.com priority:51\nhost:*.a.com path:/x",
        "host:* priority:51\nhost:a.com",
        "path:/a header:X-A header:X-B\npath:/a header:X-A",
        "path:/a header:X-A priority:51\npath:/a header:X-A=1",
        "path:/a query:x query:x=1\npath:/a query:x=1",
        "host:a.com prefix:/\nhost:a.com method:GET",
        "prefix:/ priority:51\nregex:^/a",
        "path:/a path:/b method:GET method:POST\npath:/b method:POST",
        "prefix:/a priority:51\npath:/a/x path:/a/y",
    ];
    for text in covered {
        assert_eq!(
            Router::new(rules(text)).unreachable(&[]),
            [(1, 0)],
            "{text}"
        );
    }
}

#[test]
fn a_rule_that_can_win_is_not_called_unreachable() {
    let free = [
        "prefix:/\npath:/a",
        "path:/a\nprefix:/a",
        "path:/a method:GET\npath:/a",
        "path:/a header:X-A\npath:/a header:X-A header:X-B",
        "path:/a\npath:/a header:X-A",
        "path:/a\npath:/a method:GET",
        "path:/a query:x\npath:/a query:x=1 query:y",
        "prefix:/\nregex:^/a",
        "prefix:/\nhost:a.com",
        "host:*.com\nhost:a.com",
        "prefix:/a/ priority:51\nprefix:/a",
        "host:*.a.com priority:51\nhost:a.com",
        "prefix:/a priority:51\npath:/a path:/b",
        "path:/a header:X-A=1 priority:51\npath:/a header:X-A",
        "regex:^/a priority:51\nregex:^/ab",
    ];
    for text in free {
        assert_eq!(Router::new(rules(text)).unreachable(&[]), [], "{text}");
    }
}

#[test]
fn a_narrower_rule_that_loses_by_an_earlier_comparison_is_named() {
    use ConditionKind::{Header, Method, Path};
    let cases = [
        (
            "path:/health\nhost:shop.test",
            Some((DecidingRank::Host, Path)),
        ),
        (
            "prefix:/api\nhost:shop.test prefix:/",
            Some((DecidingRank::Host, Path)),
        ),
        (
            "regex:^/a\nhost:shop.test",
            Some((DecidingRank::Host, Path)),
        ),
        (
            "host:*.b.com header:X-A\nhost:a.b.com",
            Some((DecidingRank::Host, Header)),
        ),
        (
            "method:POST\nprefix:/api",
            Some((DecidingRank::Path, Method)),
        ),
        (
            "prefix:/ header:X-Canary\nprefix:/api",
            Some((DecidingRank::Path, Header)),
        ),
        ("path:/health priority:51\nhost:shop.test", None),
        ("prefix:/\nhost:shop.test", None),
        ("host:a.com path:/health\nhost:b.com", None),
        ("method:POST\nprefix:/api method:GET", None),
        ("prefix:/api\nhost:shop.test path:/other", None),
        ("path:/health\npath:/health host:shop.test", None),
    ];
    for (text, expected) in cases {
        let found = Router::new(rules(text)).narrower_losers();
        let found: Vec<_> = found
            .iter()
            .map(|pair| (pair.loser, pair.winner, pair.because, pair.narrower))
            .collect();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(because, kind)| (0, 1, because, kind))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn requests_that_another_rule_takes_by_the_new_order_are_named() {
    let cases = [
        ("prefix:/\nhost:shop.test", Some((0, 1))),
        ("prefix:/api\nregex:^/api/x", None),
        ("prefix:/\nregex:^/api/x", Some((0, 1))),
        ("path:/a\npath:/a method:GET", Some((0, 1))),
        ("prefix:/a host:a.com\nprefix:/a", None),
        ("prefix:/ priority:51\nhost:shop.test", None),
        ("host:a.com prefix:/\nhost:b.com path:/a", None),
    ];
    for (text, expected) in cases {
        let found = Router::new(rules(text)).reordered();
        let found: Vec<_> = found.iter().map(|pair| (pair.before, pair.now)).collect();
        assert_eq!(found, Vec::from_iter(expected), "{text}");
    }
}

#[test]
fn regexes_that_are_prefixes_are_known() {
    let cases = [
        ("^/api/", Some("/api/")),
        ("^/api/.*", Some("/api/")),
        ("^/api/.*$", Some("/api/")),
        ("^/api/(.*)$", Some("/api/")),
        ("^/api(/.*)?$", Some("/api")),
        ("^/api(?:/.*)?$", Some("/api")),
        ("^/api(/|$)", Some("/api")),
        ("^/api(?:/|$).*", Some("/api")),
        (r"^/a\.b/", Some("/a.b/")),
        ("^/", Some("/")),
        ("^/.*", Some("/")),
        ("^/api", None),
        ("^/api.*", None),
        ("^/api$", None),
        ("/api/", None),
        ("^/api/.+", None),
        ("^/api/[0-9]*", None),
        ("^/api(/.*)?", None),
        ("^/(api|v1)/", None),
        ("(?i)^/api/", None),
        ("^/a b/", None),
        ("^api/", None),
        ("(", None),
        ("", None),
    ];
    for (regex, expected) in cases {
        assert_eq!(regex_is_a_prefix(regex).as_deref(), expected, "{regex}");
    }
}
