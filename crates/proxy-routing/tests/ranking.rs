//! Precedence among matching rules.

mod support;

use proxy_routing::Router;
use support::{request, rules};

/// Rules, and requests with the line of the rule that wins for each.
type Case = (&'static str, &'static [(&'static str, Option<usize>)]);

const CASES: &[Case] = &[
    ("", &[("GET a.com /", None)]),
    (
        "priority:0",
        &[("GET - /", Some(0)), ("OPTIONS a.com *", Some(0))],
    ),
    (
        "prefix:/
         prefix:/api
         prefix:/api/
         prefix:/api/v1
         path:/api",
        &[
            ("GET - /", Some(0)),
            ("GET - /apix", Some(0)),
            ("GET - /api", Some(4)),
            ("GET - /api/", Some(2)),
            ("GET - /api/v1", Some(3)),
            ("GET - /api/v1/x", Some(3)),
            ("GET - /api/v10", Some(2)),
            ("GET - *", None),
        ],
    ),
    (
        "priority:50
         regex:.
         prefix:/
         path:/a",
        &[
            ("GET - /a", Some(3)),
            ("GET - /b", Some(1)),
            ("GET - *", Some(1)),
        ],
    ),
    (
        "path:/a
         path:/a listener:plain
         path:/a listener:plain method:GET
         host:a.com path:/a",
        &[
            ("plain:GET - /a", Some(2)),
            ("plain:PUT - /a", Some(1)),
            ("tls:GET - /a", Some(0)),
            ("plain:GET a.com /a", Some(3)),
        ],
    ),
    (
        "path:/a
         prefix:/ priority:51",
        &[("GET - /a", Some(1))],
    ),
    (
        "path:/a host:*.a.com
         path:/a host:b.a.com
         path:/a host:*.com
         path:/a
         path:/a host:*
         prefix:/ host:b.a.com",
        &[
            ("GET b.a.com /a", Some(1)),
            ("GET c.a.com /a", Some(0)),
            ("GET a.com /a", Some(2)),
            ("GET b.org /a", Some(4)),
            ("GET - /a", Some(3)),
            ("GET b.a.com /b", Some(5)),
        ],
    ),
    (
        "prefix:/a/b
         prefix:/a host:b.com",
        &[
            ("GET b.com /a/b", Some(1)),
            ("GET b.com /a", Some(1)),
            ("GET c.com /a/b", Some(0)),
        ],
    ),
    (
        "prefix:/
         host:shop.test",
        &[("GET shop.test /", Some(1)), ("GET a.com /", Some(0))],
    ),
    (
        "prefix:/admin/long
         regex:\\.php$",
        &[
            ("GET - /admin/long/x.php", Some(1)),
            ("GET - /admin/long", Some(0)),
        ],
    ),
    (
        "path:/a header:X-A
         path:/a header:X-A header:X-B
         path:/a",
        &[
            ("GET - /a", Some(2)),
            ("GET - /a x-a=1", Some(0)),
            ("GET - /a x-b=1", Some(1)),
            ("GET - /a x-a=1 x-b=1", Some(1)),
        ],
    ),
    (
        "path:/a method:GET
         path:/a
         path:/a method:POST
         path:/a query:x",
        &[
            ("GET - /a", Some(0)),
            ("GET - /a?x", Some(0)),
            ("POST - /a", Some(2)),
            ("PUT - /a?x", Some(3)),
            ("HEAD - /a", Some(1)),
        ],
    ),
    (
        "prefix:/a path:/a/b
         prefix:/a/b",
        &[
            ("GET - /a/b", Some(0)),
            ("GET - /a/b/c", Some(1)),
            ("GET - /a", Some(0)),
        ],
    ),
    (
        "prefix:/a query:v=2 method:GET
         prefix:/a",
        &[
            ("GET - /a?v=2", Some(0)),
            ("POST - /a?v=2", Some(1)),
            ("GET - /a?v=1", Some(1)),
        ],
    ),
    (
        "host:a.com host:b.com path:/x path:/y
         host:a.com",
        &[
            ("GET b.com /y", Some(0)),
            ("GET a.com /z", Some(1)),
            ("GET b.com /z", None),
        ],
    ),
    (
        "path:/a header:X-A header:X-A header:X-A
         path:/a header:X-A header:X-B",
        &[
            ("GET - /a x-a=1 x-b=1", Some(1)),
            ("GET - /a x-a=1", Some(0)),
        ],
    ),
];

#[test]
fn the_most_specific_rule_wins() {
    for (text, requests) in CASES {
        let router = Router::new(rules(text));
        for (words, expected) in *requests {
            assert_eq!(
                router.find(&request(words).head()),
                *expected,
                "{text}\n{words}"
            );
        }
    }
}

#[test]
fn rules_are_listed_in_the_order_in_which_they_are_considered() {
    let router = Router::new(rules(
        "prefix:/
         priority:60
         path:/a
         prefix:/a host:a.com
         prefix:/a
         regex:^/",
    ));

    assert_eq!(router.matching_order(), [1, 3, 2, 5, 4, 0]);
}

#[test]
fn a_clone_finds_the_same() {
    let router = Router::new(rules("regex:^/a[0-9]"));
    let clone = router.clone();

    assert_eq!(clone.find(&request("GET - /a1").head()), Some(0));
    assert_eq!(clone.find(&request("GET - /b").head()), None);
}
