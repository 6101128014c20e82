//! Shutdown of the process: graceful or immediate.

use crate::installed::Installed;
use crate::support::{BINARY, Busy, Config, pause, request, target};
use proxy_testkit::{
    EVENT_TIMEOUT, End, Gate, Launch, RawClient, Reload, Upstream, free_port, get,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Much shorter than the drain timeout of 30 s.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

#[test]
fn requests_in_flight_finish() {
    let mut busy = Busy::with("");
    let mut resting = busy.proxyd.connect();

    busy.proxyd.terminate();
    assert_eq!(resting.end(), End::Closed);
    busy.gate.open();
    let response = busy.client.response();

    assert_eq!((response.status, response.text().as_str()), (200, "0"));
    assert_eq!(response.fields.get("connection"), Some("close"));
    assert_eq!(busy.client.end(), End::Closed);
    assert!(busy.proxyd.wait().success());
    assert_eq!(
        busy.proxyd
            .access_record(&response.correlation_id())
            .number("status"),
        Some(200.0)
    );
}

#[test]
fn a_disk_that_hangs_does_not_keep_sigterm_waiting() {
    let upstream = Upstream::saying("");
    let mut proxyd = Config::to(&upstream).start();
    fs::remove_file(proxyd.config()).unwrap();
    make_fifo(proxyd.config());

    proxyd.signal(Signal::HUP);
    // Opening succeeds when the process has opened the pipe for reading, so that it waits for data
    // that never arrives.
    let file = fs::OpenOptions::new().write(true).open(proxyd.config());
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    proxyd.terminate();

    assert!(proxyd.has_ended_within(EXIT_TIMEOUT));
    assert!(proxyd.wait().success());
    drop(file);
}

#[test]
fn a_disk_that_hangs_keeps_the_file_of_a_socket_and_not_sigterm() {
    let upstream = Upstream::saying("");
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("proxy.sock");
    let unix = format!(
        "listeners {{ listener \"file\" {{ address \"unix:{}\" }} }}",
        path.display()
    );
    let mut proxyd = Config::to(&upstream).top(&unix).start();
    fs::remove_file(proxyd.config()).unwrap();
    make_fifo(proxyd.config());

    proxyd.signal(Signal::HUP);
    // Opening succeeds when the disk thread waits for the other end of the pipe.
    let pipe = fs::OpenOptions::new().write(true).open(proxyd.config());
    proxyd.terminate();

    assert!(proxyd.has_ended_within(EVENT_TIMEOUT));
    assert!(proxyd.wait().success());
    assert!(path.exists(), "the thread that removes it hangs");
    drop(pipe);
}

fn make_fifo(path: &Path) {
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn a_log_that_cannot_be_opened_yet_does_not_keep_sigterm_waiting() {
    let upstream = Upstream::saying("");
    let mut proxyd = Config::to(&upstream).start();
    // Without a reader, the pipe cannot be opened for writing.
    make_fifo(&proxyd.folder().join("access.log"));
    let log = r#"observability { access-log { path "access.log" } }"#;
    let admin = r#"admin { address "127.0.0.1:0" }"#;
    let config = Config::to(&upstream).top(log).top(admin);
    fs::write(proxyd.config(), config.kdl()).unwrap();

    proxyd.signal(Signal::HUP);
    let mut client = proxyd.connect();
    pause(&mut client, 500);
    assert_eq!(client.ask(get("/", &[])).status, 200);
    proxyd.terminate();

    assert!(proxyd.has_ended_within(EXIT_TIMEOUT));
    assert!(proxyd.wait().success());
}

#[test]
fn a_token_file_that_is_a_pipe_is_refused_and_does_not_keep_sigterm_waiting() {
    let upstream = Upstream::saying("");
    let mut proxyd = Config::to(&upstream).start();
    make_fifo(&proxyd.folder().join("token"));
    let admin = r#"admin { address "127.0.0.1:0"; token-file "token" }"#;

    let reload = proxyd.reload(&Config::to(&upstream).top(admin).kdl());
    assert!(matches!(reload, Reload::Refused(_)), "{reload:?}");
    proxyd.terminate();

    assert!(proxyd.has_ended_within(EXIT_TIMEOUT));
    assert!(proxyd.wait().success());
}

#[test]
fn a_download_that_has_begun_finishes() {
    let gate = Gate::new();
    let wait = gate.clone();
    let upstream = Upstream::start(move |served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
        wait.wait();
        served.send("later");
        served.end();
    });
    let mut proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    client.send(get("/", &[]));
    let mut head = client.head();

    proxyd.drain();
    gate.open();

    client.body(&mut head);
    assert_eq!(head.text(), "firstlater");
    assert!(proxyd.wait().success());
}

#[test]
fn idle_connections_are_closed_and_new_ones_refused() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let route = r#"upstream "u"; matches { path "/" }"#;
    let config = Config::new()
        .route("only", route)
        .upstream("u", &target(&upstream));
    let mut proxyd = config.start();
    let mut resting = proxyd.connect();
    assert_eq!(resting.ask(get("/none", &[])).status, 404);
    let mut busy = proxyd.connect();
    busy.send(get("/", &[]));
    upstream.wait_for_requests(1);

    proxyd.terminate();

    assert_eq!(resting.end(), End::Closed);
    assert!(RawClient::try_connect(proxyd.address()).is_err());
    gate.open();
    assert_eq!(busy.response().status, 200);
    assert!(proxyd.wait().success());
}

