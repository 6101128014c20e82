//! Token buckets on a real server.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]
#![expect(clippy::disallowed_methods, reason = "tests wait until a deadline")]

use proxy_limits::RateDecision;
use proxy_redis::{SharedBuckets, SharedRate, StoreSettings};
use proxy_testkit::RedisServer;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a busy machine delays an answer.
const AMPLE: Duration = Duration::from_secs(5);

fn buckets(url: &str, timeout: Duration) -> SharedBuckets {
    let settings = StoreSettings {
        url: url.to_owned(),
        timeout,
    };
    SharedBuckets::start(&settings).unwrap()
}

fn take(buckets: &SharedBuckets, key: &str, rate: SharedRate) -> Option<RateDecision> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(buckets.take(key.into(), rate))
}

/// Waits for the first decision.
fn first(buckets: &SharedBuckets, key: &str, rate: SharedRate) -> RateDecision {
    let begun = Instant::now();
    loop {
        if let Some(decision) = take(buckets, key, rate) {
            return decision;
        }
        assert!(begun.elapsed() < proxy_testkit::EVENT_TIMEOUT, "no answer");
    }
}

const SLOW: SharedRate = SharedRate {
    requests_per_second: 1,
    burst: 5,
};

#[test]
fn two_proxies_share_a_bucket_and_each_key_has_its_own() {
    let server = RedisServer::start();
    let [one, other] = [(); 2].map(|()| buckets(&server.url(), AMPLE));
    let begun = Instant::now();
    assert_eq!(first(&one, "a", SLOW).remaining, 4);
    assert_eq!(first(&other, "a", SLOW).remaining, 3);
    let unanswered = one.unanswered() + other.unanswered();
    let mut admitted = 2;
    for _ in 0..10 {
        for buckets in [&one, &other] {
            let decision = take(buckets, "a", SLOW).unwrap();
            admitted += u64::from(decision.admitted);
            assert_eq!(decision.limit, 5);
            if !decision.admitted {
                assert!(decision.retry_after <= Duration::from_secs(1));
                assert!(decision.reset <= Duration::from_secs(5));
            }
        }
    }
    assert!((5..=5 + begun.elapsed().as_secs() + 1).contains(&admitted));
    assert!(take(&one, "b", SLOW).unwrap().admitted);
    assert_eq!(one.unanswered() + other.unanswered(), unanswered);
}

#[test]
fn admissions_stay_within_burst_and_rate() {
    let server = RedisServer::start();
    let buckets = buckets(&server.url(), AMPLE);
    let rate = SharedRate {
        requests_per_second: 300,
        burst: 7,
    };
    let begun = Instant::now();
    let mut admitted = u128::from(first(&buckets, "k", rate).admitted);
    // Tokens lost by a full bucket while this thread was stalled.
    let (mut last, mut lost) = (Instant::now(), Duration::ZERO);
    while begun.elapsed() < Duration::from_millis(600) {
        admitted += u128::from(take(&buckets, "k", rate).unwrap().admitted);
        lost += last.elapsed().saturating_sub(Duration::from_millis(20));
        last = Instant::now();
    }
    let tokens = |time: Duration| time.as_millis() * 300 / 1_000;
    let most = 7 + tokens(begun.elapsed()) + 1;
    assert!(admitted <= most, "{admitted} of {most}");
    let least = tokens(begun.elapsed().saturating_sub(lost)) / 2;
    assert!(admitted >= least, "{admitted} of {least}");
}

#[test]
fn an_unreachable_server_is_not_awaited_and_is_used_again_later() {
    let mut server = RedisServer::start();
    let buckets = buckets(&server.url(), AMPLE);
    first(&buckets, "a", SLOW);
    assert!(buckets.is_up());

    server.stop();
    while buckets.is_up() {
        take(&buckets, "a", SLOW);
    }
    let begun = Instant::now();
    assert_eq!(take(&buckets, "a", SLOW), None);
    assert!(begun.elapsed() < AMPLE);
    server.start_again();
    first(&buckets, "a", SLOW);
    assert!(buckets.is_up());
}

#[test]
fn a_server_that_hangs_is_waited_for_no_longer_than_allowed() {
    let server = RedisServer::start();
    let buckets = buckets(&server.url(), Duration::from_millis(500));
    first(&buckets, "a", SLOW);
    server.pause();
    let begun = Instant::now();

    assert_eq!(take(&buckets, "a", SLOW), None);

    assert!(begun.elapsed() >= Duration::from_millis(490));
    assert!(!buckets.is_up());
    server.resume();
    first(&buckets, "a", SLOW);
}

#[test]
fn a_server_that_refuses_writes_is_not_up() {
    let server = RedisServer::start();
    let buckets = buckets(&server.url(), AMPLE);
    first(&buckets, "a", SLOW);
    assert!(buckets.is_up());

    server.run("CONFIG SET maxmemory 1");
    while buckets.is_up() {
        take(&buckets, "a", SLOW);
    }
    // It is connected to again after a second, and answers; a refused write follows.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(take(&buckets, "a", SLOW), None);
        assert!(!buckets.is_up(), "after {:?}", begun.elapsed());
    }

    server.run("CONFIG SET maxmemory 0");
    first(&buckets, "a", SLOW);
    assert!(buckets.is_up());
}

#[test]
fn late_timeouts_of_a_lost_connection_leave_the_next_one() {
    let server = RedisServer::start();
    let (relay, is_silent) = relay_with_a_silent_first_connection(server.address());
    let buckets = Arc::new(buckets(
        &format!("redis://{relay}"),
        Duration::from_millis(1500),
    ));
    first(&buckets, "a", SLOW);
    is_silent.store(true, Ordering::Release);

    // Both go to the first connection. The second one times out when the next connection is up.
    let asked = [Duration::ZERO, Duration::from_millis(1400)].map(|delay| {
        let buckets = Arc::clone(&buckets);
        thread::spawn(move || {
            thread::park_timeout(delay);
            take(&buckets, "a", SLOW)
        })
    });
    let [one, other] = asked;
    assert_eq!(one.join().unwrap(), None);
    let begun = Instant::now();
    while !buckets.is_up() {
        assert!(begun.elapsed() < proxy_testkit::EVENT_TIMEOUT, "not up");
        thread::park_timeout(Duration::from_millis(1));
    }
    assert_eq!(other.join().unwrap(), None);
    assert!(buckets.is_up());
}

/// A relay to `server`. While the returned value is true, nothing from its first connection is
/// passed on.
fn relay_with_a_silent_first_connection(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let is_silent = Arc::<AtomicBool>::default();
    let silence = Arc::clone(&is_silent);
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            let upstream = TcpStream::connect(server).unwrap();
            let silence = if number == 0 {
                Arc::clone(&silence)
            } else {
                Arc::default()
            };
            let back = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || copy(client, upstream, &silence));
            thread::spawn(move || copy(back.0, back.1, &AtomicBool::new(false)));
        }
    });
    (address, is_silent)
}

fn copy(mut from: TcpStream, mut to: TcpStream, is_silent: &AtomicBool) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let read = bytes.get(..count).unwrap_or_default();
        if !is_silent.load(Ordering::Acquire) && to.write_all(read).is_err() {
            return;
        }
    }
}
