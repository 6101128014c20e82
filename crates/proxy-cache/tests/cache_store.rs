//! The store: bounds, variants, fills, purges.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use proxy_cache::{
    CacheKey, CacheSettings, CacheStore, ClockReading, Fill, FillWait, Joined, KeyTarget, Purge,
    ResponseHead, StoreLimits, StoredResponse, StoringRequest, Times, may_store,
};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const NOW: u64 = 1_795_737_600;

type Clear = fn(&CacheStore);

/// Both clocks, `after` seconds past [`NOW`].
fn reading(after: u64) -> ClockReading {
    ClockReading {
        unix: Duration::from_secs(NOW + after),
        monotonic: Duration::from_secs(5_000 + after),
    }
}

fn settings() -> CacheSettings {
    CacheSettings {
        default_ttl: Some(60),
        heuristic_percent: None,
        statuses: vec![200],
        key_headers: Vec::new(),
        ignore_query: Vec::new(),
        stale_while_revalidate: 0,
        stale_if_error: 0,
        collapse: Duration::from_secs(5),
        client_directives: true,
        cache_status: false,
    }
}

fn store(max_bytes: u64) -> Arc<CacheStore> {
    let limits = StoreLimits {
        max_bytes,
        max_object_bytes: max_bytes / 8,
    };
    Arc::new(CacheStore::new(limits))
}

fn map(fields: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    map
}

fn key(path: &str) -> Arc<CacheKey> {
    let target = KeyTarget {
        scheme: "http",
        host: "a.example",
        path,
        query: None,
    };
    let request = HeaderMap::new();
    Arc::new(CacheKey::new(target, &settings(), b"r", &request, b""))
}

fn begin(store: &Arc<CacheStore>, key: &Arc<CacheKey>, request: &HeaderMap) -> Fill {
    match store.join(key, request, reading(0)) {
        Joined::Fill(fill) => fill,
        other @ Joined::Wait(_) => panic!("{other:?}"),
    }
}

fn publish(
    fill: Fill,
    request: &HeaderMap,
    response: &HeaderMap,
    body: &[u8],
) -> Arc<StoredResponse> {
    let request = StoringRequest {
        method: &Method::GET,
        headers: request,
        is_personal: false,
    };
    let times = Times {
        requested_at: reading(0),
        received_at: reading(0),
    };
    let (freshness, variant) =
        may_store(request, StatusCode::OK, response, &settings(), times).unwrap();
    let head = ResponseHead::new(StatusCode::OK, response, freshness);
    fill.publish(head, variant, body.into(), reading(0))
}

fn put(store: &Arc<CacheStore>, path: &str, body: &[u8]) {
    let none = HeaderMap::new();
    let fill = begin(store, &key(path), &none);
    drop(publish(fill, &none, &none, body));
}

fn has(store: &CacheStore, path: &str) -> bool {
    store.find(&key(path), &HeaderMap::new()).response.is_some()
}

#[derive(Debug, Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn wait(store: &Arc<CacheStore>, path: &str) -> FillWait {
    match store.join(&key(path), &HeaderMap::new(), reading(0)) {
        Joined::Wait(wait) => wait,
        other @ Joined::Fill(_) => panic!("{other:?}"),
    }
}

#[test]
fn those_that_wait_get_the_response_of_the_one_that_fetches() {
    let store = store(1 << 20);
    let none = HeaderMap::new();
    let fill = begin(&store, &key("/a"), &none);
    let mut waiting = pin!(wait(&store, "/a"));
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    assert!(waiting.as_mut().poll(&mut cx).is_pending());

    drop(publish(fill, &none, &none, b"body"));
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(Some(response)) = waiting.as_mut().poll(&mut cx) else {
        panic!("the response is there");
    };
    assert_eq!(&response.body[..], b"body");
}

#[test]
fn a_fill_that_stores_nothing_wakes_the_requests_that_wait_for_it() {
    let store = store(1 << 20);
    let none = HeaderMap::new();
    let mut cx = Context::from_waker(Waker::noop());

    let fill = begin(&store, &key("/a"), &none);
    let mut waiting = pin!(wait(&store, "/a"));
    drop(fill);
    assert!(matches!(waiting.as_mut().poll(&mut cx), Poll::Ready(None)));

    let fill = begin(&store, &key("/a"), &none);
    let mut waiting = pin!(wait(&store, "/a"));
    drop(fill.mark_uncacheable(reading(0)));
    assert!(matches!(waiting.as_mut().poll(&mut cx), Poll::Ready(None)));
    // In the next minute, requests are not collapsed.
    let _first = begin(&store, &key("/a"), &none);
    let _second = begin(&store, &key("/a"), &none);
    let Joined::Fill(_shared) = store.join(&key("/a"), &none, reading(60)) else {
        panic!("the key is cacheable again");
    };
    let last = store.join(&key("/a"), &none, reading(60));
    assert!(matches!(last, Joined::Wait(_)));
}

