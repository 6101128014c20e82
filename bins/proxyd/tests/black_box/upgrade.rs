//! Upgrades by SIGUSR2: a new process takes over without disturbing clients.

use crate::installed::{Installed, upgrade};
use crate::support::{BINARY, Config, admin, request, target};
use proxy_testkit::{End, Gate, Launch, RawClient, Upstream, closed_port, free_port, get, ok};
use rustix::process::Signal;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

#[test]
fn a_new_process_takes_over() {
    let upstream = Upstream::saying("hi");
    let mut proxyd = Config::to(&upstream).start();
    let mut kept = proxyd.connect();
    assert_eq!(kept.ask(get("/", &[])).text(), "hi");
    let unused = proxyd.connect();
    let old = proxyd.id();

    upgrade(&mut proxyd);

    assert_ne!(proxyd.id(), old);
    // The port that the kernel chose for the first process stays the same.
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    // Earlier clients are still served, and asked to reconnect. The old process may learn of the
    // new one only after the first response.
    for mut client in [kept, unused] {
        loop {
            let answer = client.ask(get("/", &[]));
            assert_eq!(answer.text(), "hi");
            if answer.fields.get("connection") == Some("close") {
                break;
            }
        }
        assert_eq!(client.end(), End::Closed);
    }
    proxyd.wait_for_former();
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
}

#[test]
fn repeated_handovers_leak_nothing() {
    let upstream = Upstream::saying("hi");
    let mut proxyd = Config::to(&upstream).start();
    upgrade(&mut proxyd);
    proxyd.wait_for_former();
    let _ = proxyd.connect().ask(get("/", &[]));
    let files = proxyd.open_files();

    for _ in 0..3 {
        upgrade(&mut proxyd);
        proxyd.wait_for_former();
        let _ = proxyd.connect().ask(get("/", &[]));
    }

    // Some connection may still be closing.
    assert!(proxyd.open_files() <= files + 2);
    proxyd.terminate();
    assert!(proxyd.wait().success());
}

/// Sends at most `most` requests on one connection, until a response has `Connection: close`.
/// Returns their number.
fn visit(address: SocketAddr, most: usize) -> usize {
    let mut client = RawClient::connect(address);
    let kept = |_: &usize| {
        let answer = client.ask(get("/", &[]));
        assert_eq!(answer.text(), "fine");
        answer.fields.get("connection") != Some("close")
    };
    1 + (0..most).take_while(kept).count()
}

#[test]
fn an_upgrade_keeps_dead_targets_and_open_breakers() {
    let (alive, ill) = (
        Upstream::saying("hi"),
        Upstream::answering("HTTP/1.1 500 Ill\r\nContent-Length: 0\r\n\r\n"),
    );
    let breaker = "circuit-breaker { failure-threshold 1; timeout-seconds 600 }";
    let route = format!("upstream \"ill\"; matches {{ path \"/ill\" }}; {breaker}");
    let targets = format!("target \"{}\"; {}", closed_port(), target(&alive));
    let mut proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .route("ill", &route)
        .upstream("u", &targets)
        .upstream("ill", &target(&ill))
        .top("admin { address \"127.0.0.1:0\" }")
        .start();
    for _ in 0..4 {
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    }
    assert_eq!(proxyd.connect().ask(get("/ill", &[])).status, 500);
    assert_eq!(proxyd.connect().ask(get("/ill", &[])).status, 503);

    upgrade(&mut proxyd);
    proxyd.wait_for_former();

    for _ in 0..10 {
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    }
    let upstreams = admin(&proxyd, "/admin/upstreams");
    let dead = &upstreams["upstreams"]["u"]["targets"][0];
    assert_eq!(
        (&dead["total_requests"], &dead["healthy"]),
        (&0.into(), &false.into())
    );
    assert_eq!(proxyd.connect().ask(get("/ill", &[])).status, 503);
    assert_eq!(ill.requests().len(), 1);
}

#[test]
fn no_connection_of_a_burst_is_refused() {
    let upstream = Upstream::answering(ok("fine"));
    let mut proxyd = Config::to(&upstream)
        .top("system { worker-threads 2 }")
        .start();
    let address = proxyd.address();
    let over = Gate::new();

    let clients: Vec<_> = (0..4)
        .map(|number| {
            let over = over.clone();
            std::thread::spawn(move || {
                let mut visits = 0;
                while visits == 0 || !over.is_open() {
                    visits += visit(address, 1 + number * 5);
                }
                visits
            })
        })
        .collect();
    for _ in 0..4 {
        upgrade(&mut proxyd);
        proxyd.wait_for_former();
    }
    over.open();

    for client in clients {
        assert!(client.join().unwrap() > 0);
    }
}

#[test]
fn requests_in_flight_end_in_the_old_process() {
    let gate = Gate::new();
    let wait = gate.clone();
    let upstream = Upstream::start(move |served| {
        while let Some(asked) = served.request() {
            if asked.target.contains("slow") {
                served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
                wait.wait();
                served.send("later");
            } else {
                served.send(ok("hi"));
            }
        }
    });
    let sockets = Upstream::websocket();
    let target = format!("target \"{}\"", sockets.address());
    let route = r#"upstream "w"; matches { path "/ws" }"#;
    let config = Config::to(&upstream)
        .route("ws", route)
        .upstream("w", &target);
    let mut proxyd = config.start();
    let mut download = proxyd.connect();
    download.send(get("/slow", &[]));
    let mut head = download.head();
    let mut tunnel = proxyd.connect();
    let asks = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    assert_eq!(tunnel.ask(request("GET /ws", asks, "")).status, 101);

    upgrade(&mut proxyd);
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    upgrade(&mut proxyd);

    tunnel.send("ping");
    assert_eq!(tunnel.exactly(4).unwrap(), b"ping");
    gate.open();
    download.body(&mut head);
    assert_eq!(head.text(), "firstlater");
    assert!(!proxyd.former_have_ended_within(Duration::ZERO));
    drop((download, tunnel));
    proxyd.wait_for_former();
}

