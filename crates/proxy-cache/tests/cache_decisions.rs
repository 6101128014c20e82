//! Decisions on storing and serving a response, and responses made from a stored one.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use proxy_cache::{
    CacheKey, CacheSettings, CacheStore, ClockReading, Decision, Freshness, Joined, KeyTarget,
    MissReason, RefuseReason, RequestDirectives, ResponseHead, SelectedResponse, StoreLimits,
    StoringRequest, Times, decide, may_store, select,
};
use std::sync::Arc;
use std::time::Duration;

/// 2026-11-27 00:00:00 UTC.
const NOW: u64 = 1_795_737_600;
const NOW_DATE: &str = "Fri, 27 Nov 2026 00:00:00 GMT";
const HOUR_AGO: &str = "Thu, 26 Nov 2026 23:00:00 GMT";
const HOUR_LATER: &str = "Fri, 27 Nov 2026 01:00:00 GMT";

type Fields<'a> = &'a [(&'static str, &'static str)];

/// Both clocks, `after` seconds past [`NOW`].
fn reading(after: u64) -> ClockReading {
    ClockReading {
        unix: Duration::from_secs(NOW + after),
        monotonic: Duration::from_secs(5_000 + after),
    }
}

fn map(fields: Fields<'_>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    map
}

fn settings() -> CacheSettings {
    CacheSettings {
        default_ttl: None,
        heuristic_percent: None,
        statuses: vec![200, 203, 204, 301, 308, 404, 410],
        key_headers: Vec::new(),
        ignore_query: Vec::new(),
        stale_while_revalidate: 0,
        stale_if_error: 0,
        collapse: Duration::from_secs(5),
        client_directives: true,
        cache_status: false,
    }
}

fn store_by(
    request: Fields<'_>,
    response: Fields<'_>,
    settings: &CacheSettings,
) -> Result<Freshness, RefuseReason> {
    store_status(StatusCode::OK, request, response, settings)
}

fn store_status(
    status: StatusCode,
    request: Fields<'_>,
    response: Fields<'_>,
    settings: &CacheSettings,
) -> Result<Freshness, RefuseReason> {
    let (sent, received) = (map(request), map(response));
    let request = StoringRequest {
        method: &Method::GET,
        headers: &sent,
        is_personal: false,
    };
    let times = Times {
        requested_at: reading(0),
        received_at: reading(0),
    };
    may_store(request, status, &received, settings, times).map(|(freshness, _)| freshness)
}

fn refusal(request: Fields<'_>, response: Fields<'_>) -> Option<RefuseReason> {
    store_by(request, response, &settings()).err()
}

/// Fields of a request and of its response, and the reason why the response is not stored.
type Case = (Fields<'static>, Fields<'static>, Option<RefuseReason>);

const CASES: &[Case] = &[
    (&[], &[("cache-control", "max-age=60")], None),
    (
        &[],
        &[("cache-control", "max-age=60, private")],
        Some(RefuseReason::Private),
    ),
    (
        &[],
        &[("cache-control", "max-age=60, no-store")],
        Some(RefuseReason::NoStore),
    ),
    (
        &[],
        &[("cache-control", "max-age=60, no-store, must-understand")],
        None,
    ),
    (
        &[],
        &[
            ("cache-control", "public, max-age=60"),
            ("set-cookie", "a=1"),
        ],
        Some(RefuseReason::SetCookie),
    ),
    (
        &[],
        &[
            ("cache-control", "max-age=60, no-cache=\"set-cookie\""),
            ("set-cookie", "a=1"),
        ],
        None,
    ),
    (
        &[("authorization", "Basic eA==")],
        &[("cache-control", "max-age=60")],
        Some(RefuseReason::Authorized),
    ),
    (
        &[("authorization", "Basic eA==")],
        &[("cache-control", "s-maxage=60")],
        None,
    ),
    (
        &[("authorization", "Basic eA==")],
        &[("cache-control", "public, max-age=60")],
        None,
    ),
    (
        &[],
        &[("cache-control", "max-age=60"), ("vary", "*")],
        Some(RefuseReason::Vary),
    ),
    (
        &[],
        &[
            ("cache-control", "max-age=60"),
            ("content-range", "bytes 0-1/2"),
        ],
        Some(RefuseReason::Status),
    ),
    (&[], &[], Some(RefuseReason::NoLifetime)),
    (
        &[],
        &[("cache-control", "max-age=0")],
        Some(RefuseReason::Stale),
    ),
    (
        &[],
        &[("cache-control", "max-age=0"), ("etag", "\"1\"")],
        None,
    ),
    (
        &[],
        &[("cache-control", "no-cache"), ("etag", "\"1\"")],
        None,
    ),
    (
        &[],
        &[("cache-control", "no-cache, max-age=60")],
        Some(RefuseReason::Stale),
    ),
    (&[], &[("expires", "0")], Some(RefuseReason::Stale)),
];

