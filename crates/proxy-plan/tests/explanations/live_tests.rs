//! Live tests: their listener, and the verdict on their answers.

use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_config::DiagnosticCode;
use proxy_model::LiveAnswer;
use proxy_plan::{LiveTest, Plan, TargetRegistry, failed_tests, live_tests};
use std::sync::Arc;
use std::time::Duration;

/// A configuration with two listeners and these tests.
fn shop(tests: &str) -> String {
    format!(
        r#"
        listeners {{
            listener "plain" {{ address "127.0.0.1:80" }}
            listener "inner" {{ address "127.0.0.1:81" }}
        }}
        routes {{ route "api" {{ matches {{ path-prefix "/api" }}; upstream "api" }} }}
        upstreams {{ upstream "api" {{ target "127.0.0.1:8080" }} }}
        tests {{ {tests} }}
        "#
    )
}

fn live(tests: &str) -> Vec<LiveTest> {
    let text = shop(tests);
    let loaded = proxy_config::parse(&text, "shop.kdl").unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(failed_tests(&loaded.model), []);
    let model = Arc::new(loaded.model);
    live_tests(&Plan::compile(
        1,
        model,
        &mut TargetRegistry::default().begin(),
    ))
}

/// The difference of a live test with this expectation.
fn difference(expected: &str, answer: &LiveAnswer) -> Option<String> {
    let tests = live(&format!(
        r#"test "a" {{ request "GET" "/api"; live #true; expect {{ {expected} }} }}"#
    ));
    tests.first().unwrap().difference(answer)
}

fn answer() -> LiveAnswer {
    let mut headers = HeaderMap::new();
    headers.insert(
        HeaderName::from_static("cache-control"),
        HeaderValue::from_static("private"),
    );
    LiveAnswer {
        status: 200,
        headers,
        body: b"the shop".to_vec(),
        certificate_days: Some(20),
        first_byte: Duration::from_millis(40),
        total: Duration::from_millis(90),
    }
}

#[test]
fn the_answer_to_a_live_test_is_compared_with_its_expectations() {
    let good = answer();
    for (holds, fails, why) in [
        (
            "answer-status 200",
            "answer-status 204",
            "the status is 200, not 204",
        ),
        (
            r#"answer-header "Cache-Control" "private""#,
            r#"answer-header "Cache-Control" "no-store""#,
            "the header `cache-control` is `private`, not `no-store`",
        ),
        (
            r#"no-answer-header "X-Internal""#,
            r#"no-answer-header "Cache-Control""#,
            "the answer has the header `cache-control` with `private`",
        ),
        (
            r#"answer-contains "shop""#,
            r#"answer-contains "cart""#,
            "the body does not contain `cart`; it begins with \"the shop\"",
        ),
        (
            "certificate-days 20",
            "certificate-days 21",
            "the certificate expires in 20 days, not in 21 or more",
        ),
        (
            "first-byte-ms 40",
            "first-byte-ms 39",
            "the first byte took 40 ms, not at most 39 ms",
        ),
        (
            "total-ms 90",
            "total-ms 89",
            "the answer took 90 ms, not at most 89 ms",
        ),
    ] {
        assert_eq!(difference(holds, &good), None, "{holds}");
        assert_eq!(difference(fails, &good).as_deref(), Some(why));
    }
    let plain = LiveAnswer {
        certificate_days: None,
        ..answer()
    };
    let found = difference("certificate-days 1", &plain);
    assert_eq!(found.as_deref(), Some("there is no certificate"));
}

#[test]
fn an_answer_that_is_only_late_fails_by_time() {
    let by_time = |expected: &str, answer: &LiveAnswer| {
        let tests = live(&format!(
            r#"test "a" {{ request "GET" "/api"; live #true; expect {{ {expected} }} }}"#
        ));
        let test = tests.first().unwrap();
        assert!(test.difference(answer).is_some(), "{expected}");
        test.fails_by_time(answer)
    };
    assert!(by_time("first-byte-ms 39; total-ms 89", &answer()));
    let timeout = LiveAnswer {
        status: 504,
        ..answer()
    };
    assert!(by_time("answer-status 200", &timeout));
    // An answer that is both wrong and late.
    assert!(!by_time("first-byte-ms 39; answer-status 204", &answer()));
    assert!(!by_time(
        r#"first-byte-ms 39; answer-contains "cart""#,
        &answer()
    ));
}