#[test]
fn variants_are_stored_and_fetched_separately() {
    let store = store(1 << 20);
    let response = map(&[("vary", "accept-language")]);
    let (german, english, french) = (
        map(&[("accept-language", "de")]),
        map(&[("accept-language", "en")]),
        map(&[("accept-language", "fr")]),
    );
    for (request, body) in [(&german, "Tag"), (&english, "day")] {
        let fill = begin(&store, &key("/a"), request);
        drop(publish(fill, request, &response, body.as_bytes()));
    }
    let body = |request| {
        store
            .find(&key("/a"), request)
            .response
            .map(|it| it.body.clone())
    };
    assert_eq!(body(&german).unwrap(), "Tag");
    assert_eq!(body(&english).unwrap(), "day");
    let found = store.find(&key("/a"), &french);
    assert!(found.response.is_none() && found.has_other_variants);

    let _first = begin(&store, &key("/a"), &french);
    let _second = begin(&store, &key("/a"), &german);
}

#[test]
fn the_bytes_of_all_responses_stay_within_the_maximum() {
    let store = store(256 << 10);
    let body = vec![0; 10_000];
    for number in 0..200 {
        let path = format!("/{number}");
        // Later keys are requested more often, so that their responses are admitted.
        for _ in 0..2 + number / 20 {
            let _asked = has(&store, &path);
        }
        put(&store, &path, &body);
        let figures = store.figures();
        assert!(figures.bytes <= figures.max_bytes, "{figures:?}");
    }
    let figures = store.figures();
    assert!(figures.objects >= 10 && figures.evicted > 0, "{figures:?}");
    assert_eq!(store.purge(&Purge::All).objects, figures.objects);
    assert_eq!(store.figures().bytes, 0);
}

#[test]
fn responses_asked_for_once_do_not_evict_those_that_are_used() {
    let store = store(256 << 10);
    let body = vec![0; 10_000];
    for number in 0..10 {
        let path = format!("/hot/{number}");
        put(&store, &path, &body);
        for _ in 0..4 {
            assert!(has(&store, &path));
        }
    }
    for number in 0..500 {
        let path = format!("/once/{number}");
        let _asked = has(&store, &path);
        put(&store, &path, &body);
    }
    for number in 0..10 {
        assert!(has(&store, &format!("/hot/{number}")), "{number}");
    }
    assert!(store.figures().not_admitted > 0);
}

/// A path equivalent to `/abcdefg`: a letter is escaped where `mask` has a bit.
fn spelling(mask: u8) -> String {
    let letters = (b'a'..=b'g').enumerate().map(|(bit, letter)| {
        if (mask >> bit) & 1 == 1 {
            format!("%{letter:02X}")
        } else {
            char::from(letter).to_string()
        }
    });
    format!("/{}", letters.collect::<String>())
}

#[test]
fn other_spellings_of_a_url_do_not_evict_its_normal_one() {
    let store = store(1 << 20);
    put(&store, &spelling(0), b"normal");
    for mask in 1..128 {
        let path = spelling(mask);
        assert!(!has(&store, &path), "{path}");
        put(&store, &path, b"other");
    }
    assert!(has(&store, &spelling(0)));
    let url = Purge::Url("http://a.example/abcdefg".to_owned());
    assert_eq!(store.purge(&url).objects, 64, "all spellings are purged");
}

#[test]
fn other_spellings_of_a_url_are_not_stored_beside_the_maximum_of_normal_ones() {
    let store = store(1 << 20);
    let response = map(&[("vary", "accept-language")]);
    for number in 0..64 {
        let language = number.to_string();
        let request = map(&[("accept-language", language.as_str())]);
        let fill = begin(&store, &key(&spelling(0)), &request);
        drop(publish(fill, &request, &response, b"normal"));
    }
    put(&store, &spelling(1), b"other");
    assert!(!has(&store, &spelling(1)));
    assert_eq!(store.figures().objects, 64);
    assert_eq!(store.figures().not_admitted, 1);
}

