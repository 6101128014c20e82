//! Choice of a target: algorithms of `load-balancing`, weights, slow start, sticky cookies.

use crate::support::{Config, target};
use proxy_testkit::{Gate, Proxyd, RawClient, Reload, Upstream, get, ok};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Targets `a`, `b` and `c` with the weights 1, 2 and 3. `c` delays requests to `/hold` until the
/// gate opens.
struct ThreeUpstreams {
    targets: [Upstream; 3],
    gate: Gate,
}

impl ThreeUpstreams {
    fn start() -> Self {
        let gate = Gate::new();
        let held = gate.clone();
        let c = Upstream::start(move |served| {
            while let Some(request) = served.request() {
                if request.target == "/hold" {
                    held.wait();
                }
                served.send(ok("c"));
            }
        });
        Self {
            targets: [Upstream::saying("a"), Upstream::saying("b"), c],
            gate,
        }
    }

    /// Waits until the proxy has finished all requests to `a` and `b`, which is shortly after the
    /// client has the response.
    #[track_caller]
    fn settle(&self, scraper: &mut RawClient) {
        let gauges = [0, 1].map(|index: usize| {
            let address = self.targets[index].address();
            let name = "proxy_upstream_target_active_requests";
            format!("{name}{{upstream=\"u\",target=\"{address}\"}} 0")
        });
        for _ in 0..100_000 {
            let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
            let page = scraper.ask(request).text();
            let is_idle = |gauge: &String| page.lines().any(|line| line == gauge);
            if gauges.iter().all(is_idle) {
                return;
            }
        }
        panic!("requests stay in hand");
    }