#[test]
fn responses_that_are_not_for_others_are_not_stored() {
    for &(request, response, expected) in CASES {
        assert_eq!(
            refusal(request, response),
            expected,
            "{request:?} {response:?}"
        );
    }
}

#[test]
fn only_a_get_with_a_listed_status_is_stored() {
    let received = map(&[("cache-control", "max-age=60")]);
    let sent = HeaderMap::new();
    let times = Times {
        requested_at: reading(0),
        received_at: reading(0),
    };
    for (method, status, expected) in [
        (Method::GET, 200, None),
        (Method::GET, 404, None),
        (Method::GET, 206, Some(RefuseReason::Status)),
        (Method::GET, 500, Some(RefuseReason::Status)),
        (Method::HEAD, 200, Some(RefuseReason::Request)),
        (Method::POST, 200, Some(RefuseReason::Request)),
    ] {
        let request = StoringRequest {
            method: &method,
            headers: &sent,
            is_personal: false,
        };
        let status = StatusCode::from_u16(status).unwrap();
        let stored = may_store(request, status, &received, &settings(), times);
        assert_eq!(stored.err(), expected, "{method} {status}");
    }
}

#[test]
fn the_lifetime_is_the_most_specific_one_that_is_stated() {
    for (response, lifetime) in [
        (&[("cache-control", "max-age=60, s-maxage=10")][..], 10),
        (
            &[("cache-control", "max-age=60"), ("expires", HOUR_LATER)],
            60,
        ),
        (&[("expires", HOUR_LATER), ("date", NOW_DATE)], 3_600),
        (&[("expires", HOUR_LATER), ("date", HOUR_AGO)], 7_200),
        (&[("cache-control", "max-age=4294967295")], 31_536_000),
    ] {
        let freshness = store_by(&[], response, &settings()).unwrap();
        assert_eq!(freshness.lifetime, lifetime, "{response:?}");
    }
}

#[test]
fn the_age_includes_the_time_in_earlier_caches() {
    let read = |fields| store_by(&[], fields, &settings()).unwrap();
    let plain = read(&[("cache-control", "max-age=60")]);
    assert_eq!(
        (
            plain.age(reading(0)),
            plain.age(reading(7)),
            plain.rest(reading(70))
        ),
        (0, 7, -10)
    );
    let aged = read(&[("cache-control", "max-age=60"), ("age", "20")]);
    assert_eq!(
        (
            aged.age(reading(1)),
            aged.is_fresh(reading(39)),
            aged.is_fresh(reading(40))
        ),
        (21, true, false)
    );
    let dated = read(&[
        ("cache-control", "max-age=7200"),
        ("date", HOUR_AGO),
        ("age", "5"),
    ]);
    assert_eq!(dated.age(reading(0)), 3_600);
    // Earlier readings do not reduce the age, and nothing overflows.
    assert_eq!(aged.age(ClockReading::default()), 20);
    let huge = read(&[
        ("cache-control", "max-age=60"),
        ("age", "99999999999"),
        ("etag", "\"1\""),
    ]);
    let end = ClockReading {
        unix: Duration::MAX,
        monotonic: Duration::MAX,
    };
    assert_eq!(huge.age(end), u32::MAX);
}

#[test]
fn a_time_of_day_that_is_set_back_keeps_nothing_fresh() {
    let freshness = store_by(&[], &[("cache-control", "max-age=60")], &settings()).unwrap();
    let month = Duration::from_hours(24 * 30);
    let set = |after, is_back: bool| {
        let ClockReading { unix, monotonic } = reading(after);
        let unix = if is_back {
            unix.saturating_sub(month)
        } else {
            unix + month
        };
        ClockReading { unix, monotonic }
    };
    let seen = [59, 60].map(|after| freshness.is_fresh(set(after, true)));
    assert_eq!(seen, [true, false]);
    assert_eq!(freshness.age(set(61, true)), 61);
    assert!(!freshness.is_fresh(set(1, false)));
}