#[test]
fn ready_answers_503_while_draining() {
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let mut busy = Busy::with(&format!("admin {{ address \"{admin}\" }}"));
    let ready = || RawClient::connect(admin).ask(request("GET /ready", "", ""));
    assert_eq!(ready().status, 200);

    busy.proxyd.drain();
    let answer = ready();
    assert_eq!(answer.status, 503);
    assert!(answer.json()["reasons"].to_string().contains("draining"));
    busy.gate.open();
    assert_eq!(busy.client.response().status, 200);
    assert!(busy.proxyd.wait().success());
}

#[test]
fn requests_are_cut_when_the_shutdown_timeout_is_over() {
    let mut busy = Busy::with("system { graceful-shutdown-timeout-ms 300 }");

    busy.proxyd.terminate();

    busy.proxyd.wait();
    let (bytes, _) = busy.client.rest().unwrap();
    assert!(bytes.is_empty());
    busy.gate.open();
}

#[test]
fn a_request_that_the_process_cuts_is_not_blamed_on_its_client() {
    let gate = Gate::new();
    for quits in [false, true] {
        let upstream = Upstream::slow_reader(&gate);
        let config = Config::to(&upstream).top("system { graceful-shutdown-timeout-ms 300 }");
        let mut proxyd = config.start();
        let mut client = proxyd.connect();
        client.send(request("GET /", "X-Correlation-Id: cut\r\n", ""));
        upstream.wait_for_requests(1);

        if quits {
            proxyd.quit();
        } else {
            proxyd.terminate();
        }

        proxyd.wait();
        let record = proxyd.access_record("cut");
        assert_eq!(record.text("reason"), "draining");
        assert_eq!(record.text("error_type"), "ServiceUnavailable");
        assert_eq!(record.number("status"), Some(503.0));
    }
    gate.open();
}

#[test]
fn a_tunnel_is_cut_when_the_shutdown_timeout_is_over() {
    let upstream = Upstream::websocket();
    let config = Config::to(&upstream).top("system { graceful-shutdown-timeout-ms 300 }");
    let mut proxyd = config.start();
    let mut client = proxyd.connect();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nX-Correlation-Id: tunnel\r\n";
    assert_eq!(client.ask(request("GET /ws", upgrade, "")).status, 101);
    client.send("ping");
    assert_eq!(client.exactly(4).unwrap(), b"ping");

    proxyd.terminate();

    proxyd.wait();
    let _ = client.rest();
    // The access record is written in either case.
    assert_eq!(proxyd.access_record("tunnel").number("status"), Some(101.0));
}

