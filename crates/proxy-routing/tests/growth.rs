//! A search among ten thousand rules costs no more than among ten, however they differ.

mod support;

use proxy_routing::{Router, Work};
use support::{Request, request, rules};

const RULES: usize = 10_000;

/// Rules that differ in one kind of condition, a request for the middle one, and a request for
/// none.
const MIXES: &[(&str, &str, &str)] = &[
    ("host:h#.com", "GET h5000.com /", "GET h.com /"),
    ("host:*.h#.com", "GET a.b.h5000.com /", "GET a.b.h.com /"),
    ("path:/p#", "GET - /p5000", "GET - /p"),
    ("prefix:/p#", "GET - /p5000/a/b", "GET - /p/a/b"),
    ("prefix:/a/b/#/", "GET - /a/b/5000/c", "GET - /a/b/c"),
    (
        "host:a.com prefix:/p#",
        "GET a.com /p5000/a/b",
        "GET a.com /p/a/b",
    ),
    (
        "host:h#.com prefix:/p#",
        "GET h5000.com /p5000/a",
        "GET h5000.com /p1/a",
    ),
    (
        "path:/p header:X-A=#",
        "GET - /p x-a=5000 x-b=1",
        "GET - /p x-a=none",
    ),
    (
        "path:/p header:X-#",
        "GET - /p x-a=1 x-5000=1",
        "GET - /p x-a=none",
    ),
    ("path:/p method:M#", "M5000 - /p", "GET - /p"),
    (
        "path:/p query:a=#",
        "GET - /p?b=1&a=5000",
        "GET - /p?a=none",
    ),
    ("path:/p query:q#", "GET - /p?b=1&q5000", "GET - /p?a=none"),
    (
        "path:/p method:GET header:X-A=#",
        "GET - /p x-a=5000",
        "GET - /p x-a=none",
    ),
    (
        "path:/p header:X-All query:a=#",
        "GET - /p?a=5000 x-all=1",
        "GET - /p x-all=1",
    ),
    (
        "path:/p query:a header:X-A=#",
        "GET - /p?a x-a=5000",
        "GET - /p?a",
    ),
];

/// Like [`MIXES`], for regexes.
const REGEX_MIXES: &[(&str, &str, &str)] = &[
    ("regex:/p#/[0-9]+", "GET - /a/p1500/7", "GET - /p/7"),
    ("regex:^/[a-z]+/x#x$", "GET - /a/x1500x", "GET - /a/x"),
    ("regex:^/(a|b)/p#/", "GET - /b/p1500/", "GET - /c/p1/"),
];

fn router(mix: &str, count: usize) -> Router {
    let lines = (0..count).map(|at| mix.replace('#', &at.to_string()));
    Router::new(rules(&lines.collect::<Vec<_>>().join("\n")))
}

fn work(router: &Router, words: &str) -> (Option<usize>, Work) {
    router.find_counted(&request(words).head())
}

fn total(work: Work) -> usize {
    work.rules + work.regexes
}

#[test]
fn a_search_among_ten_thousand_compares_a_handful() {
    for (mix, hit, miss) in MIXES {
        let router = router(mix, RULES);
        let (found, on_hit) = work(&router, hit);
        let (none, on_miss) = work(&router, miss);

        assert_eq!((found, none), (Some(5000), None), "{mix}");
        assert!(total(on_hit) <= 2, "{mix} {on_hit:?}");
        assert!(total(on_miss) <= 1, "{mix} {on_miss:?}");
    }
}

#[test]
fn a_search_among_ten_thousand_regexes_runs_one() {
    let router = router("regex:^/p#/[0-9]+$", RULES);

    let ran = |regexes| Work {
        rules: regexes,
        regexes,
    };
    assert_eq!(work(&router, "GET - /p5000/7"), (Some(5000), ran(1)));
    assert_eq!(work(&router, "GET - /p/7"), (None, ran(0)));
}

#[test]
fn regexes_are_distinguished_wherever_their_letters_are() {
    for (mix, hit, miss) in REGEX_MIXES {
        let router = router(mix, 2000);
        let (found, on_hit) = work(&router, hit);
        let (none, on_miss) = work(&router, miss);

        assert_eq!((found, none), (Some(1500), None), "{mix}");
        assert!(total(on_hit) <= 6, "{mix} {on_hit:?}");
        assert!(total(on_miss) <= 1, "{mix} {on_miss:?}");
    }
}

#[test]
fn rules_that_cannot_win_are_not_compared() {
    let others = "prefix:/ header:X-A method:GET\n".repeat(RULES);
    let rules = rules(&format!("path:/p\n{others}"));
    let (found, work) = work(&Router::new(rules), "GET - /p x-a=1");

    assert_eq!((found, total(work)), (Some(0), 1));
}

#[test]
fn the_first_of_rules_that_differ_in_nothing_ends_the_search() {
    let rules = rules(&"prefix:/p method:GET query:a header:X-A\n".repeat(RULES));
    let (found, work) = work(&Router::new(rules), "GET - /p?a x-a=1");

    assert_eq!((found, total(work)), (Some(0), 1));
}

#[test]
fn a_literal_that_occurs_a_thousand_times_in_a_path_is_tried_once() {
    let router = router("regex:/p#/[0-9]+$", 100);
    let path = "/p50/".repeat(1000);
    let (_, work) = router.find_counted(&with_path(&path).head());

    assert_eq!(work.regexes, 1);
}

#[test]
fn a_parameter_that_occurs_a_thousand_times_in_a_query_is_looked_up_once() {
    let router = router("path:/p query:a=# method:POST", 100);
    let mut request = request("GET - /p");
    request.query = "a=50&".repeat(1000);
    let (_, work) = router.find_counted(&request.head());

    assert!(work.rules <= 1, "{work:?}");
}

#[test]
fn a_path_of_slashes_meets_only_the_prefixes_of_slashes() {
    let router = router("prefix:/p#", RULES);
    let (found, work) = router.find_counted(&with_path(&"/".repeat(8192)).head());

    assert_eq!((found, total(work)), (None, 0));
}

fn with_path(path: &str) -> Request {
    Request {
        listener: String::new(),
        path: path.to_owned(),
        ..request("GET - /")
    }
}

#[test]
fn the_nearest_rule_of_ten_thousand_is_near() {
    let router = router("path:/p/#/x method:GET", RULES);
    let nearest = router.nearest(&request("POST - /p/5000/x").head()).unwrap();
    assert_eq!(nearest.rule, 5000);

    let nearest = router.nearest(&request("GET - /p/5000/xy").head()).unwrap();
    assert_eq!(nearest.rule, 5000);
}

#[test]
fn ten_thousand_unreachable_rules_are_all_found() {
    let rules = rules(&"path:/p header:X-A\n".repeat(RULES));
    let unreachable = Router::new(rules).unreachable(&[]);

    assert_eq!(unreachable.len(), RULES - 1);
}