#[test]
fn the_routes_own_lifetime_is_for_responses_without_one_to_requests_without_cookies() {
    let settings = CacheSettings {
        default_ttl: Some(30),
        ..settings()
    };
    let lifetime = |request, response| {
        store_by(request, response, &settings).map(|freshness| freshness.lifetime)
    };
    assert_eq!(lifetime(&[], &[]), Ok(30));
    assert_eq!(lifetime(&[], &[("cache-control", "max-age=5")]), Ok(5));
    let cookie = &[("cookie", "sid=1")];
    assert_eq!(lifetime(cookie, &[]), Err(RefuseReason::Cookie));
    assert_eq!(lifetime(cookie, &[("cache-control", "max-age=5")]), Ok(5));
}

/// The lifetime of a stored response in seconds, and whether it is a default one.
fn lifetime(
    settings: &CacheSettings,
    request: Fields<'_>,
    status: u16,
    response: Fields<'_>,
) -> Result<(u32, bool), RefuseReason> {
    let status = StatusCode::from_u16(status).unwrap();
    let stored = store_status(status, request, response, settings);
    stored.map(|freshness| (freshness.lifetime, freshness.is_default))
}

#[test]
fn a_heuristic_lifetime_is_a_share_of_the_time_since_the_last_change() {
    let by = |percent, default_ttl| CacheSettings {
        heuristic_percent: percent,
        default_ttl,
        ..settings()
    };
    let date = ("date", "Fri, 27 Nov 2026 12:00:00 GMT");
    let hour_ago = ("last-modified", "Fri, 27 Nov 2026 11:00:00 GMT");
    let year_ago = ("last-modified", "Thu, 27 Nov 2025 12:00:00 GMT");
    let later = ("last-modified", "Fri, 27 Nov 2026 12:00:01 GMT");
    let ten = by(Some(10), None);
    assert_eq!(lifetime(&ten, &[], 200, &[date, hour_ago]), Ok((360, true)));
    // The maximum is a day.
    assert_eq!(
        lifetime(&ten, &[], 200, &[date, year_ago]),
        Ok((86_400, true))
    );
    let half = by(Some(50), Some(30));
    assert_eq!(
        lifetime(&half, &[], 200, &[date, hour_ago]),
        Ok((1_800, true))
    );
    assert_eq!(lifetime(&half, &[], 200, &[date]), Ok((30, true)));
    // A stated lifetime has precedence.
    for own in [
        ("cache-control", "max-age=5"),
        ("expires", "Fri, 27 Nov 2026 12:00:05 GMT"),
    ] {
        assert_eq!(
            lifetime(&ten, &[], 200, &[date, hour_ago, own]),
            Ok((5, false))
        );
    }
    let none = Err(RefuseReason::NoLifetime);
    for fields in [
        &[date][..],
        &[date, later],
        &[date, ("last-modified", "yesterday")],
        &[date, hour_ago, year_ago],
    ] {
        assert_eq!(lifetime(&ten, &[], 200, fields), none, "{fields:?}");
    }
    assert_eq!(lifetime(&by(None, None), &[], 200, &[date, hour_ago]), none);
    // A status that is not cacheable by default needs `public`.
    let listed = CacheSettings {
        statuses: vec![200, 302],
        ..ten.clone()
    };
    assert_eq!(lifetime(&listed, &[], 302, &[date, hour_ago]), none);
    let public = ("cache-control", "public");
    assert_eq!(
        lifetime(&listed, &[], 302, &[date, hour_ago, public]),
        Ok((360, true))
    );
    // A response to a request with credentials or a cookie may be for one client only.
    for (request, reason) in [
        (("cookie", "sid=1"), RefuseReason::Cookie),
        (("authorization", "Basic eA=="), RefuseReason::Authorized),
    ] {
        let stored = lifetime(&ten, &[request], 200, &[date, hour_ago]);
        assert_eq!(stored, Err(reason));
    }
}

#[test]
fn stale_times_do_not_override_a_duty_to_validate() {
    let settings = CacheSettings {
        stale_while_revalidate: 10,
        stale_if_error: 20,
        ..settings()
    };
    for (control, expected) in [
        ("max-age=1", (10, 20)),
        (
            "max-age=1, stale-while-revalidate=3, stale-if-error=4",
            (3, 4),
        ),
        ("max-age=1, must-revalidate, stale-if-error=4", (0, 0)),
        ("max-age=1, proxy-revalidate", (0, 0)),
        ("s-maxage=1", (0, 0)),
        ("s-maxage=1, stale-while-revalidate=3", (3, 0)),
    ] {
        let response: &[(&'static str, &'static str)] = &[("cache-control", control)];
        let freshness = store_by(&[], response, &settings).unwrap();
        let stale = (freshness.stale_while_revalidate, freshness.stale_if_error);
        assert_eq!(stale, expected, "{control}");
    }
}

