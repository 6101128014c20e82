//! Each file of `examples/configs` with real requests; the quickstart and the five services have suites of their own.

use crate::support::{
    Authority, BINARY, GrpcService, Plain, TlsClient, TlsUpstream, block_on, caller, ready,
    server_config,
};
use bytes::Bytes;
use proxy_model::registry::{self, Presence};
use proxy_testkit::{
    AgentProcess, EVENT_TIMEOUT, Launch, Proxyd, RawClient, RedisServer, Reload, Upstream,
    closed_port, get, ok, refusal, request,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The files, in the order of their tests.
const FILES: [&str; 12] = [
    "quickstart.kdl",
    "five-services.kdl",
    "tls.kdl",
    "acme.kdl",
    "relays.kdl",
    "single-page-app.kdl",
    "websocket-grpc.kdl",
    "health-and-breakers.kdl",
    "shared-rate-limits.kdl",
    "forward-auth.kdl",
    "core-rule-set.kdl",
    "defaults.kdl",
];

/// Any free port.
const FREE: &str = "127.0.0.1:0";

/// The text of an example; a test replaces its addresses and paths.
struct Example(String);

impl Example {
    fn read(name: &str) -> Self {
        Self(fs::read_to_string(folder().join(name)).unwrap())
    }

    /// Replaces each `from`, of which there must be one.
    #[track_caller]
    fn with(self, from: &str, to: &dyn ToString) -> Self {
        assert!(self.0.contains(from), "the example has {from}");
        Self(self.0.replace(from, &to.to_string()))
    }

    fn launch(&self) -> Launch {
        Launch::new(BINARY, &self.0)
    }

    fn start(&self) -> Proxyd {
        self.launch().start()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/configs")
}

fn admin(proxyd: &Proxyd, path: &str) -> String {
    let mut client = RawClient::connect(proxyd.admin_address());
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.ask(request).text()
}

#[test]
fn every_example_has_a_test() {
    let found: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, FILES.map(str::to_owned).into());
}

#[test]
fn two_hosts_have_a_certificate_and_an_upstream_each() {
    let (www, api) = (Upstream::saying("www"), Upstream::saying("api"));
    let authority = Authority::new("root");
    let launch = Example::read("tls.kdl")
        .with("0.0.0.0:443", &FREE)
        .with("127.0.0.1:3001", &www.address())
        .with("127.0.0.1:3002", &api.address())
        .launch();
    let tls = launch.folder().join("tls");
    fs::create_dir(&tls).unwrap();
    let identities = ["www.example.com", "api.example.com"].map(|host| {
        let identity = authority.issue(&[host]);
        identity.write(&tls, host);
        (host, identity)
    });
    let proxyd = launch.start();

    block_on(async {
        let client = TlsClient::trusting(&authority);
        for (host, identity) in &identities {
            let mut connection = client.connect(proxyd.address(), host).await;
            assert_eq!(connection.shown(), identity.der());
            let (status, text) = connection.get(host, "/").await;
            assert_eq!((status, host.starts_with(&text)), (200, true), "{text}");
        }
        let mut connection = client.connect(proxyd.address(), "www.example.com").await;
        assert_eq!(connection.get("other.example.com", "/").await.0, 404);
    });
}

#[test]
fn a_site_redirects_while_its_certificate_is_not_there_yet() {
    let directory = "https://acme-staging-v02.api.letsencrypt.org/directory";
    let away = format!("https://{}/directory", closed_port());
    let proxyd = Example::read("acme.kdl")
        .with("0.0.0.0:80", &FREE)
        .with("0.0.0.0:443", &FREE)
        .with("127.0.0.1:3000", &closed_port())
        .with(directory, &away)
        .with(
            "terms-agreed #true",
            &"terms-agreed #true; storage \"acme\"",
        )
        .start();

    let answer = proxyd.connect().ask(get("/page", &[]));
    assert_eq!(answer.status, 308);
    block_on(async {
        let client = TlsClient::trusting(&Authority::new("root"));
        let refused = client.try_connect(proxyd.addresses()[1], "www.example.com");
        assert!(refused.await.is_err());
    });
}

#[test]
fn a_database_and_servers_that_end_tls_are_relayed_to() {
    let database = Upstream::saying("the database");
    let authority = Authority::new("root");
    let server = |name| TlsUpstream::start(server_config(&authority.issue(&[name]), None, &[]));
    let (mail, sites) = (server("mail.example.com"), server("shop.example.com"));
    let proxyd = Example::read("relays.kdl")
        .with(
            "127.0.0.1:5432\"\n        protocol",
            &format!("{FREE}\"\n        protocol"),
        )
        .with("0.0.0.0:443", &FREE)
        .with("10.0.0.11:5432", &database.address())
        .with("target \"10.0.0.12:5432\"", &"")
        .with("10.0.0.21:993", &mail.address)
        .with("10.0.0.31:443", &sites.address)
        .with("target \"10.0.0.32:443\"", &"")
        .start();
    let [raw, tls] = proxyd.addresses() else {
        panic!("{:?}", proxyd.addresses());
    };

    let answer = RawClient::connect(*raw).ask(get("/", &[]));
    assert_eq!(answer.text(), "the database");
    block_on(async {
        let client = TlsClient::trusting(&authority);
        for (name, server) in [("mail.example.com", &mail), ("shop.example.com", &sites)] {
            let mut connection = client.connect(*tls, name).await;
            assert_eq!(connection.get(name, "/").await.0, 200);
            assert_eq!(server.next_handshake().server_name.as_deref(), Some(name));
        }
    });
}

#[test]
fn an_application_gets_its_page_its_assets_and_its_api() {
    let api = Upstream::saying("[]");
    let launch = Example::read("single-page-app.kdl")
        .with("127.0.0.1:8080", &FREE)
        .with("127.0.0.1:3000", &api.address())
        .launch();
    let assets = launch.folder().join("app/assets");
    fs::create_dir_all(&assets).unwrap();
    fs::write(launch.folder().join("app/index.html"), "the page").unwrap();
    fs::write(assets.join("app-1a2b.js"), "the script").unwrap();
    fs::write(assets.join("app-1a2b.js.br"), "coded").unwrap();
    let proxyd = launch.start();
    let mut client = proxyd.connect();

    for path in ["/", "/settings/profile"] {
        let page = client.ask(get(path, &[]));
        assert_eq!((page.status, page.text().as_str()), (200, "the page"));
        assert_eq!(page.fields.get("cache-control"), Some("no-cache"));
        assert!(page.fields.has("content-security-policy"));
    }
    let script = client.ask(get("/assets/app-1a2b.js", &[("Accept-Encoding", "br")]));
    assert_eq!(script.fields.get("content-encoding"), Some("br"));
    let cached = script.fields.get("cache-control").unwrap();
    assert!(cached.ends_with("immutable"), "{cached}");
    assert_eq!(client.ask(get("/assets/gone.js", &[])).status, 404);
    assert_eq!(client.ask(get("/api/users", &[])).text(), "[]");
    assert_eq!(api.last_request().target, "/api/users");
}

#[test]
fn a_websocket_and_a_grpc_call_pass_one_listener() {
    block_on(async {
        let (service, chat) = (GrpcService::start(None), Upstream::websocket());
        let authority = Authority::new("root");
        let launch = Example::read("websocket-grpc.kdl")
            .with("0.0.0.0:443", &FREE)
            .with("127.0.0.1:3000", &chat.address())
            .with("127.0.0.1:50051", &service.address)
            .with("/helloworld.Greeter", &"/test.Echo")
            .launch();
        let tls = launch.folder().join("tls");
        fs::create_dir(&tls).unwrap();
        authority.issue(&["site.test"]).write(&tls, "site");
        let proxyd = launch.start();

        let mut grpc = caller(proxyd.address(), Some(&authority)).await;
        let message = tonic::Request::new(Bytes::from_static(b"one"));
        let method = "/test.Echo/Unary".parse().unwrap();
        let answer = ready(&mut grpc).await.unary(message, method, Plain).await;
        assert_eq!(answer.unwrap().into_inner(), "one");

        let client = TlsClient::trusting(&authority);
        let mut socket = client.connect(proxyd.address(), "site.test").await.stream;
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let head = request("GET /chat", upgrade, "");
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "));
        socket.write_all(b"ping").await.unwrap();
        let mut echoed = [0; 4];
        socket.read_exact(&mut echoed).await.unwrap();
        assert_eq!(&echoed, b"ping");
    });
}

/// A target that answers probes, and requests with its name, or 503 while `fails`.
fn shop(name: &'static str, fails: &Arc<AtomicBool>) -> Upstream {
    let fails = Arc::clone(fails);
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            if request.target != "/healthz" && fails.load(Ordering::SeqCst) {
                served.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
            } else {
                served.send(ok(name));
            }
        }
    })
}

