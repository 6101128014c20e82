//! Token buckets on a real server.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]
#![expect(clippy::disallowed_methods, reason = "tests wait until a deadline")]

use proxy_limits::RateDecision;
use proxy_redis::{Answer, SharedBuckets, SharedRate, StoreSettings};
use proxy_testkit::RedisServer;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::{Context, Waker};
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
    answer(buckets.take(key.into(), rate))
}

fn answer(pending: Answer) -> Option<RateDecision> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(pending)
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
fn late_failures_of_a_lost_connection_leave_the_next_one() {
    let server = RedisServer::start();
    let relay = Relay::to(server.address());
    let url = format!("redis://{}", relay.address);
    let buckets = buckets(&url, proxy_testkit::EVENT_TIMEOUT);
    first(&buckets, "a", SLOW);
    let mut connection = relay.first.recv().unwrap();

    // Both are asked on the first connection. An error for one of them ends its use.
    relay.is_held.store(true, Ordering::Release);
    let one = buckets.take("a".into(), SLOW);
    let mut other = buckets.take("a".into(), SLOW);
    relay.wait_for_held_questions(2);
    connection.write_all(b"-ERR refused\r\n").unwrap();
    assert_eq!(answer(one), None);

    // The other one fails when the second connection has answered.
    first(&buckets, "a", SLOW);
    assert!(buckets.is_up());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut other).poll(&mut cx).is_pending());
    connection.shutdown(Shutdown::Both).unwrap();
    assert_eq!(answer(other), None);
    assert!(buckets.is_up());
}

/// A relay to a server.
struct Relay {
    address: SocketAddr,
    /// The client's side of the first connection.
    first: Receiver<TcpStream>,
    /// While true, what the first connection sends is not passed on, but is in `held`.
    is_held: Arc<AtomicBool>,
    held: Receiver<Vec<u8>>,
}

impl Relay {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_held = Arc::<AtomicBool>::default();
        let (sender, first) = mpsc::channel();
        let (holder, held) = mpsc::channel();
        let hold = Arc::clone(&is_held);
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let client = client.unwrap();
                let upstream = TcpStream::connect(server).unwrap();
                let back = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
                let hold = if number == 0 {
                    sender.send(client.try_clone().unwrap()).unwrap();
                    Arc::clone(&hold)
                } else {
                    Arc::default()
                };
                let holder = holder.clone();
                thread::spawn(move || copy(client, upstream, &hold, &holder));
                let holder = mpsc::channel().0;
                thread::spawn(move || copy(back.0, back.1, &AtomicBool::new(false), &holder));
            }
        });
        Self {
            address,
            first,
            is_held,
            held,
        }
    }

    fn wait_for_held_questions(&self, count: usize) {
        const CALL: &[u8] = b"EVALSHA";
        let mut held = Vec::new();
        while held.windows(CALL.len()).filter(|it| *it == CALL).count() < count {
            held.extend(
                self.held
                    .recv_timeout(proxy_testkit::EVENT_TIMEOUT)
                    .unwrap(),
            );
        }
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, is_held: &AtomicBool, held: &Sender<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let read = bytes.get(..count).unwrap_or_default();
        let is_passed = if is_held.load(Ordering::Acquire) {
            held.send(read.to_vec()).is_ok()
        } else {
            to.write_all(read).is_ok()
        };
        if !is_passed {
            return;
        }
    }
}