/// The store with one response to a request without fields, received at [`NOW`].
fn stored(fields: Fields<'_>, body: &[u8]) -> (Arc<CacheStore>, Arc<CacheKey>) {
    let limits = StoreLimits {
        max_bytes: 8 << 20,
        max_object_bytes: 1 << 20,
    };
    let store = Arc::new(CacheStore::new(limits));
    let target = KeyTarget {
        scheme: "http",
        host: "a.example",
        path: "/",
        query: None,
    };
    let sent = HeaderMap::new();
    let key = Arc::new(CacheKey::new(target, &settings(), b"r", &sent, b""));
    let Joined::Fill(fill) = store.join(&key, &sent, reading(0)) else {
        panic!("the first one fetches");
    };
    let received = map(fields);
    let request = StoringRequest {
        method: &Method::GET,
        headers: &sent,
        is_personal: false,
    };
    let times = Times {
        requested_at: reading(0),
        received_at: reading(0),
    };
    let (freshness, variant) =
        may_store(request, StatusCode::OK, &received, &settings(), times).unwrap();
    let head = ResponseHead::new(StatusCode::OK, &received, freshness);
    let published = fill.publish(head, variant, body.into(), reading(0));
    assert_eq!(&published.body[..], body);
    (store, key)
}

fn decision(fields: Fields<'_>, request: Fields<'_>, after: u64) -> Decision {
    let (store, key) = stored(fields, b"x");
    let request = map(request);
    let found = store.find(&key, &request);
    decide(
        &RequestDirectives::read(&request),
        &found,
        &settings(),
        reading(after),
    )
}

#[test]
fn a_stored_response_is_served_while_it_is_fresh() {
    let fields: Fields<'_> = &[
        ("cache-control", "max-age=10, stale-while-revalidate=5"),
        ("etag", "\"1\""),
    ];
    assert_eq!(decision(fields, &[], 9), Decision::Hit);
    assert_eq!(decision(fields, &[], 10), Decision::StaleWhileRevalidate);
    assert_eq!(decision(fields, &[], 15), Decision::Revalidate);
    let without: Fields<'_> = &[("cache-control", "max-age=10")];
    assert_eq!(
        decision(without, &[], 10),
        Decision::Miss(MissReason::Stale)
    );
    let only: Fields<'_> = &[("cache-control", "only-if-cached")];
    assert_eq!(decision(without, only, 9), Decision::Hit);
    assert_eq!(decision(without, only, 10), Decision::OnlyIfCached);
}

#[test]
fn request_cache_directives_narrow_and_widen_the_served_responses() {
    let fields: Fields<'_> = &[("cache-control", "max-age=10"), ("etag", "\"1\"")];
    let wish = |wish| decision(fields, &[("cache-control", wish)], 5);
    assert_eq!(wish("no-cache"), Decision::Revalidate);
    assert_eq!(wish("max-age=4"), Decision::Revalidate);
    assert_eq!(wish("max-age=5"), Decision::Hit);
    assert_eq!(wish("min-fresh=6"), Decision::Revalidate);
    assert_eq!(wish("min-fresh=5"), Decision::Hit);
    let stale = |control, wish| {
        decision(
            &[("cache-control", control), ("etag", "\"1\"")],
            &[("cache-control", wish)],
            15,
        )
    };
    assert_eq!(stale("max-age=10", "max-stale"), Decision::Hit);
    assert_eq!(stale("max-age=10", "max-stale=6"), Decision::Hit);
    assert_eq!(stale("max-age=10", "max-stale=5"), Decision::Revalidate);
    assert_eq!(
        stale("max-age=10, must-revalidate", "max-stale"),
        Decision::Revalidate
    );
}

fn answer(fields: Fields<'_>, request: Fields<'_>) -> SelectedResponse {
    let (store, key) = stored(fields, b"0123456789");
    let request = map(request);
    let found = store.find(&key, &request).response.unwrap();
    select(&Method::GET, &request, &found, reading(3))
}