#[test]
fn sigterm_limits_the_drain_after_a_handover() {
    let upstream = Upstream::websocket();
    let config = Config::to(&upstream).top("system { graceful-shutdown-timeout-ms 300 }");
    let mut proxyd = config.start();
    let mut tunnel = proxyd.connect();
    let asks = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    assert_eq!(tunnel.ask(request("GET /ws", asks, "")).status, 101);
    upgrade(&mut proxyd);
    tunnel.send("ping");
    assert_eq!(tunnel.exactly(4).unwrap(), b"ping");

    proxyd.signal_former(Signal::TERM);

    proxyd.wait_for_former();
    let _ = tunnel.rest();
    assert!(!proxyd.has_ended_within(Duration::ZERO));
}

#[test]
fn the_new_configuration_is_what_counts() {
    let upstream = Upstream::saying("hi");
    let [kept, gone, new] = [(); 3].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
    let with = |second: SocketAddr| {
        let second = format!("listeners {{ listener \"second\" {{ address \"{second}\" }} }}");
        Config::to(&upstream).at(kept).top(&second)
    };
    let mut proxyd = with(gone).start();
    assert_eq!(RawClient::connect(gone).ask(get("/", &[])).text(), "hi");

    let config = with(new).top("admin { address \"127.0.0.1:0\" }");
    fs::write(proxyd.config(), config.kdl()).unwrap();
    upgrade(&mut proxyd);

    for address in [kept, new] {
        assert_eq!(RawClient::connect(address).ask(get("/", &[])).text(), "hi");
    }
    proxyd.wait_for_former();
    assert!(RawClient::try_connect(gone).is_err());
}

#[test]
fn the_admin_interface_is_handed_over() {
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let upstream = Upstream::saying("hi");
    let config = Config::to(&upstream).top(&format!("admin {{ address \"{admin}\" }}"));
    let mut proxyd = config.start();
    assert_eq!(
        RawClient::connect(admin).ask(get("/ready", &[])).status,
        200
    );
    // Keeps the predecessor alive.
    let mut early = proxyd.connect();

    upgrade(&mut proxyd);

    for _ in 0..10 {
        assert_eq!(
            RawClient::connect(admin).ask(get("/ready", &[])).status,
            200
        );
    }
    assert_eq!(early.ask(get("/", &[])).text(), "hi");
}

#[test]
fn any_number_of_workers_takes_the_sockets_over() {
    let upstream = Upstream::saying("hi");
    let config = |workers: usize| {
        let system = format!("worker-threads {workers}\nadmin {{ address \"127.0.0.1:0\" }}");
        Config::to(&upstream).top(&system)
    };
    let mut proxyd = config(2).start();
    let address = proxyd.address();

    for workers in [5, 1, 3] {
        fs::write(proxyd.config(), config(workers).kdl()).unwrap();
        upgrade(&mut proxyd);
        proxyd.wait_for_former();
        // With this number of connections, each socket of the port receives some.
        let mut clients: Vec<_> = (0..40).map(|_| RawClient::connect(address)).collect();
        for client in &mut clients {
            assert_eq!(client.ask(get("/", &[])).text(), "hi", "{workers} workers");
        }
    }
}

#[test]
fn a_signal_during_an_upgrade_is_not_lost() {
    let installed = Installed::new();
    let upstream = Upstream::saying("hi");
    let mut proxyd = Launch::new(installed.path(), &Config::to(&upstream).kdl()).start();
    let script = format!("head -c 1 go >/dev/null; exec {BINARY} \"$@\"");
    installed.replace(&script);
    let go = proxyd.folder().join("go");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &go,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    let printed = |what: &'static str| {
        proxyd
            .stderr()
            .find(0, move |record| record.text("message") == what)
    };

    proxyd.signal(Signal::USR2);
    let _ = printed("upgrade begins");
    proxyd.signal(Signal::USR2);
    let _ = printed("an upgrade is under way already");
    proxyd.signal(Signal::HUP);
    let _ = printed("the reload waits for the upgrade");
    fs::write(go, "!").unwrap();

    let _ = printed("handed over");
    let _ = printed("configuration reloaded");
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    let successor = printed("upgrade begins").number("id").unwrap();
    proxyd.wait();
    let successor = rustix::process::Pid::from_raw(format!("{successor}").parse().unwrap());
    rustix::process::kill_process(successor.unwrap(), Signal::QUIT).unwrap();
}

#[test]
fn a_process_that_stops_ends_its_starting_successor() {
    let installed = Installed::new();
    let upstream = Upstream::saying("hi");
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        installed.restore();
        let mut proxyd = Launch::new(installed.path(), &Config::to(&upstream).kdl()).start();
        installed.replace("exec sleep 30");

        proxyd.signal(Signal::USR2);
        let begun = proxyd
            .stderr()
            .find(0, |record| record.text("message") == "upgrade begins");
        proxyd.signal(signal);

        assert!(proxyd.wait().success());
        let id = begun.number("id").unwrap();
        let stat = format!("/proc/{id}/stat");
        let runs = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        assert!(!runs(), "the successor runs on");
    }
}
