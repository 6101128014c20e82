//! Log events of the process: writing them never blocks, and their rate is limited.

use crate::support::{BINARY, Config, METRICS, metric, pause, target};
use proxy_testkit::{Launch, RawClient, Record, Reload, Upstream, full_pipe, get};
use rustix::process::Signal;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// Maximum time for exiting without current requests, and without a reader of the log.
const LEAVES_WITHIN: Duration = Duration::from_secs(20);

/// Creates a listening socket; also returns its address.
fn listening() -> (TcpListener, SocketAddr) {
    let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[test]
fn an_unread_stderr_freezes_neither_workers_nor_sigterm() {
    let upstream = Upstream::saying("served");
    let (socket, address) = listening();
    let (unread, full) = full_pipe();
    let config = Config::to(&upstream)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .at(address);
    let launch = Launch::new(BINARY, &config.kdl()).socket(socket);
    let mut proxyd = launch.stderr(full).spawn();

    let mut client = RawClient::connect(address);
    assert_eq!(client.ask(get("/", &[])).text(), "served");
    // The worker cannot accept connections, which is logged.
    proxyd.limit_open_files(3);
    let mut refused = RawClient::connect(address);
    pause(&mut refused, 300);
    proxyd.limit_open_files(1000);
    assert_eq!(refused.ask(get("/", &[])).text(), "served");
    // An idle connection was closed to free a descriptor.
    let mut client = RawClient::connect(address);
    assert_eq!(client.ask(get("/", &[])).text(), "served");
    // A reload on the control thread is logged, too.
    fs::write(proxyd.config(), "nonsense").unwrap();
    proxyd.signal(Signal::HUP);
    let refusals = "proxy_config_reloads_total{result=\"failure\"}";
    let counted = (0..100).any(|_| {
        pause(&mut client, 50);
        let page = client.ask(get("/metrics", &[])).text();
        page.lines().any(|line| line.starts_with(refusals))
    });
    assert!(counted, "the reload is tried");

    proxyd.terminate();

    assert!(proxyd.has_ended_within(LEAVES_WITHIN), "it does not leave");
    assert!(proxyd.wait().success());
    drop(unread);
}

#[test]
fn a_refused_configuration_ends_a_process_with_a_full_stderr() {
    let (unread, full) = full_pipe();
    let proxyd = Launch::new(BINARY, "nonsense").stderr(full).spawn();

    assert!(proxyd.has_ended_within(LEAVES_WITHIN), "it does not end");
    drop(unread);
}

#[test]
fn lines_that_a_full_stderr_cannot_take_are_counted() {
    let (socket, address) = listening();
    let (unread, full) = full_pipe();
    let config = Config::new().route("metrics", METRICS).at(address);
    let launch = Launch::new(BINARY, &config.kdl()).socket(socket);
    let proxyd = launch.stderr(full).spawn();
    let mut client = RawClient::connect(address);
    assert_eq!(client.ask(get("/metrics", &[])).status, 200);

    fs::write(proxyd.config(), "nonsense").unwrap();
    let name = "proxy_log_lines_lost_total{log=\"events\"}";
    let lost = (0..2000).any(|_| {
        proxyd.signal(Signal::HUP);
        pause(&mut client, 5);
        metric(&mut client, name) > 0.0
    });

    assert!(lost, "a bounded buffer is full at some time");
    drop(unread);
}

#[test]
fn repeated_messages_are_written_a_few_times_and_counted() {
    const SAID: &str = "cannot accept connections";
    let upstream = Upstream::saying("");
    let mut proxyd = Config::to(&upstream).start();
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    proxyd.limit_open_files(3);
    let mut refused = proxyd.connect();
    drop(
        proxyd
            .stderr()
            .find(0, |record| record.text("message") == SAID),
    );
    // Accepting is retried every 50 ms.
    pause(&mut refused, 1500);

    proxyd.limit_open_files(1000);
    assert_eq!(refused.ask(get("/", &[])).status, 200);
    proxyd.terminate();
    proxyd.wait();

    let lines = proxyd.stderr().to_the_end();
    let logged = lines.iter().filter(|line| line.contains(SAID)).count();
    assert!(logged <= 6, "{logged} lines in 1.5 s");
    let records = proxyd.stderr().records();
    let sum = records.iter().find(|record| record.has("repeated"));
    let sum = sum.unwrap_or_else(|| panic!("no sum in {lines:?}"));
    let repeated = sum.number("repeated").unwrap();
    assert!(repeated >= 5.0, "{sum:?}");
    let message = format!("{SAID} … repeated {repeated} times");
    assert_eq!(sum.text("message"), message);
    assert_eq!(sum.text("level"), "ERROR");
}

#[test]
fn every_reload_is_answered_however_often_it_is_refused() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    for _ in 0..20 {
        let Reload::Refused(why) = proxyd.reload("nonsense") else {
            panic!("nonsense is not a configuration");
        };
        assert!(why.contains("nonsense"), "{why}");
    }
}

#[test]
fn the_results_of_reloads_are_in_the_configured_error_log() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream)
        .top(r#"observability { error-log { path "error.log"; level "info" } }"#);
    let mut proxyd = config.start();

    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
    assert!(matches!(proxyd.reload("nonsense"), Reload::Refused(_)));
    proxyd.terminate();
    proxyd.wait();

    let text = fs::read_to_string(proxyd.folder().join("error.log")).unwrap();
    let records: Vec<_> = text.lines().filter_map(Record::parse).collect();
    let log_record = |message: &str| {
        let found = records.iter().find(|it| it.text("message") == message);
        found.unwrap_or_else(|| panic!("no \"{message}\" in:\n{text}"))
    };
    let done = log_record("configuration reloaded");
    assert_eq!(done.text("level"), "INFO");
    assert_eq!(done.number("generation"), Some(2.0));
    let refused = log_record("configuration not reloaded; nothing changed");
    assert_eq!(refused.text("level"), "ERROR");
    assert!(refused.text("faults").contains("nonsense"), "{refused:?}");
}

#[test]
fn warnings_and_faults_of_a_configuration_are_lines_with_their_place() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream).upstream("spare", &target(&upstream));
    let proxyd = config.start();

    let warned = proxyd.stderr().find(0, |record| record.has("warning"));
    let refused = proxyd.reload("nonsense");

    let warning = warned.text("warning");
    assert!(warning.contains("spare"), "{warning}");
    let Reload::Refused(faults) = refused else {
        panic!("{refused:?}");
    };
    for line in [warning, &faults] {
        assert!(line.contains("proxyd.kdl:"), "{line}");
        assert!(!line.contains('\n') && !line.contains("  "), "{line}");
    }
}
