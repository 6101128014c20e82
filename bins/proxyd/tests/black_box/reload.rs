//! Reloads by SIGHUP: a new configuration is applied completely or not at all.

use crate::support::{Config, METRICS, metric, pause, post, request, target};
use proxy_testkit::{End, Gate, Proxyd, RawClient, Reload, Upstream, free_port, get, ok};
use std::fs;
use std::process::Command;

#[track_caller]
fn apply(proxyd: &Proxyd, config: &Config) {
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
}

/// Returns the addresses that are logged from line `since` on.
fn listening_since(proxyd: &Proxyd, since: usize) -> Vec<std::net::SocketAddr> {
    let lines = proxyd.stderr().lines();
    let records = lines
        .iter()
        .skip(since)
        .filter_map(|line| proxy_testkit::Record::parse(line));
    let logged = records.filter(|record| record.text("message") == "listening");
    logged
        .map(|record| record.text("address").parse().unwrap())
        .collect()
}

#[test]
fn routes_and_upstreams_change() {
    let (old, new) = (Upstream::saying("old"), Upstream::saying("new"));
    let proxyd = Config::to(&old).start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).text(), "old");

    let config = Config::to(&new).route(
        "extra",
        r#"upstream "u"; matches { path "/extra" }; response-headers { set "X-Extra" "1" }"#,
    );
    apply(&proxyd, &config);

    // Connections that were open before the reload follow the new plan, too.
    assert_eq!(client.ask(get("/", &[])).text(), "new");
    assert_eq!(
        client.ask(get("/extra", &[])).fields.get("x-extra"),
        Some("1")
    );
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "new");
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_and_blocks_no_later_reload() {
    let upstream = Upstream::saying("hello");
    let page = "error-pages { page 404 file=\"page.html\" }";
    let site = |more: &str| Config::to(&upstream).listener(more).kdl();
    let proxyd = Config::to(&upstream).start();
    let file = proxyd.folder().join("page.html");
    for setting in [page, "deny-file \"page.html\""] {
        let made = Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        let Reload::Refused(faults) = proxyd.reload(&site(setting)) else {
            panic!("a pipe was taken for a file");
        };
        assert!(faults.contains("not a regular file"), "{faults}");
        fs::remove_file(&file).unwrap();
        fs::write(&file, "192.0.2.1\n").unwrap();
        assert_eq!(proxyd.reload(&site(setting)), Reload::Applied);
        fs::remove_file(&file).unwrap();
    }
    let log = "observability { error-log { path \"page.html\" } }";
    let made = Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    let Reload::Refused(faults) = proxyd.reload(&Config::to(&upstream).top(log).kdl()) else {
        panic!("a pipe that no process reads was taken for a log");
    };
    assert!(faults.contains("no process reads"), "{faults}");
}

#[test]
fn a_file_that_was_emptied_closes_no_listener() {
    let upstream = Upstream::saying("hello");
    let config = Config::to(&upstream);
    let proxyd = config.start();
    let mut client = proxyd.connect();
    for cut in ["", "// being written\n", "system { }\n"] {
        let Reload::Refused(faults) = proxyd.reload(cut) else {
            panic!("{cut:?} closed the listeners");
        };
        assert!(faults.contains("no-listener-left"), "{faults}");
        assert_eq!(client.ask(get("/", &[])).text(), "hello");
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hello");
    }
    apply(&proxyd, &config);
}

#[test]
fn a_request_keeps_the_plan_it_began_with() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let stamped = |stamp: &str| {
        Config::through(
            &upstream,
            &format!("response-headers {{ set \"X-Plan\" \"{stamp}\" }}"),
        )
    };
    let proxyd = stamped("old").start();
    let mut early = proxyd.connect();
    early.send(get("/", &[]));
    upstream.wait_for_requests(1);

    apply(&proxyd, &stamped("new"));
    gate.open();

    assert_eq!(early.response().fields.get("x-plan"), Some("old"));
    assert_eq!(early.ask(get("/", &[])).fields.get("x-plan"), Some("new"));
}