#[test]
fn a_dead_target_costs_no_request_and_failing_ones_open_the_breaker() {
    let fails = Arc::new(AtomicBool::new(false));
    let (first, mut second) = (shop("first", &fails), shop("second", &fails));
    let proxyd = Example::read("health-and-breakers.kdl")
        .with("127.0.0.1:8080", &FREE)
        .with("127.0.0.1:3001", &first.address())
        .with("127.0.0.1:3002", &second.address())
        .start();
    let mut client = proxyd.connect();
    let mut ask = || client.ask(get("/", &[]));

    let names: BTreeSet<String> = (0..30).map(|_| ask().text()).collect();
    assert_eq!(Vec::from_iter(names), ["first", "second"]);

    second.stop_accepting();
    second.hang_up();
    for _ in 0..20 {
        let response = ask();
        assert_eq!((response.status, response.text().as_str()), (200, "first"));
    }

    fails.store(true, Ordering::SeqCst);
    let opens = (0..200).any(|_| ask().text().contains("CIRCUIT_BREAKER_OPEN"));
    assert!(opens);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a rate is measured by time")]
fn two_proxies_together_admit_the_limit_of_one() {
    let (store, upstream) = (RedisServer::start(), Upstream::saying("ok"));
    let example = Example::read("shared-rate-limits.kdl")
        .with("127.0.0.1:8080", &FREE)
        .with("127.0.0.1:3000", &upstream.address())
        .with("redis://127.0.0.1:6379/0", &store.url())
        // A busy machine may take longer to answer.
        .with("store-timeout-ms 50", &"store-timeout-ms 5000");
    let proxies = [example.start(), example.start()];
    for proxyd in &proxies {
        let begun = Instant::now();
        while !all_stores_are_up(&admin(proxyd, "/metrics")) {
            assert!(begun.elapsed() < EVENT_TIMEOUT, "the store is found");
        }
    }

    let begun = Instant::now();
    let mut admitted = 0;
    for _ in 0..10 {
        for proxyd in &proxies {
            let response = proxyd.connect().ask(get("/login", &[]));
            if response.status == 200 {
                admitted += 1;
            } else {
                refusal(&response, 429, "RATE_LIMIT_EXCEEDED");
                assert!(response.fields.has("retry-after"));
            }
        }
    }
    let most = 5 + begun.elapsed().as_secs() + 1;
    assert!((5..=most).contains(&admitted), "{admitted} of {most}");

    // A bucket for each tenant.
    let tenant = [("X-Tenant", "a")];
    let response = proxies[0].connect().ask(get("/api/a", &tenant));
    assert_eq!(response.fields.get("x-ratelimit-limit"), Some("200"));
}

fn all_stores_are_up(page: &str) -> bool {
    let mut stores = page
        .lines()
        .filter(|line| line.starts_with("proxy_rate_limit_store_up{"))
        .peekable();
    stores.peek().is_some() && stores.all(|line| line.ends_with(" 1"))
}

/// An authentication server with one session, at this socket.
fn authentication_server(socket: &Path) {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            thread::spawn(move || authenticate(stream));
        }
    });
}