    fn config(&self, settings: &str) -> Config {
        let [a, b, c] = self.targets.each_ref().map(target);
        let targets = format!("{a} weight=1; {b} weight=2; {c} weight=3; {settings}");
        Config::new()
            .listener(r#"trusted-proxies "127.0.0.1""#)
            .route("all", r#"upstream "u""#)
            .upstream("u", &targets)
    }

    fn counts(&self) -> [usize; 3] {
        self.targets.each_ref().map(|one| one.requests().len())
    }

    /// Sends requests to `/hold` in sequence, without waiting for responses.
    fn hold(&self, proxyd: &Proxyd, requests: usize) -> Vec<RawClient> {
        let mut scraper = RawClient::connect(proxyd.admin_address());
        let clients = (1..=requests).map(|sent| {
            let mut client = proxyd.connect();
            client.send(get("/hold", &[]));
            while self.counts().iter().sum::<usize>() < sent {
                std::thread::yield_now();
            }
            self.settle(&mut scraper);
            client
        });
        clients.collect()
    }

    /// Returns the number of requests per target, each from a different client. With `settles`,
    /// each request is finished before the next one.
    fn spread(&self, proxyd: &Proxyd, requests: u32, settles: bool) -> [usize; 3] {
        let mut scraper = RawClient::connect(proxyd.admin_address());
        let before = self.counts();
        let mut client = proxyd.connect();
        for number in 0..requests {
            let [_, _, high, low] = number.to_be_bytes();
            let address = format!("10.1.{high}.{low}");
            let response = client.ask(get("/", &[("X-Forwarded-For", &address)]));
            assert_eq!(response.status, 200);
            if settles {
                self.settle(&mut scraper);
            }
        }
        let mut counts = self.counts();
        for (count, before) in counts.iter_mut().zip(before) {
            *count -= before;
        }
        counts
    }
}

/// Returns the bodies of the responses to `requests` requests of one client with these fields.
fn answers(proxyd: &Proxyd, requests: usize, fields: &[(&str, &str)]) -> Vec<String> {
    let mut client = proxyd.connect();
    let answers = (0..requests).map(|_| client.ask(get("/", fields)).text());
    answers.collect()
}

fn is_one(answers: &[String]) -> bool {
    answers.windows(2).all(|pair| pair[0] == pair[1])
}

#[test]
fn each_word_of_load_balancing_has_its_own_distribution() {
    // Algorithm, requests per target while `c` has active ones, the tolerance of each count, and
    // session affinity.
    let table = [
        ("round_robin", [100, 200, 300], 55, false),
        ("weighted", [100, 200, 300], 55, false),
        ("least_connections", [200, 400, 0], 55, false),
        ("ip_hash", [100, 200, 300], 55, true),
        ("random_two", [200, 400, 0], 55, false),
        // The latencies of `a` and `b` depend on the machine.
        ("peak_ewma", [300, 300, 0], 301, false),
        ("sticky", [100, 200, 300], 55, false),
    ];
    for (word, expected, most_off, stays) in table {
        let trio = ThreeUpstreams::start();
        let proxyd = trio.config(&format!("load-balancing \"{word}\"")).start();
        let held = trio.hold(&proxyd, 12);

        // For this algorithm, a request that is still active would change the shares.
        let counts = trio.spread(&proxyd, 600, word == "random_two");

        let is_near = |(count, expected): (&usize, &usize)| {
            count.abs_diff(*expected) < most_off.min(expected + 55)
        };
        assert!(
            counts.iter().zip(&expected).all(is_near),
            "{word}: {counts:?}, not {expected:?}"
        );
        let fields = [("X-Forwarded-For", "10.9.9.9")];
        assert_eq!(is_one(&answers(&proxyd, 30, &fields)), stays, "{word}");
        trio.gate.open();
        drop(held);
    }
}

#[test]
fn peak_ewma_prefers_the_target_that_answers_sooner() {
    // Longer than a busy machine may delay the response of the other target.
    let delay = Arc::new(AtomicU64::default());
    let own = Arc::clone(&delay);
    let slow = Upstream::start(move |served| {
        while served.request().is_some() {
            let millis = own.load(Ordering::Relaxed);
            std::thread::park_timeout(Duration::from_millis(millis));
            served.send(ok("slow"));
        }
    });
    let quick = Upstream::saying("quick");
    let shares = [("peak_ewma", 1_000), ("random_two", 1)].map(|(word, millis)| {
        delay.store(millis, Ordering::Relaxed);
        let targets = format!("{}; {}", target(&slow), target(&quick));
        let settings = format!("{targets}; load-balancing \"{word}\"");
        let config = Config::new().route("all", r#"upstream "u""#);
        let proxyd = config.upstream("u", &settings).start();
        let answers = answers(&proxyd, 100, &[]);
        answers.iter().filter(|answer| *answer == "quick").count()
    });

    assert!(shares[0] >= 90, "peak_ewma: {shares:?}");
    assert!((25..75).contains(&shares[1]), "random_two: {shares:?}");
}

#[test]
fn clients_of_ip_hash_stay_put_when_another_target_leaves() {
    let trio = ThreeUpstreams::start();
    let settings = r#"load-balancing "ip_hash""#;
    let proxyd = trio.config(settings).start();
    let clients: Vec<_> = (0..60).map(|number| format!("10.2.0.{number}")).collect();
    let places = |proxyd: &Proxyd| -> Vec<String> {
        let mut client = proxyd.connect();
        let answers = clients.iter();
        let answers = answers.map(|ip| client.ask(get("/", &[("X-Forwarded-For", ip)])).text());
        answers.collect()
    };
    let before = places(&proxyd);

    let [a, b, _] = trio.targets.each_ref().map(target);
    let fewer = Config::new()
        .listener(r#"trusted-proxies "127.0.0.1""#)
        .route("all", r#"upstream "u""#)
        .upstream("u", &format!("{a} weight=1; {b} weight=2; {settings}"));
    assert_eq!(proxyd.reload(&fewer.kdl()), Reload::Applied);

    let mut moved = 0;
    for (before, after) in before.iter().zip(places(&proxyd)) {
        assert!(*before == after || before == "c", "{before} became {after}");
        moved += usize::from(*before != after);
    }
    assert!((15..50).contains(&moved), "{moved} of 60 were with c");
}

#[test]
fn a_target_of_weight_0_gets_no_requests() {
    for word in ["round_robin", "weighted", "ip_hash"] {
        let (one, none) = (Upstream::saying("one"), Upstream::saying("none"));
        let targets = format!("{} weight=0; {}", target(&none), target(&one));
        let settings = format!("{targets}; load-balancing \"{word}\"");
        let config = Config::new().route("all", r#"upstream "u""#);
        let proxyd = config.upstream("u", &settings).start();

        assert_eq!(answers(&proxyd, 10, &[]), ["one"; 10], "{word}");
        assert!(none.requests().is_empty(), "{word}");
    }
}

#[test]
fn a_recovered_target_starts_slowly() {
    let (old, new) = (Upstream::saying("old"), Upstream::saying("new"));
    let shares = ["slow-start-secs 600", ""].map(|slow_start| {
        let config = |targets: &str| {
            let settings = format!("{targets}; {slow_start}");
            Config::new()
                .route("all", r#"upstream "u""#)
                .upstream("u", &settings)
        };
        let proxyd = config(&target(&old)).start();
        let both = format!("{}; {}", target(&old), target(&new));
        assert_eq!(proxyd.reload(&config(&both).kdl()), Reload::Applied);
        let answers = answers(&proxyd, 200, &[]);
        answers.iter().filter(|answer| *answer == "new").count()
    });

    // During slow start, a tenth of its turns, which are every second request.
    assert!((1..40).contains(&shares[0]), "slowly: {shares:?}");
    assert_eq!(shares[1], 100, "at once: {shares:?}");
}

/// Returns `name=value` of the cookie that the proxy sets, and the body.
fn bound(proxyd: &Proxyd) -> (String, String) {
    let response = proxyd.connect().ask(get("/", &[]));
    let cookie = response.fields.get("set-cookie").unwrap().to_owned();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"));
    let pair = cookie.split(';').next().unwrap().to_owned();
    (pair, response.text())
}

#[test]
fn a_client_with_a_sticky_cookie_stays_with_its_target() {
    let trio = ThreeUpstreams::start();
    let proxyd = trio.config(r#"load-balancing "sticky""#).start();

    for _ in 0..6 {
        let (cookie, place) = bound(&proxyd);
        assert!(cookie.starts_with("proxy-target="), "{cookie}");
        let cookies = format!("theme=dark; {cookie}");
        let mut client = proxyd.connect();
        for _ in 0..5 {
            let response = client.ask(get("/", &[("Cookie", &cookies)]));
            assert_eq!(response.text(), place);
            assert!(!response.fields.has("set-cookie"), "it has the cookie");
        }
    }
    // A balancer that terminates TLS sends the client's scheme.
    for (scheme, secure) in [("https", true), ("http", false)] {
        let response = proxyd
            .connect()
            .ask(get("/", &[("X-Forwarded-Proto", scheme)]));
        let cookie = response.fields.get("set-cookie").unwrap();
        assert_eq!(cookie.ends_with("; Secure"), secure, "{cookie}");
    }
    let invented = [("Cookie", "proxy-target=0123456789abcdef")];
    assert!(!is_one(&answers(&proxyd, 12, &invented)));
}

#[test]
fn a_sticky_cookie_has_the_name_and_secret_that_are_written() {
    let trio = ThreeUpstreams::start();
    let sticky = |secret: &str| {
        let block = format!("sticky {{ cookie \"SRV\"; secret \"{secret}\" }}");
        let settings = format!("load-balancing \"sticky\"; {block}");
        trio.config(&settings).start()
    };
    let (first, second) = (
        sticky("a secret of all proxies"),
        sticky("a secret of all proxies"),
    );
    let other = sticky("a secret of others only");

    let (cookie, place) = bound(&first);
    assert!(cookie.starts_with("SRV="), "{cookie}");
    let fields = [("Cookie", cookie.as_str())];
    assert_eq!(answers(&second, 6, &fields), vec![place; 6]);
    assert!(!is_one(&answers(&other, 12, &fields)));
}