#[test]
fn a_request_to_a_removed_upstream_completes() {
    let gate = Gate::new();
    let (old, new) = (Upstream::slow_reader(&gate), Upstream::saying("new"));
    let proxyd = Config::to(&old).start();
    let mut early = proxyd.connect();
    early.send(post("/", "hello"));
    old.wait_for_requests(1);

    let config = Config::new()
        .route("other", r#"upstream "v""#)
        .upstream("v", &target(&new));
    apply(&proxyd, &config);
    apply(&proxyd, &config.clone().listener("backlog 100"));
    gate.open();

    assert_eq!(early.response().text(), "5");
    let record = proxyd
        .stdout()
        .find(0, |record| record.text("route") == "all");
    assert_eq!(record.text("upstream"), "u");
}

#[test]
fn a_reload_adds_and_removes_listeners() {
    let upstream = Upstream::saying("hi");
    let proxyd = Config::to(&upstream).start();
    let since = proxyd.stderr().len();

    let second = r#"listeners { listener "second" { address "127.0.0.1:0" } }"#;
    apply(&proxyd, &Config::to(&upstream).top(second));
    let added = listening_since(&proxyd, since);
    assert_eq!(added.len(), 1, "only the new one is logged");
    let mut kept = RawClient::connect(added[0]);
    assert_eq!(kept.ask(get("/", &[])).text(), "hi");
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");

    apply(&proxyd, &Config::to(&upstream));
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    let refused = RawClient::try_connect(added[0]);
    assert!(refused.is_err(), "the address is closed");
}

#[test]
fn listeners_of_one_address_stay_apart() {
    let upstream = Upstream::saying("hi");
    let config = || {
        Config::new()
            .upstream("u", &target(&upstream))
            .route(
                "one",
                r#"upstream "u"; matches { host "1" }; response-headers { set "X-Route" "one" }"#,
            )
            .route(
                "two",
                r#"upstream "u"; matches { host "2" }; response-headers { set "X-Route" "two" }"#,
            )
            .listener(r#"default-route "one""#)
            .top(
                r#"listeners { listener "second" { address "127.0.0.1:0"; default-route "two" } }"#,
            )
    };
    let proxyd = config().start();

    apply(&proxyd, &config());

    for (address, route) in proxyd.addresses().iter().zip(["one", "two"]) {
        let response = RawClient::connect(*address).ask(get("/", &[]));
        assert_eq!(response.fields.get("x-route"), Some(route));
    }
}

#[test]
fn limits_change() {
    let upstream = Upstream::echo();
    let limited = |limits: &str| Config::to(&upstream).top(&format!("limits {{ {limits} }}"));
    let proxyd = limited("max-body-size-bytes 4").start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(post("/", "12345")).status, 413);

    apply(
        &proxyd,
        &limited("max-body-size-bytes 5; max-header-count 3"),
    );

    let mut client = proxyd.connect();
    assert_eq!(client.ask(post("/", "12345")).status, 200);
    let mut held = proxyd.connect();
    let many = held.ask(request("GET /", "A: 1\r\nB: 2\r\nC: 3\r\n", ""));
    assert_eq!(many.status, 429);
}

#[test]
fn the_limit_of_requests_in_flight_changes() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let limited = |most: u32| {
        let limits = format!("limits {{ max-in-flight-requests {most}; max-queued-requests 0 }}");
        Config::to(&upstream).top(&limits)
    };
    let proxyd = limited(1).start();
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    upstream.wait_for_requests(1);
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 503);

    apply(&proxyd, &limited(2));

    let mut second = proxyd.connect();
    second.send(get("/", &[]));
    upstream.wait_for_requests(2);
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 503);
    gate.open();
    assert_eq!(
        (first.response().status, second.response().status),
        (200, 200)
    );
}

const BAD: &str = r#"
listeners { listener "main" { address "127.0.0.1:0" } }
routes { route "all" { upstream "missing" }; route "all" { priorty 3 } }
"#;