fn authenticate(mut stream: UnixStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let asks_for_app = head.starts_with("GET /verify ");
        let answer = if asks_for_app && head.to_lowercase().contains("cookie: session=good") {
            "HTTP/1.1 204 No Content\r\nX-User: ann\r\n\r\n"
        } else {
            "HTTP/1.1 302 Found\r\nLocation: /auth/sign-in\r\nContent-Length: 0\r\n\r\n"
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn only_a_known_session_reaches_the_application() {
    let (app, auth) = (Upstream::saying("app"), Upstream::saying("sign in"));
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("auth.sock");
    authentication_server(&socket);
    let example = Example::read("forward-auth.kdl")
        .with("127.0.0.1:8080", &FREE)
        .with("127.0.0.1:3000", &app.address())
        .with("\"127.0.0.1:4180\"", &format!("\"{}\"", auth.address()))
        .with("\"/run/auth/agent.sock\"", &format!("{socket:?}"))
        .with("timeout-ms 2000", &"timeout-ms 30000");
    let proxyd = example.start();
    let mut client = proxyd.connect();

    let stranger = client.ask(get("/account", &[("X-User", "mallory")]));
    assert_eq!(stranger.status, 302);
    assert_eq!(stranger.fields.get("location"), Some("/auth/sign-in"));
    assert_eq!(client.ask(get("/auth/sign-in", &[])).text(), "sign in");
    assert_eq!(app.requests().len(), 0);

    let known = [("Cookie", "session=good"), ("X-User", "mallory")];
    assert_eq!(client.ask(get("/account", &known)).text(), "app");
    assert_eq!(app.last_request().fields.all("x-user"), ["ann"]);

    let open = example.with("        agents \"auth\"\n", &"").0;
    assert!(matches!(proxyd.reload(&open), Reload::Refused(_)));
}

#[test]
fn the_core_rule_set_stops_attacks_before_the_application() {
    let app = Upstream::saying("app");
    let agent = AgentProcess::example("waf/waf.py", &[]);
    let proxyd = Example::read("core-rule-set.kdl")
        .with("127.0.0.1:8080", &FREE)
        .with("127.0.0.1:3000", &app.address())
        .with(
            "\"/run/agents-waf/agent.sock\"",
            &format!("{:?}", agent.socket()),
        )
        .with("timeout-ms 2000", &"timeout-ms 30000")
        .start();
    let mut client = proxyd.connect();
    let browser = [("User-Agent", "Mozilla/5.0"), ("Accept", "*/*")];

    assert_eq!(client.ask(get("/shop?page=2", &browser)).text(), "app");
    let attack = client.ask(get("/?id=1%27%20or%20%271%27=%271", &browser));
    refusal(&attack, 403, "WAF_BLOCKED");
    let body = "name=<script>alert(document.cookie)</script>";
    let fields = format!(
        "User-Agent: Mozilla/5.0\r\nAccept: */*\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n",
        body.len()
    );
    let attack = client.ask(request("POST /form", &fields, body));
    refusal(&attack, 403, "WAF_BLOCKED");
    assert_eq!(app.requests().len(), 1);
    // Not for the firewall.
    assert_eq!(
        client.ask(request("PUT /upload", &fields, body)).text(),
        "app"
    );
}

#[test]
fn every_default_is_written_and_the_file_serves() {
    let (app, next) = (Upstream::saying("app"), Upstream::saying("{}"));
    let proxyd = defaults(app.address(), next.address()).start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "app");

    let text = Example::read("defaults.kdl").0;
    let mut written: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches("//").trim();
        *written.entry(line).or_default() += 1;
    }
    for row in registry::all() {
        if let Presence::Default(value) = &row.presence {
            let name = row.path.rsplit('.').next().unwrap();
            let line = format!("{name} {value}");
            // One line per row.
            let left = written.get_mut(line.as_str());
            let left = left.filter(|left| **left > 0);
            *left.unwrap_or_else(|| panic!("`{line}` of {} is missing", row.path)) -= 1;
        }
    }
}

fn defaults(app: SocketAddr, next: SocketAddr) -> Example {
    Example::read("defaults.kdl")
        .with("127.0.0.1:8080", &FREE)
        .with("127.0.0.1:9090", &FREE)
        .with("127.0.0.1:3000", &app)
        .with("127.0.0.1:3001", &next)
}