#[test]
fn requests_for_a_url_do_not_admit_other_spellings_of_it() {
    let store = store(256 << 10);
    let body = vec![0; 10_000];
    let used = |path: &str| {
        put(&store, path, &body);
        for _ in 0..4 {
            assert!(has(&store, path), "{path}");
        }
    };
    used(&spelling(0));
    assert!((0..10).all(|_| has(&store, &spelling(0))));
    for number in 0..10 {
        used(&format!("/hot/{number}"));
    }
    for mask in 1..128 {
        let path = spelling(mask);
        let _asked = has(&store, &path);
        put(&store, &path, &body);
    }
    for number in 0..10 {
        assert!(has(&store, &format!("/hot/{number}")), "{number}");
    }
}

#[test]
fn a_body_counts_while_a_client_reads_it_even_after_its_eviction() {
    let store = store(256 << 10);
    put(&store, "/a", &vec![0; 20_000]);
    let read = store.find(&key("/a"), &HeaderMap::new()).response.unwrap();
    let body = read.body.clone();
    drop(read);
    let _purged = store.purge(&Purge::All);
    assert_eq!(store.figures().bytes, 20_000);
    drop(body);
    assert_eq!(store.figures().bytes, 0);
}

#[test]
fn bodies_being_read_count_and_are_bounded() {
    let store = store(256 << 10);
    let none = HeaderMap::new();
    let mut first = begin(&store, &key("/a"), &none);
    assert!(!first.reserve(32 * 1_024 + 1, 0));
    assert!(first.reserve(20_000, 0) && first.reserve(20_000, 30_000));
    assert_eq!(store.figures().bytes, 30_000);
    let mut second = begin(&store, &key("/b"), &none);
    assert!(!second.reserve(10_000, 0));
    drop(first);
    assert!(second.reserve(10_000, 0));
    drop(second);
    assert_eq!(store.figures().bytes, 0);
}

#[test]
fn purges_remove_by_url_prefix_and_tag() {
    let store = store(1 << 20);
    let none = HeaderMap::new();
    for (path, tags) in [("/a/1", "news, home"), ("/a/2", "news"), ("/b", "homes")] {
        let fill = begin(&store, &key(path), &none);
        drop(publish(fill, &none, &map(&[("cache-tag", tags)]), b"x"));
    }
    assert_eq!(store.purge(&Purge::Tag("home".to_owned())).objects, 1);
    assert!(!has(&store, "/a/1") && has(&store, "/b"));
    assert_eq!(
        store
            .purge(&Purge::Url("http://a.example/b".to_owned()))
            .objects,
        1
    );
    assert_eq!(
        store
            .purge(&Purge::Url("http://a.example/a".to_owned()))
            .objects,
        0
    );
    assert_eq!(
        store
            .purge(&Purge::Prefix("http://a.example/a/".to_owned()))
            .objects,
        1
    );
    assert_eq!(store.figures().objects, 0);
}

#[test]
fn a_response_fetched_before_a_purge_is_not_stored_after_it() {
    let store = store(1 << 20);
    let none = HeaderMap::new();
    let clears: [Clear; 2] = [
        |store| store.invalidate("http://a.example/a"),
        |store| {
            let _purged = store.purge(&Purge::Tag("x".to_owned()));
        },
    ];
    for clear in clears {
        let fill = begin(&store, &key("/a"), &none);
        clear(&store);
        drop(publish(fill, &none, &none, b"old"));
        assert!(!has(&store, "/a"));
        put(&store, "/a", b"new");
        assert!(has(&store, "/a"));
        let _purged = store.purge(&Purge::All);
    }
}

#[test]
fn a_stored_head_does_not_keep_the_received_one_in_memory() {
    let store = store(1 << 20);
    let none = HeaderMap::new();
    let received = Bytes::from(vec![b'a'; 64 << 10]);
    let mut response = HeaderMap::new();
    let value = HeaderValue::from_maybe_shared(received.slice(..10)).unwrap();
    response.insert("x-own", value);
    let fill = begin(&store, &key("/a"), &none);
    drop(publish(fill, &none, &response, b"body"));
    drop(response);

    let found = store.find(&key("/a"), &none).response.unwrap();
    assert_eq!(found.headers["x-own"], "aaaaaaaaaa");
    assert!(received.is_unique());
}

#[test]
fn the_lifetime_of_the_route_is_for_requests_without_credentials_and_cookies() {
    let store = store(1 << 20);
    put(&store, "/a", b"body");
    assert!(has(&store, "/a"));
    for (name, value) in [("cookie", "sid=1"), ("authorization", "Basic eA==")] {
        let request = map(&[(name, value)]);
        let found = store.find(&key("/a"), &request);
        assert!(found.response.is_none(), "{name}");
        // The request waits for no other one, and none waits for it.
        let _own = begin(&store, &key("/a"), &request);
        let _others = begin(&store, &key("/a"), &HeaderMap::new());
    }
}