#[test]
fn a_bad_file_changes_nothing_and_is_reported_with_all_its_faults() {
    let upstream = Upstream::saying("still here");
    let config = Config::to(&upstream)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .route(
            "status",
            r#"priority 100; matches { path "/status" }; service-type "builtin"; builtin-handler "status""#,
        );
    let proxyd = config.start();
    let mut client = proxyd.connect();

    let Reload::Refused(faults) = proxyd.reload(BAD) else {
        panic!("a configuration without its upstream was put in force");
    };

    for part in ["missing", "priorty", "priority", "proxyd.kdl:3:"] {
        assert!(faults.contains(part), "{part} is not in:\n{faults}");
    }
    assert_eq!(client.ask(get("/", &[])).text(), "still here");
    let name = "proxy_config_reloads_total{result=\"failure\"}";
    assert!((metric(&mut client, name) - 1.0).abs() < f64::EPSILON);
    let status = client.ask(get("/status", &[])).json();
    assert_eq!(status["last_config_reload_result"], "failure");
    assert_eq!(status["config_generation"], 1);

    apply(&proxyd, &config);
    let status = client.ask(get("/status", &[])).json();
    assert_eq!(status["last_config_reload_result"], "success");
    assert_eq!(
        (&status["config_generation"], &status["config_reload_count"]),
        (&2.into(), &1.into()),
        "only the one that succeeded counts"
    );
}

#[test]
fn a_file_that_cannot_be_read_changes_nothing() {
    let upstream = Upstream::saying("still here");
    let proxyd = Config::to(&upstream).start();

    assert!(matches!(proxyd.reload("listeners {"), Reload::Refused(_)));
    assert!(matches!(proxyd.reload("\u{0}\u{1}"), Reload::Refused(_)));
    fs::remove_file(proxyd.config()).unwrap();
    let since = proxyd.stderr().len();
    proxyd.signal(rustix::process::Signal::HUP);
    let printed = proxyd.stderr().find(since, |record| record.has("faults"));

    assert!(printed.text("faults").contains("proxyd.kdl"), "{printed:?}");
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "still here");
}

#[test]
fn an_address_in_use_changes_nothing() {
    let upstream = Upstream::saying("still here");
    let proxyd = Config::to(&upstream).start();
    let taken = upstream.address();

    let listener = format!("listeners {{ listener \"second\" {{ address \"{taken}\" }} }}");
    let Reload::Refused(faults) = proxyd.reload(&Config::to(&upstream).top(&listener).kdl()) else {
        panic!("an address in use was bound");
    };

    assert!(
        faults.contains("in use") && faults.contains(&taken.to_string()),
        "{faults}"
    );
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "still here");
}

#[test]
fn kept_connections_stay_when_their_target_does() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    let _ = client.ask(get("/", &[]));

    for _ in 0..3 {
        let route = r#"upstream "u"; matches { path "/more" }"#;
        apply(&proxyd, &Config::to(&upstream).route("more", route));
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }

    assert_eq!(upstream.connections(), 1);
}

#[test]
fn kept_connections_go_when_their_target_does() {
    let (old, new) = (Upstream::saying("old"), Upstream::saying("new"));
    let proxyd = Config::to(&old).start();
    let _ = proxyd.connect().ask(get("/", &[]));

    apply(&proxyd, &Config::to(&new));
    apply(&proxyd, &Config::to(&new).listener("backlog 100"));

    old.wait_for_ends(1);
}

#[test]
fn the_backlog_of_a_listener_changes_in_place() {
    let upstream = Upstream::saying("hi");
    let address = ([127, 0, 0, 1], free_port()).into();
    let proxyd = Config::to(&upstream).at(address).start();
    let mut early = proxyd.connect();
    assert_eq!(early.ask(get("/", &[])).text(), "hi");

    for backlog in [10, 20] {
        let config = Config::to(&upstream).at(address);
        apply(&proxyd, &config.listener(&format!("backlog {backlog}")));
        assert_eq!(early.ask(get("/", &[])).text(), "hi");
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    }
}

#[test]
fn websockets_survive() {
    let upstream = Upstream::websocket();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    assert_eq!(client.ask(request("GET /ws", upgrade, "")).status, 101);

    for number in 0..3 {
        apply(
            &proxyd,
            &Config::to(&upstream).listener(&format!("backlog {}", 100 + number)),
        );
        client.send("ping");
        assert_eq!(client.exactly(4).unwrap(), b"ping");
    }
}