const TAGGED: Fields<'static> = &[
    ("cache-control", "max-age=60"),
    ("etag", "\"a,b\""),
    ("last-modified", HOUR_AGO),
    ("content-type", "text/plain"),
];

#[test]
fn conditions_are_answered_from_the_store() {
    for (request, status) in [
        (&[("if-none-match", "\"a,b\"")][..], 304),
        (&[("if-none-match", "\"x\", W/\"a,b\"")], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", "\"a\"")], 200),
        (&[("if-none-match", "a,b")], 200),
        (
            &[("if-none-match", "\"x\""), ("if-modified-since", NOW_DATE)],
            200,
        ),
        (&[("if-modified-since", HOUR_AGO)], 304),
        (
            &[("if-modified-since", "Thu, 26 Nov 2026 22:59:59 GMT")],
            200,
        ),
        (&[("if-modified-since", "yesterday")], 200),
    ] {
        let response = answer(TAGGED, request);
        assert_eq!(response.status, status, "{request:?}");
        assert_eq!(response.headers["age"], "3");
        assert_eq!(response.headers["etag"], "\"a,b\"");
        assert_eq!(response.headers.contains_key("content-type"), status == 200);
        assert_eq!(response.body.is_empty(), status == 304);
    }
}

#[test]
fn any_stored_response_meets_an_asterisk() {
    let untagged: Fields<'_> = &[("cache-control", "max-age=60")];
    assert_eq!(answer(untagged, &[("if-none-match", "*")]).status, 304);
    let other = answer(untagged, &[("if-none-match", "\"*\"")]);
    assert_eq!(other.status, 200);
}

#[test]
fn fields_for_the_next_proxy_are_not_stored() {
    let fields: Fields<'_> = &[
        ("cache-control", "max-age=60"),
        ("proxy-authenticate", "Basic"),
        ("proxy-authentication-info", "a"),
        ("www-authenticate", "Basic"),
    ];
    let response = answer(fields, &[]);
    let names: Vec<_> = response.headers.keys().map(HeaderName::as_str).collect();
    assert!(!names.iter().any(|name| name.starts_with("proxy-")));
    assert!(names.contains(&"www-authenticate"));
}

#[test]
fn ranges_are_cut_out_of_the_stored_body() {
    for (range, status, body, content_range) in [
        ("bytes=0-0", 206, "0", Some("bytes 0-0/10")),
        ("bytes=8-", 206, "89", Some("bytes 8-9/10")),
        (
            "bytes=8-99999999999999999999",
            206,
            "89",
            Some("bytes 8-9/10"),
        ),
        ("bytes=-3", 206, "789", Some("bytes 7-9/10")),
        ("bytes=-30", 206, "0123456789", Some("bytes 0-9/10")),
        ("bytes=10-", 416, "", Some("bytes */10")),
        ("bytes=-0", 416, "", Some("bytes */10")),
        ("bytes=5-4", 200, "0123456789", None),
        ("bytes=0-1,3-4", 200, "0123456789", None),
        ("lines=0-1", 200, "0123456789", None),
        ("bytes=a-", 200, "0123456789", None),
    ] {
        let response = answer(TAGGED, &[("range", range)]);
        let text = std::str::from_utf8(&response.body).unwrap();
        assert_eq!((response.status.as_u16(), text), (status, body), "{range}");
        let shown = response.headers.get("content-range");
        assert_eq!(
            shown.map(|value| value.to_str().unwrap()),
            content_range,
            "{range}"
        );
    }
    for (condition, status) in [
        ("\"a,b\"", 206),
        ("W/\"a,b\"", 200),
        ("\"x\"", 200),
        (HOUR_AGO, 206),
        (NOW_DATE, 200),
    ] {
        let response = answer(TAGGED, &[("range", "bytes=0-0"), ("if-range", condition)]);
        assert_eq!(response.status, status, "{condition}");
    }
}

#[test]
fn a_date_in_if_range_is_compared_only_if_the_response_is_younger() {
    for (date, status) in [(HOUR_AGO, 200), (NOW_DATE, 206)] {
        let fields: Fields<'_> = &[
            ("cache-control", "max-age=7200"),
            ("last-modified", HOUR_AGO),
            ("date", date),
        ];
        let response = answer(fields, &[("range", "bytes=0-0"), ("if-range", HOUR_AGO)]);
        assert_eq!(response.status, status, "{date}");
    }
}