#[test]
fn sigint_is_the_same_as_sigterm() {
    let upstream = Upstream::saying("");
    let mut proxyd = Config::to(&upstream).start();
    let _ = proxyd.connect().ask(get("/", &[]));

    proxyd.signal(Signal::INT);

    assert!(proxyd.wait().success());
    let drained = proxyd
        .stderr()
        .try_find(0, |record| record.text("message") == "draining");
    assert!(drained.is_some());
}

#[test]
fn sigquit_leaves_at_once() {
    let mut busy = Busy::with("");

    busy.proxyd.quit();

    assert!(busy.proxyd.has_ended_within(EXIT_TIMEOUT));
    busy.proxyd.wait();
    busy.gate.open();
}

#[test]
fn sigquit_ends_a_drain() {
    let mut busy = Busy::with("");
    busy.proxyd.drain();

    busy.proxyd.quit();

    assert!(busy.proxyd.has_ended_within(EXIT_TIMEOUT));
    busy.proxyd.wait();
    busy.gate.open();
}

#[test]
fn an_idle_process_exits_soon() {
    let upstream = Upstream::saying("");
    let mut proxyd = Config::to(&upstream)
        .top("system { worker-threads 2 }")
        .start();
    let mut client = proxyd.connect();
    let _ = client.ask(get("/", &[]));

    proxyd.terminate();

    assert_eq!(client.end(), End::Closed);
    drop(client);
    assert!(proxyd.has_ended_within(EXIT_TIMEOUT));
    assert!(proxyd.wait().success());
}

/// Installs a program that starts `proxyd` without any reachable name server. Returns false without
/// the necessary permission.
fn nameless(installed: &Installed, silent: &std::io::Result<UdpSocket>) -> bool {
    let folder = installed.path().with_file_name("");
    let names = folder.join("resolv.conf");
    fs::write(&names, "nameserver 127.0.0.1\n").unwrap();
    installed.replace(&format!(
        "exec unshare --mount sh -c 'mount --bind {} /etc/resolv.conf && exec \"$0\" \"$@\"' {BINARY} \"$@\"",
        names.display()
    ));
    let may = std::process::Command::new("unshare")
        .args(["--mount", "true"])
        .output();
    silent.is_ok() && may.is_ok_and(|tried| tried.status.success())
}

#[test]
fn a_silent_name_server_keeps_no_signal_waiting() {
    let installed = Installed::new();
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53));
    if !nameless(&installed, &silent) {
        let reported = b"skipped: it takes port 53 and a file system of its own\n";
        std::io::stderr().lock().write_all(reported).unwrap();
        return;
    }
    let upstream = Upstream::saying("hi");
    let config = Config::to(&upstream)
        .route("named", r#"upstream "n"; matches { path "/named" }"#)
        .upstream(
            "n",
            r#"target "one.test:80"; target "two.test:80"; target "three.test:80""#,
        );
    let mut proxyd = Launch::new(installed.path(), &config.kdl()).start();
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");

    proxyd.terminate();

    assert!(proxyd.has_ended_within(Duration::from_secs(4)));
    assert!(proxyd.wait().success());
}

#[test]
fn a_client_that_connects_again_at_once_while_a_drain_begins_is_never_reset() {
    const CLIENTS: usize = 64;
    let upstream = Upstream::saying("");
    for _ in 0..5 {
        let mut proxyd = Config::to(&upstream).top("worker-threads 4").start();
        let address = proxyd.address();
        let resets = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    let mut client = RawClient::connect(address);
                    assert_eq!(client.ask(get("/", &[])).status, 200);
                    scope.spawn(move || {
                        let _ = client.end();
                        is_reset(address)
                    })
                })
                .collect();
            proxyd.terminate();
            let asked = clients.into_iter().map(|client| client.join().unwrap());
            asked.filter(|reset| *reset).count()
        });
        assert_eq!(resets, 0);
        assert!(proxyd.wait().success());
    }
}

/// Returns true if a connection to `address` is closed or reset before a request on it is answered.
fn is_reset(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    stream.set_read_timeout(Some(EVENT_TIMEOUT)).unwrap();
    let written = stream.write_all(request("GET /", "", "").as_bytes());
    let read = written.and_then(|()| stream.read(&mut [0; 16]));
    read.is_err() || read.is_ok_and(|count| count == 0)
}