#[test]
fn a_stream_continues_while_its_upstream_stays() {
    let gate = Gate::new();
    let wait = gate.clone();
    let upstream = Upstream::start(move |served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
        wait.wait();
        served.send("later");
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    client.send(get("/", &[]));
    let mut head = client.head();

    apply(&proxyd, &Config::to(&upstream).listener("backlog 100"));
    gate.open();

    client.body(&mut head);
    assert_eq!(head.text(), "firstlater");
}

#[test]
fn no_request_fails_during_reloads() {
    let upstream = Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("fine"));
        }
    });
    let proxyd = Config::to(&upstream)
        .top("system { worker-threads 2 }")
        .start();
    let address = proxyd.address();
    let over = Gate::new();

    let clients: Vec<_> = (0..3)
        .map(|_| {
            let over = over.clone();
            std::thread::spawn(move || {
                let mut asked = 0;
                let mut client = RawClient::connect(address);
                loop {
                    assert_eq!(client.ask(get("/", &[])).text(), "fine");
                    asked += 1;
                    if over.is_open() {
                        return asked;
                    }
                    if asked % 10 == 0 {
                        client = RawClient::connect(address);
                    }
                }
            })
        })
        .collect();
    for number in 0..10 {
        let config =
            Config::to(&upstream).route("r", &format!("upstream \"u\"; priority {number}"));
        apply(&proxyd, &config.top("system { worker-threads 2 }"));
    }
    over.open();

    for client in clients {
        assert!(client.join().unwrap() > 0);
    }
}

#[test]
fn many_reloads_leak_nothing() {
    let upstream = Upstream::saying("");
    let config = |number: u32| {
        let second = format!(
            "listeners {{ listener \"extra\" {{ address \"127.0.0.1:0\"; backlog {} }} }}",
            100 + number % 2
        );
        Config::to(&upstream).top(&second)
    };
    let proxyd = config(0).start();
    let mut client = proxyd.connect();
    for number in 1..20 {
        apply(&proxyd, &config(number));
        let _ = client.ask(get("/", &[]));
    }
    let (files, bytes) = (proxyd.open_files(), proxyd.rss_bytes());

    for number in 20..120 {
        apply(&proxyd, &config(number));
        let _ = client.ask(get("/", &[]));
    }

    assert!(
        proxyd.open_files() <= files + 2,
        "{} after {files}",
        proxyd.open_files()
    );
    let grown = proxyd.rss_bytes().saturating_sub(bytes);
    assert!(grown < 2 << 20, "grew by {grown} bytes");
}

#[test]
fn a_listener_s_own_settings_change() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    let claim = [("X-Forwarded-For", "9.9.9.9")];
    let mut client = proxyd.connect();
    let _ = client.ask(get("/", &claim));

    let trusting = r#"trusted-proxies "127.0.0.1"; timeouts { keep-alive-ms 300 }"#;
    apply(&proxyd, &Config::to(&upstream).listener(trusting));

    let mut fresh = proxyd.connect();
    let _ = fresh.ask(get("/", &claim));
    let seen: Vec<String> = upstream
        .requests()
        .iter()
        .map(|request| request.fields.all("x-forwarded-for").join(", "))
        .collect();
    assert_eq!(seen, ["127.0.0.1", "9.9.9.9, 127.0.0.1"]);
    assert_eq!(fresh.end(), End::Closed);
}

#[test]
fn logs_change() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let file = r#"observability { access-log { path "access.log" } }"#;
    apply(&proxyd, &Config::to(&upstream).top(file));
    let to_file = proxyd.connect().ask(get("/", &[])).correlation_id();
    apply(&proxyd, &Config::to(&upstream));
    let to_stdout = proxyd.connect().ask(get("/", &[])).correlation_id();

    let _ = proxyd.access_record(&to_stdout);
    let file = proxyd.folder().join("access.log");
    let mut client = proxyd.connect();
    // The file has its own writer thread, which may be slower than that of standard output.
    let mut text = fs::read_to_string(&file).unwrap();
    for _ in 0..1_000 {
        if text.contains(&to_file) {
            break;
        }
        pause(&mut client, 20);
        text = fs::read_to_string(&file).unwrap();
    }
    assert!(text.contains(&to_file) && !text.contains(&to_stdout));
    assert!(
        !proxyd
            .stdout()
            .lines()
            .iter()
            .any(|line| line.contains(&to_file))
    );
}