#[test]
fn without_an_expected_status_an_answer_must_not_be_a_failure() {
    let broken = LiveAnswer {
        status: 502,
        ..answer()
    };
    let found = difference(r#"route "api""#, &broken);
    assert_eq!(found.as_deref(), Some("the status is 502, not below 400"));
    let refused = live(
        r#"test "no page" { request "GET" "/"; live #true; expect { status 404; reason "route_not_found" } }"#,
    );
    let missing = LiveAnswer {
        status: 404,
        ..answer()
    };
    assert_eq!(refused[0].difference(&missing), None);
    assert!(refused[0].difference(&answer()).is_some());
}

#[test]
fn a_live_test_is_sent_with_its_host_to_the_listener_of_its_decision() {
    let tests = live(
        r#"
        test "only decided on" { request "GET" "/api"; expect { route "api" } }
        test "by name" {
            request "PUT" "/api/x?y=1"
            header "Host" "shop.example.com"
            header "X-Version" "2"
            listener "inner"
            live #true
            live-unsafe #true
            http2 #true
            upload-bytes 4096
            expect { total-ms 700 }
        }
        test "by URL" { request "GET" "http://shop.example.com:81"; live #true; expect { listener "inner" } }
        "#,
    );
    let [named, by_url] = tests.as_slice() else {
        panic!("{tests:?}");
    };
    assert_eq!((named.listener, by_url.listener), (1, 1));
    assert_eq!(named.authority.as_deref(), Some("shop.example.com"));
    assert_eq!(named.path, "/api/x?y=1");
    assert_eq!(named.headers, [("X-Version".to_owned(), "2".to_owned())]);
    assert!(named.form.http2);
    assert_eq!(named.form.upload_bytes, 4096);
    assert_eq!(named.timeout(), Duration::from_millis(700));
    assert_eq!(by_url.authority.as_deref(), Some("shop.example.com:81"));
    assert_eq!(by_url.path, "/");
}

#[test]
fn expectations_of_live_tests_need_one() {
    for settings in [
        r"expect { answer-status 200 }",
        r#"http2 #true; expect { route "api" }"#,
        r#"upload-bytes 10; expect { route "api" }"#,
        r#"live-unsafe #true; expect { route "api" }"#,
    ] {
        let test = format!(r#"test "a" {{ request "GET" "/api"; {settings} }}"#);
        let report = proxy_config::parse(&shop(&test), "shop.kdl").unwrap_err();
        let codes: Vec<_> = report.faults().iter().map(|fault| fault.code).collect();
        assert_eq!(codes, [DiagnosticCode::Conflict], "{settings}");
    }
}

/// Messages of the faults of a live test by `method`, with further settings.
fn faults(method: &str, settings: &str) -> Vec<String> {
    let test = format!(
        r#"test "a" {{ request "{method}" "/api"; live #true; {settings}; expect {{ route "api" }} }}"#
    );
    match proxy_config::parse(&shop(&test), "shop.kdl") {
        Ok(_) => Vec::new(),
        Err(report) => report
            .faults()
            .iter()
            .map(|one| one.message.clone())
            .collect(),
    }
}

#[test]
fn a_live_test_that_may_change_data_says_so() {
    for method in ["GET", "HEAD", "OPTIONS"] {
        assert_eq!(
            faults(method, "http2 #true"),
            Vec::<String>::new(),
            "{method}"
        );
        let needless = faults(method, "live-unsafe #true");
        assert_eq!(needless.len(), 1, "{method}: {needless:?}");
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PURGE", "get"] {
        assert_eq!(
            faults(method, "live-unsafe #true"),
            Vec::<String>::new(),
            "{method}"
        );
        for settings in ["http2 #true", "live-unsafe #false"] {
            let missing = faults(method, settings);
            assert_eq!(missing.len(), 1, "{method}: {missing:?}");
            let names = format!("a live test by `{method}` may change data");
            assert!(missing[0].contains(&names), "{missing:?}");
        }
    }
}

#[test]
fn more_than_32_live_tests_are_a_fault() {
    let tests = |count: usize| {
        let tests = (0..count).map(|number| {
            format!(r#"test "t{number}" {{ request "GET" "/api"; live #true; expect {{ route "api" }} }}"#)
        });
        shop(&tests.collect::<Vec<_>>().join("\n"))
    };
    proxy_config::parse(&tests(32), "shop.kdl").unwrap();
    let report = proxy_config::parse(&tests(33), "shop.kdl").unwrap_err();
    assert_eq!(report.faults()[0].code, DiagnosticCode::TooManyTests);
}

#[test]
fn the_live_test_on_the_page_about_changes_is_sent_as_it_says() {
    let page = include_str!("../../../../docs/operate/change-validation.md");
    let blocks = page.split("```kdl\n").skip(1);
    let mut texts = blocks.map(|block| block.split("```").next().unwrap_or_default());
    let text = texts.find(|text| text.contains("live #true")).unwrap();
    let loaded = proxy_config::parse(text, "change-validation.md").unwrap();
    assert_eq!(failed_tests(&loaded.model), []);
    let model = Arc::new(loaded.model);
    let plan = Plan::compile(1, model, &mut TargetRegistry::default().begin());
    let [test] = &live_tests(&plan)[..] else {
        panic!("one live test");
    };
    let dead = LiveAnswer {
        status: 502,
        ..answer()
    };
    let why = test.difference(&dead).unwrap();
    assert!(
        page.contains(&format!("live test \"{}\" fails: {why}", test.name)),
        "{why}"
    );
}
