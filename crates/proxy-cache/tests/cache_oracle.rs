//! Comparison with `http-cache-semantics`, on random requests and responses.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_cache_semantics::{CacheOptions, CachePolicy};
use httpdate::fmt_http_date;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proxy_cache::{
    CacheKey, CacheRequest, CacheSettings, CacheStore, ClockReading, Decision, Joined, KeyTarget,
    RequestDirectives, ResponseHead, StoreLimits, StoringRequest, Times, bypass, decide, may_store,
};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NOW: u64 = 1_795_737_600;
/// A quarter is exact in binary, so that both round alike.
const HEURISTIC_PERCENT: u32 = 25;

/// A response, the request that fetched it, and a later request.
#[derive(Clone, Debug)]
struct Exchange {
    first: HeaderMap,
    status: u16,
    response: HeaderMap,
    second: HeaderMap,
    /// Seconds between the requests.
    after: u64,
}

/// Both clocks, `after` seconds past [`NOW`].
fn reading(after: u64) -> ClockReading {
    ClockReading {
        unix: Duration::from_secs(NOW + after),
        monotonic: Duration::from_secs(5_000 + after),
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn fields(list: Vec<(&'static str, String)>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in list {
        let value = HeaderValue::try_from(value).unwrap();
        map.append(HeaderName::from_static(name), value);
    }
    map
}

fn with_value(name: &str, value: Option<u64>) -> Option<String> {
    value.map(|value| format!("{name}={value}"))
}

fn joined(directives: impl IntoIterator<Item = String>) -> Option<(&'static str, String)> {
    let all: Vec<String> = directives.into_iter().collect();
    (!all.is_empty()).then(|| ("cache-control", all.join(", ")))
}

fn owned(words: Vec<&'static str>) -> impl Iterator<Item = String> {
    words.into_iter().map(str::to_owned)
}

/// Fields of a response. Omitted are those that both implementations understand differently on
/// purpose: `proxy-revalidate`, `must-understand` and duplicate directives.
fn response() -> impl Strategy<Value = HeaderMap> {
    let words = [
        "public",
        "private",
        "no-store",
        "no-cache",
        "must-revalidate",
    ];
    (
        subsequence(words.to_vec(), 0..=2),
        (option::of(0..120_u64), option::of(0..120_u64)),
        option::of(-100..200_i64),
        option::of(0..60_u64),
        (any::<bool>(), any::<bool>(), any::<bool>()),
        option::of(-100..1_500_i64),
    )
        .prop_map(
            |(words, (max_age, s_maxage), expires, age, (date, varies, cookie), unchanged)| {
                let times = with_value("max-age", max_age)
                    .into_iter()
                    .chain(with_value("s-maxage", s_maxage));
                let mut list: Vec<_> = joined(owned(words).chain(times)).into_iter().collect();
                if let Some(expires) = expires {
                    let until = fmt_http_date(at(NOW.saturating_add_signed(expires)));
                    list.push(("expires", until));
                }
                list.extend(unchanged.map(|unchanged| {
                    let since = at(NOW.saturating_add_signed(-unchanged));
                    ("last-modified", fmt_http_date(since))
                }));
                list.extend(age.map(|age| ("age", age.to_string())));
                if date {
                    list.push(("date", fmt_http_date(at(NOW))));
                }
                if varies {
                    list.push(("vary", "x-kind".to_owned()));
                }
                if cookie {
                    list.push(("set-cookie", "sid=1".to_owned()));
                }
                fields(list)
            },
        )
}

/// Fields of a request; with `max-stale` if `may_be_stale`.
fn request(may_be_stale: bool) -> impl Strategy<Value = HeaderMap> {
    let stale = option::of(0..100_u64).prop_map(move |stale| stale.filter(|_| may_be_stale));
    (
        subsequence(vec!["no-store", "no-cache"], 0..=1),
        (option::of(0..60_u64), option::of(0..60_u64), stale),
        option::of(select(vec!["a", "b"])),
        proptest::bool::weighted(0.2),
        vec(Just(()), 0..3),
    )
        .prop_map(
            |(words, (max_age, min_fresh, max_stale), kind, is_authorized, rare)| {
                // Most requests have no directives.
                let words = if rare.is_empty() { words } else { Vec::new() };
                let times = with_value("max-age", max_age.filter(|_| rare.len() == 1))
                    .into_iter()
                    .chain(with_value(
                        "min-fresh",
                        min_fresh.filter(|_| rare.is_empty()),
                    ))
                    .chain(with_value("max-stale", max_stale));
                let mut list: Vec<_> = joined(owned(words).chain(times)).into_iter().collect();
                list.extend(kind.map(|kind| ("x-kind", kind.to_owned())));
                if is_authorized {
                    list.push(("authorization", "Basic eA==".to_owned()));
                }
                fields(list)
            },
        )
}

fn exchange(may_be_stale: bool) -> impl Strategy<Value = Exchange> {
    (
        request(false),
        select(vec![200, 203, 204, 301, 308, 404, 410]),
        response(),
        request(may_be_stale),
        0..150_u64,
    )
        .prop_map(|(first, status, response, second, after)| Exchange {
            first,
            status,
            response,
            second,
            after,
        })
}

fn bypasses(headers: &HeaderMap) -> bool {
    let request = CacheRequest {
        method: &Method::GET,
        headers,
        has_body: false,
        is_plain_target: true,
    };
    bypass(request, &RequestDirectives::read(headers)).is_some()
}

/// Returns true if the second request is a hit in this cache.
fn is_hit(exchange: &Exchange) -> bool {
    let Exchange {
        first,
        status,
        response,
        second,
        after,
    } = exchange;
    let settings = CacheSettings {
        default_ttl: None,
        heuristic_percent: Some(HEURISTIC_PERCENT),
        statuses: vec![200, 203, 204, 301, 308, 404, 410],
        key_headers: Vec::new(),
        ignore_query: Vec::new(),
        stale_while_revalidate: 0,
        stale_if_error: 0,
        collapse: Duration::ZERO,
        client_directives: true,
        cache_status: false,
    };
    if bypasses(first) || bypasses(second) {
        return false;
    }
    let limits = StoreLimits {
        max_bytes: 1 << 20,
        max_object_bytes: 1 << 10,
    };
    let store = Arc::new(CacheStore::new(limits));
    let target = KeyTarget {
        scheme: "http",
        host: "a.example",
        path: "/",
        query: None,
    };
    let key = Arc::new(CacheKey::new(target, &settings, b"r", first, b""));
    let Joined::Fill(fill) = store.join(&key, first, reading(0)) else {
        panic!("the store is empty");
    };
    let request = StoringRequest {
        method: &Method::GET,
        headers: first,
        is_personal: false,
    };
    let times = Times {
        requested_at: reading(0),
        received_at: reading(0),
    };
    let status = StatusCode::from_u16(*status).unwrap();
    let Ok((freshness, variant)) = may_store(request, status, response, &settings, times) else {
        return false;
    };
    let head = ResponseHead::new(status, response, freshness);
    drop(fill.publish(head, variant, (*b"x").into(), reading(0)));
    let found = store.find(&key, second);
    let directives = RequestDirectives::read(second);
    decide(&directives, &found, &settings, reading(*after)) == Decision::Hit
}

fn has_heuristic_lifetime(response: &HeaderMap) -> bool {
    let directives = response.get("cache-control");
    let directives = directives.map_or("", |value| value.to_str().unwrap());
    let states_one = ["max-age", "s-maxage"]
        .iter()
        .any(|name| directives.contains(name));
    !states_one && !response.contains_key("expires")
}

fn has_credentials(request: &HeaderMap) -> bool {
    request.contains_key("authorization")
}

/// Returns true if the second request is a hit in the other implementation.
fn is_hit_there(exchange: &Exchange) -> bool {
    let request = |headers: &HeaderMap| {
        let mut request = Request::get("http://a.example/").body(()).unwrap();
        request.headers_mut().clone_from(headers);
        request
    };
    let mut response = Response::builder()
        .status(exchange.status)
        .body(())
        .unwrap();
    response.headers_mut().clone_from(&exchange.response);
    let options = CacheOptions {
        shared: true,
        cache_heuristic: 0.25,
        ..CacheOptions::default()
    };
    let first = request(&exchange.first);
    let policy = CachePolicy::new_options(&first, &response, at(NOW), options);
    let second = request(&exchange.second);
    let before = policy.before_request(&second, at(NOW + exchange.after));
    policy.is_storable() && before.satisfies_without_revalidation()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_serve_the_same_stored_responses(exchange in exchange(false)) {
        // This cache never stores a response with a cookie, and never answers a request with
        // `no-store`. A heuristic lifetime does not apply to requests with credentials either.
        let is_own_rule = exchange.response.contains_key("set-cookie")
            || bypasses(&exchange.second)
            || has_heuristic_lifetime(&exchange.response)
                && (has_credentials(&exchange.first) || has_credentials(&exchange.second));
        let expected = is_hit_there(&exchange) && !is_own_rule;
        prop_assert_eq!(is_hit(&exchange), expected);
    }

    #[test]
    fn no_more_is_served_stale_than_there(exchange in exchange(true)) {
        prop_assert!(!is_hit(&exchange) || is_hit_there(&exchange));
    }
}
