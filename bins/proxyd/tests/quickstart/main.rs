//! The quickstart, as `cargo xtask demo` shows it, with its own upstreams and a steady load.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_load::{RunningLoad, SteadyLoad};
use proxy_testkit::{
    EVENT_TIMEOUT, Framing, Proxyd, RawClient, Reload, Response, Upstream, demo_upstream, get,
};
use std::collections::BTreeSet;
use std::net::TcpListener;

const CONFIG: &str = include_str!("../../../../examples/configs/quickstart.kdl");
/// Addresses in the file, in this order: web, admin, upstream one, upstream two.
const ADDRESSES: [&str; 4] = [
    "\"127.0.0.1:8080\"",
    "\"127.0.0.1:9090\"",
    "\"127.0.0.1:18081\"",
    "\"127.0.0.1:18082\"",
];
const GIB: usize = 1 << 30;
/// Maximum peak memory of proxyd after 1 GiB in each direction.
const MAX_RSS_BYTES: u64 = 64 << 20;
/// Number of requests answered before and after each operation on proxyd.
const REQUESTS_AROUND: u64 = 500;

struct Demo {
    config: String,
    proxyd: Proxyd,
    two: Upstream,
    _one: Upstream,
}

impl Demo {
    fn start() -> Self {
        let listeners = [0, 0].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
        let [one, two] = listeners
            .each_ref()
            .map(|l| l.local_addr().unwrap().to_string());
        let mut config = CONFIG.to_owned();
        let free = "127.0.0.1:0".to_owned();
        for (from, to) in ADDRESSES.iter().zip([&free, &free, &one, &two]) {
            assert!(config.contains(from), "the quickstart names {from}");
            config = config.replace(from, &format!("\"{to}\""));
        }
        let [one, two] = listeners;
        Self {
            _one: demo_upstream("one", one),
            two: demo_upstream("two", two),
            proxyd: Proxyd::start(env!("CARGO_BIN_EXE_proxyd"), &config),
            config,
        }
    }

    #[track_caller]
    fn get(&self, target: &str) -> Response {
        self.proxyd.connect().ask(get(target, &[]))
    }

    fn admin(&self, path: &str) -> Response {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        RawClient::connect(self.proxyd.admin_address()).ask(request)
    }

    fn load(&self) -> RunningLoad {
        let load = SteadyLoad {
            address: self.proxyd.address(),
            path: "/one".to_owned(),
            connections: 32,
            per_second: 600,
        };
        let running = load.start().unwrap();
        assert!(running.wait_for(REQUESTS_AROUND, EVENT_TIMEOUT));
        running
    }
}

#[test]
fn each_route_leads_to_its_upstream_and_the_root_to_both() {
    let demo = Demo::start();
    for name in ["one", "two"] {
        let text = demo.get(&format!("/{name}")).text();
        assert!(text.starts_with(&format!("upstream {name}\n")), "{text}");
        assert!(
            text.to_lowercase().contains("x-forwarded-for: 127.0.0.1\n"),
            "{text}"
        );
    }
    let answerers: BTreeSet<String> = (0..20)
        .map(|_| demo.get("/").text().lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(Vec::from_iter(answerers), ["upstream one", "upstream two"]);
}

#[test]
fn the_proxy_answers_for_itself_and_explains_an_unknown_path() {
    let demo = Demo::start();
    assert_eq!(demo.get("/health").json()["status"], "healthy");
    let unknown = demo.get("/nowhere");
    assert_eq!(
        (unknown.status, unknown.error_code().as_str()),
        (404, "ROUTE_NOT_FOUND")
    );
    assert_eq!(
        unknown.json()["error"]["correlation_id"],
        unknown.correlation_id()
    );
    assert_eq!(demo.get("/one").status, 200);

    assert_eq!(demo.admin("/status").json()["status"], "healthy");
    let upstreams = demo.admin("/admin/upstreams").json();
    for name in ["one", "two", "both"] {
        assert_eq!(upstreams["upstreams"][name]["healthy"], true, "{upstreams}");
    }
    let is_counted =
        |line: &str| line.starts_with("proxy_requests_total{") && line.contains("\"one\"");
    // A client has its answer a moment before the request is counted.
    let mut pages = (0..1_000).map(|_| demo.admin("/metrics").text());
    assert!(pages.any(|page| page.lines().any(is_counted)));
}

#[test]
fn a_gibibyte_in_each_direction_is_complete_and_needs_little_memory() {
    let demo = Demo::start();
    let mut client = demo.proxyd.connect();
    client.send(get(&format!("/one/download?bytes={GIB}"), &[]));
    assert_eq!(client.head().framing, Framing::Length(GIB));
    client.discard(GIB).unwrap();

    client.send(format!(
        "PUT /upload HTTP/1.1\r\nHost: a.test\r\nContent-Length: {GIB}\r\n\r\n"
    ));
    let piece = vec![0; 1 << 20];
    for _ in 0..GIB / piece.len() {
        client.send(&piece);
    }
    assert_eq!(client.response().text(), format!("{GIB}\n"));

    let peak = demo.proxyd.peak_rss_bytes();
    assert!(peak < MAX_RSS_BYTES, "{} MiB", peak >> 20);
}

#[test]
fn a_reload_under_load_fails_no_request_and_cuts_no_tunnel() {
    let demo = Demo::start();
    let mut tunnel = demo.proxyd.connect();
    let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")];
    assert_eq!(tunnel.ask(get("/one/ws", &upgrade)).status, 101);
    let load = demo.load();

    let changed = demo.config.replace("\"first\"", "\"second\"");
    assert_eq!(demo.proxyd.reload(&changed), Reload::Applied);
    let misspelt = changed.replace("load-balancing", "load-balacing");
    assert!(matches!(demo.proxyd.reload(&misspelt), Reload::Refused(_)));

    assert!(load.wait_for(REQUESTS_AROUND, EVENT_TIMEOUT));
    let outcome = load.stop().unwrap();
    assert_eq!((outcome.failed, outcome.refused), (0, 0), "{outcome:?}");
    assert!(
        demo.get("/one")
            .text()
            .to_lowercase()
            .contains("x-quickstart: second\n")
    );
    tunnel.send(b"after");
    assert_eq!(tunnel.exactly(5).unwrap(), b"after");
}

#[test]
fn a_drain_under_load_fails_no_request() {
    let mut demo = Demo::start();
    let load = demo.load();
    let mut slow: Vec<RawClient> = (0..8).map(|_| demo.proxyd.connect()).collect();
    for client in &mut slow {
        client.send(get("/two/slow?ms=1500", &[]));
    }
    demo.two.wait_for_requests(slow.len());

    demo.proxyd.terminate();
    for client in &mut slow {
        assert_eq!(client.response().status, 200);
    }
    assert!(demo.proxyd.wait().success());

    let outcome = load.stop().unwrap();
    assert_eq!(outcome.failed, 0, "{outcome:?}");
    assert!(outcome.refused >= 32, "every client ends: {outcome:?}");
    assert!(RawClient::try_connect(demo.proxyd.address()).is_err());
}
